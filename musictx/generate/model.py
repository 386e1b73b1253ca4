"""`musictx.load`: a model that continues or accompanies music, from Python, as the commands do."""

from pathlib import Path
from typing import Any

from musictx.analysis.ranking import Ranking
from musictx.config.app import settings
from musictx.config.train import AttentionConfig
from musictx.config.use import AccompanyConfig, GenerateConfig
from musictx.errors import ConfigError
from musictx.model.bundle import BundleHeader
from musictx.model.protocol import LanguageModel
from musictx.model.shipped import bundle_path
from musictx.music.score import Meter, Score
from musictx.objectives import NEXT_TOKEN
from musictx.playing.accompanying import (
    Accompanied,
    accompany_melody,
    check_accompanies,
    guided,
    plan_accompaniment,
    read_melody,
    take_melody,
    window_of,
)
from musictx.playing.continuing import (
    Beginning,
    begin_with,
    continue_all,
    faster,
    is_interrupted,
    plan,
    read_beginning,
    refuse_part,
)
from musictx.playing.filling import (
    Around,
    around,
    check_fills,
    fill_all,
    plan_fill,
    read_around,
    refuse_gaps,
    seed_of,
    sides,
)
from musictx.playing.opening import check_continues, check_device, open_bundle
from musictx.playing.result import Music
from musictx.playing.seeds import find_seeds
from musictx.tokenizers import Tokenizer

WITH_THE_MODEL = ("bundle", "device", "weights", "graph", "attention")
WITH_THE_FILES = ("out", "wav", "png", "overwrite")


def load(
    bundle: str | Path,
    *,
    device: str = GenerateConfig.device,
    weights: str = GenerateConfig.weights,
    graph: bool = GenerateConfig.graph,
    attention: str = AttentionConfig.impl,
) -> "Player":
    """The model that `bundle` names, ready to continue, fill or accompany.

    `bundle` is "piano", "chorale" or "harmoniser", which are inside musictx, a file that `musictx train` made, or the
    folder of a run. The others are settings of `musictx generate`.

    Raises:
        BundleError: for a file that is missing, damaged or no bundle.
        ConfigError: for a setting that does not exist, or that this machine cannot meet.
    """
    asked = {"device": device, "weights": weights, "graph": graph, "attention": {"impl": attention}}
    config: GenerateConfig = settings("generate", bundle=str(bundle), **asked)
    plan(config)
    opened = open_bundle(bundle_path(str(bundle)), check_device(device), attention, continues=False)
    return Player(faster(opened.model, config), opened.tokenizer, opened.header, device)


class Player:
    """A model with the tokenizer it was trained on. `header` tells what it learnt from, and under which licence."""

    def __init__(
        self,
        model: LanguageModel,
        tokenizer: Tokenizer,
        header: BundleHeader | None = None,
        device: str = GenerateConfig.device,
    ) -> None:
        self.model, self.tokenizer, self.header, self.device = model, tokenizer, header, device

    @property
    def origin(self) -> str:
        """What the weights were learnt from, and their licence."""
        return self.header.origin if self.header is not None else "unknown"

    def continue_midi(
        self, midi: str | Path | None, /, *, ranking: Ranking | None = None, **values: Any
    ) -> list[Music]:
        """Continuations of a MIDI file, of every one in a folder or pattern, or of nothing (None).

        `midi` may be "elise", "gymnopedie" or "chorale", which are inside musictx. `values` are the settings of
        `musictx generate`, with its defaults, as in `length_bars=8, variations=3, sampler={"temperature": 0.9}`.
        `ranking` says how good a piece is, higher is better, in place of `rank=`.

        Units:
            `length_seconds=` and `seed_seconds=` in seconds, `length_bars=` and `seed_bars=` in bars of the seed.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        config = self._settings(values)
        refuse_gaps(config)
        if isinstance(midi, Score):
            raise ConfigError("continue_midi takes a file: give a Score to continue_score")
        if midi is None:
            refuse_part(config)
            return self._continue([Beginning("new")], config, ranking)
        files = find_seeds(str(midi))
        return self._continue([read_beginning(file, self.tokenizer, config) for file in files], config, ranking)

    def continue_score(self, score: Score | None, /, *, ranking: Ranking | None = None, **values: Any) -> list[Music]:
        """Continuations of a score, which is in four beats a bar, or of nothing (None); else as `continue_midi`.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        config = self._settings(values)
        refuse_gaps(config)
        if not isinstance(score, Score | None):
            raise ConfigError(f"continue_score takes a Score, not {score!r}: give a file to continue_midi")
        if score is None:
            refuse_part(config)
        beginning = Beginning("new") if score is None else begin_with(score, self.tokenizer, config)
        return self._continue([beginning], config, ranking)

    def fill(self, midi: str | Path | Score, /, **values: Any) -> list[Music]:
        """A region of a MIDI file, or of a score, written anew, the rest kept as it is.

        `values` say which, as in `from_s=8, to_s=12` or `from_bar=5, to_bar=8`; the others as in `continue_midi`.

        Units:
            `from_s=` and `to_s=` in seconds, `from_bar=` and `to_bar=` in bars, the first is 1.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        what = "a score" if isinstance(midi, Score) else str(midi)
        config = self._fill_settings(values | {"infill": what})
        if isinstance(midi, Score):
            gap = around(seed_of(midi), what, self.tokenizer, config)
        else:
            gap = read_around(sides(config), self.tokenizer, config)
        return self._fill(gap, config)

    def fill_between(self, a: str | Path, b: str | Path, /, **values: Any) -> list[Music]:
        """What goes between two MIDI files, `a` and `b`, which are kept as they are.

        `values` say how long it is, `length_seconds=4` or `length_bars=2`; the others as in `continue_midi`.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        for midi in (a, b):
            if not isinstance(midi, str | Path):
                raise ConfigError(
                    f"fill_between takes two MIDI files, not a {type(midi).__name__}: write it to one first"
                )
        config = self._fill_settings(values | {"between": f"{a},{b}"})
        return self._fill(read_around(sides(config), self.tokenizer, config), config)

    def _fill_settings(self, values: dict[str, Any]) -> GenerateConfig:
        check_fills("this model", self.tokenizer)
        config = self._settings(values)
        plan_fill(config)
        return config

    def _fill(self, gap: Around, config: GenerateConfig) -> list[Music]:
        music = fill_all(gap, self.model, self.tokenizer, self.header, config)
        if is_interrupted([music], config):
            raise KeyboardInterrupt
        return music

    def accompany(self, melody: str | Path | Score, /, **values: Any) -> list[Accompanied]:
        """Writes alto, tenor and bass below a melody, or the rest of a song with a model of songs; the melody stays.

        `melody` is a MIDI file, or a score, which counts four beats a bar.

        `values` are the settings of `musictx accompany`, with its defaults, as in `variations=3, random_seed=7`.

        Raises:
            UserError: as the command does, in one line.
        """
        self._refuse(values, "melody")
        config: AccompanyConfig = settings("accompany", "melody=given", device=self.device, **values)
        plan_accompaniment(config)
        objective = self.header.objective.get("name", NEXT_TOKEN) if self.header is not None else "conditional"
        check_accompanies(self.model, self.tokenizer, objective, "this model")
        config = guided(config, self.header, self.tokenizer, "this model")
        if not isinstance(melody, str | Path | Score):
            raise ConfigError(f"accompany takes a MIDI file or a Score, not {melody!r}")
        if isinstance(melody, Score):
            heard = take_melody(melody, "the melody", config, self.tokenizer, Meter(melody.quarter_s))
        else:
            heard = read_melody(Path(melody), config, self.tokenizer)
        model: Any = self.model  # takes a source, as `check_accompanies` made sure
        return accompany_melody(heard, model, self.tokenizer, config, window_s=window_of(self.header))

    def _settings(self, values: dict[str, Any]) -> GenerateConfig:
        self._refuse(values, "seed_midi")
        check_continues(self.model, self.header, "this model")
        config: GenerateConfig = settings("generate", device=self.device, **values)
        plan(config)
        return config

    def _refuse(self, values: dict[str, Any], first: str) -> None:
        for name in values:
            if name.partition(".")[0] in WITH_THE_MODEL:
                raise ConfigError(f"{name}=…: give it to musictx.load, when the model is loaded")
            if name in WITH_THE_FILES:
                raise ConfigError(f"{name}=…: nothing is written yet; write each piece with music.write(path)")
            if name == first:
                what = first.partition("_")[0]
                raise ConfigError(f"{first}=…: give the {what} first, without its name")

    def _continue(self, beginnings: list[Beginning], config: GenerateConfig, ranking: Ranking | None) -> list[Music]:
        own = self.header.sampling if self.header is not None else {}
        kept = continue_all(beginnings, self.model, self.tokenizer, config, ranking, own)
        if is_interrupted(kept, config):
            raise KeyboardInterrupt
        return [music for each in kept for music in each]
