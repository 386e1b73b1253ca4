"""musictx mirex: twelve bars after four, in the JSON of MIREX's symbolic music generation."""

from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING

from musictx.config.command import Command
from musictx.errors import BundleError, ConfigError, UserError, counted
from musictx.files import check_new, check_suffix, only_new, replacing
from musictx.generate.open_player import check_device, open_playing
from musictx.generate.requests import Request, Sampling
from musictx.generate.score_templates import more_bars
from musictx.generate.scores import draw_parts
from musictx.model.packaged import SCORE, bundle_path
from musictx.music.contest import NEW_BARS, PLACES, generation, read_prompt
from musictx.setting import setting
from musictx.system import few_threads
from musictx.terminal import say
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import slots_of


@dataclass
class MirexConfig:
    """musictx mirex: continue four bars of piano with twelve, as the MIREX contest asks: PROMPT.json OUT.json."""

    files: list[str] = setting(MISSING, "two JSON files, the prompt, and the generation to write", path=True)
    bundle: str = setting(
        SCORE, "a model of scores: score, a file that `musictx train` made or a run's folder", path=True
    )
    variations: int = setting(Request.variations, "generations of the prompt, OUT-1.json, OUT-2.json …")
    random_seed: int = setting(Request.random_seed, "random seed: the same one gives the same music")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it is faster")
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=lambda: Rules(grid=PLACES))


def mirex(config: MirexConfig) -> None:
    if len(config.files) != 2:
        raise ConfigError("files", got=config.files, allowed="two, PROMPT.json OUT.json")
    request = Request(config.sampler, rules=config.rules, variations=config.variations, random_seed=config.random_seed)
    source, target = map(Path, config.files)
    check_suffix("files", target, (".json",))
    numbers = [f"-{k}" for k in range(1, config.variations + 1)] if config.variations > 1 else [""]
    targets = [target.with_name(f"{target.stem}{number}{target.suffix}") for number in numbers]
    if source.resolve() in {each.resolve() for each in targets}:
        raise UserError(f"{source} is the prompt and would be overwritten", "give another file for the generation")
    check_new(config.overwrite, *targets)
    prompt = read_prompt(source)
    opened = open_playing(bundle_path(config.bundle), device=check_device(config.device), weights=config.weights)
    if not isinstance(opened.tokenizer, ScoreTokenizer):
        raise BundleError(f"{config.bundle} is no model of scores", "give one of tokenizer=score")
    say(f"{config.bundle}: {opened.header.origin}", *opened.remarks)
    template = more_bars(staves := prompt.on_two_staves(), tuple(slots_of(staves)), NEW_BARS)
    with few_threads(config.variations):
        own = opened.header.sampling
        music = draw_parts(template, opened.player, opened.tokenizer, request, own=own)
    for path, drawn in zip(targets, music, strict=True):
        notes = [note for each in drawn.notes.values() for note in each]
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_text(text := generation(notes), encoding="utf-8")
        say(f"{path}: {counted(text.count('pitch'), 'note')} in {NEW_BARS} bars")


COMMAND = Command("mirex", only_new(mirex), MirexConfig, {"sampler": "auto"}, main="files")
