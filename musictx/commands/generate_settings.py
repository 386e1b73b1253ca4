"""The settings of musictx generate, and the request that they make: a `Continue` or a `Fill`."""

from dataclasses import dataclass, field, fields
from typing import Any

from musictx.config.train import AttentionConfig
from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.generate.primer import Part
from musictx.generate.requests import DEFAULT_S, HUMANIZE, Continue, Fill, Length, Request, Sampling
from musictx.setting import setting
from musictx.tokenizers.rules import Rules


@dataclass
class GenerateConfig:
    """musictx generate: continue seed MIDI files, or fill a gap in one."""

    bundle: str | None = setting(
        None,
        "the model: piano, chorale, score, a file that `musictx train` made or a run's folder; null: chorale for four "
        "voices on a grid, score for other scores, piano for performances",
        path=True,
    )
    seed_midi: str | None = setting(
        "",
        "a file, a folder or a pattern like 'mine/*.mid'; elise, gymnopedie or chorale; null: no seed; leave it out "
        "with infill and between",
        path=True,
    )
    out: str = setting(
        "outputs/continuations",
        "a folder for the music, or for one seed the name of a file: .mid, .musicxml, .mxl, .wav or .png",
        path=True,
    )
    infill: str | None = setting(
        None, "a file in which to fill a gap: from_s and to_s, or from_bar and to_bar", path=True
    )
    between: str | None = setting(
        None, "two files, a.mid,b.mid, to join: length_seconds or length_bars of new music", path=True, commas=True
    )
    from_s: float | None = setting(
        None,
        "where the primer ends and the new music begins, in seconds; null: at the end of the seed, or before the "
        "ending of a finished piece; infill: where the gap begins",
    )
    to_s: float | None = setting(None, "infill: where the gap ends, in seconds")
    from_bar: int | None = setting(None, "infill: the gap's first bar, counted from 1")
    to_bar: int | None = setting(None, "infill: the gap's last bar")
    seed_seconds: float | None = setting(
        None, "length of the primer, the part of the seed to continue; give at most one of two; null: all of it"
    )
    seed_bars: int | None = setting(None, "the primer, in bars")
    seed_from: str = setting(
        "start", "take the primer from this side of the seed, start or end; a grid rounds it to a beat"
    )
    start: str = setting(
        "auto",
        "new music begins at the next bar, beat, or right at the seed's end; auto: on a grid at a bar line after a "
        "whole file, at a beat after a part of it; else at the end",
    )
    length_seconds: float | None = setting(
        None, f"how much new music; give at most one of three; all null: {DEFAULT_S:g} seconds"
    )
    length_bars: float | None = setting(None, "how much new music, in bars")
    length_tokens: int | None = setting(None, "how much new music, in tokens")
    window: int | None = setting(Continue.window, "tokens that the model sees at once; null: its own")
    variations: int = setting(Continue.variations, "continuations of each seed")
    rows_at_once: int = setting(Continue.rows_at_once, "rows drawn together; give more on a GPU")
    random_seed: int = setting(Continue.random_seed, "random seed: the same one gives the same music")
    include_seed: bool = setting(
        Continue.include_seed,
        "false: write the new notes alone, where they lie in the file; of a score the new bars, from bar 1 on",
    )
    part: str | None = setting(
        None, "the name or number of the one part of the file that is heard and written, as inspect names it; null: all"
    )
    drums: bool = setting(Continue.drums, "include the seed's drums")
    alone: bool = setting(False, "write the music alone, from 0 on at one tempo; false: into the seed's own file")
    pedal: bool = setting(False, "write long new notes as keys and sustain pedal")
    humanize: bool = setting(Request.humanize, HUMANIZE)
    wav: bool = setting(False, "also write the sound of each continuation")
    musicxml: bool = setting(False, "also write the score of each, for a notation program")
    png: bool = setting(False, "also write a picture of seed and continuations")
    licence: str | None = setting(None, "free: only a model whose weights may be sold; null: any")
    known_store: str | None = setting(
        None,
        "a store, for instance of the music that the model learned: which passages of the new music it has is printed, "
        "and written into each MIDI file; so are the nearest ones, after `musictx similar` with this store and model",
        path=True,
    )
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting(
        "auto", "float32, bfloat16 or int8; int8 is fastest for one row on a CPU; auto: int8 where it is faster"
    )
    graph: bool = setting(False, "on cuda: keep steps of one shape in a CUDA graph, one launch a token")
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=Rules)
    control: Control = field(default_factory=Control)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


OF_SEEDS = ("seed_midi", "seed_seconds", "seed_bars", "seed_from", "start", "include_seed")
LENGTHS = ("length_seconds", "length_bars")
REGION = ("from_s", "to_s", "from_bar", "to_bar")
SHARED = ("rules", "control", "random_seed", "variations", "rows_at_once", "window", "drums", "humanize")
DEFAULT = {field.name: field.default for field in fields(GenerateConfig)}


def continue_request(config: GenerateConfig) -> Continue:
    """The request for continuations. Raises ConfigError."""
    for name in REGION[1:]:
        if (value := getattr(config, name)) is not None:
            raise ConfigError(name, got=value, why="it is for a gap", hint="give infill=, or leave it out")
    part = Part(config.seed_seconds, config.seed_bars, config.seed_from, config.from_s, config.start)
    length = Length(config.length_seconds, config.length_bars, config.length_tokens)
    return Continue(config.sampler, length, part=part, include_seed=config.include_seed, **shared(config))


def fill_request(config: GenerateConfig) -> Fill:
    """The request for a gap. Raises ConfigError."""
    if config.infill is not None and config.between is not None:
        raise ConfigError("between", got=config.between, why="infill= is given too", hint="leave one of them out")
    way = "infill=" if config.infill is not None else "between="
    for name in (*OF_SEEDS, "length_tokens", *(LENGTHS if way == "infill=" else REGION)):
        if (value := getattr(config, name)) != DEFAULT[name]:
            raise ConfigError(name, got=value, why=f"it does not go with {way}", hint="leave it out")
    region = {name: getattr(config, name) for name in REGION}
    request = Fill(config.sampler, Length(config.length_seconds, config.length_bars), **region, **shared(config))
    if way == "infill=":
        request.check_region()
    return request


def shared(config: GenerateConfig) -> dict[str, Any]:
    """The fields of both requests."""
    return {name: getattr(config, name) for name in SHARED} | {"only": config.part}
