"""The settings of generating, accompanying, playing live, evaluating, comparing and the demo."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig, DataConfig
from musictx.generate.requests import DEFAULT_S, Accompany, Continue, Sampling
from musictx.setting import setting
from musictx.tokenizers.rules import Rules


@dataclass
class GenerateConfig:
    """musictx generate: continue seed MIDI files, or fill a gap in one."""

    bundle: str | None = setting(
        None,
        "the model: piano, chorale, a file that `musictx train` made or a run's folder; null: piano, unless the seed "
        "is four voices on a grid",
    )
    seed_midi: str | None = setting(
        "",
        "a file, a folder or a pattern like 'mine/*.mid'; elise, gymnopedie or chorale; null: no seed; leave it out "
        "with infill and between",
    )
    out: str = setting(MISSING, "a folder for the music")
    infill: str | None = setting(None, "a file in which to fill a gap: from_s and to_s, or from_bar and to_bar")
    between: str | None = setting(None, "two files, a.mid,b.mid, to join: length_seconds or length_bars of new music")
    from_s: float | None = setting(
        None,
        "where the new music begins, in seconds, at the latest where the seed ends; seed_seconds and its like are then "
        "those before it; null: where the seed ends, or before the ending of a finished piece; infill: where the gap "
        "begins",
    )
    to_s: float | None = setting(None, "infill: where the gap ends, in seconds")
    from_bar: int | None = setting(None, "infill: the gap's first bar, counted from 1")
    to_bar: int | None = setting(None, "infill: the gap's last bar")
    seed_seconds: float | None = setting(
        None, "length of the primer, the part of the seed to continue; give at most one of three; null: all of it"
    )
    seed_bars: int | None = setting(None, "the primer, in bars")
    seed_notes: int | None = setting(None, "the primer, in notes")
    seed_from: str = setting(
        "start", "take the primer from this side of the seed, start or end; a grid rounds it to a beat"
    )
    length_seconds: float | None = setting(
        None, f"how much new music; give at most one of four; all null: {DEFAULT_S:g} seconds"
    )
    length_bars: float | None = setting(None, "how much new music, in bars")
    length_notes: int | None = setting(None, "how much new music, in notes")
    length_tokens: int | None = setting(None, "how much new music, in tokens")
    forced_ending: bool = setting(
        Continue.forced_ending, "end where an ending is likeliest, between 90 and 110 % of the length"
    )
    max_tokens: int | None = setting(Continue.max_tokens, "stop here even if the length is not reached; null: go on")
    window: int | None = setting(Continue.window, "tokens that the model sees at once; null: its own")
    variations: int = setting(Continue.variations, "continuations of each seed")
    rows_at_once: int = setting(Continue.rows_at_once, "rows drawn together; give more on a GPU")
    draws: int | None = setting(None, "draw so many and keep the best as the variations; null: keep all")
    rank: str = setting(Continue.rank, "how to rank them: likelihood, motif (how much of the seed returns) or both")
    random_seed: int = setting(Continue.random_seed, "random seed: the same one gives the same music")
    include_seed: bool = setting(Continue.include_seed, "write the primer before the new music")
    drums: bool = setting(Continue.drums, "include the seed's drums")
    out_of_range: str = setting(
        Continue.out_of_range, "notes that the model has no token for, and notes beyond its voices: refuse or drop"
    )
    wav: bool = setting(False, "also write the sound of each continuation")
    png: bool = setting(False, "also write a picture of seed and continuations")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting(
        "auto",
        "float32, bfloat16 or int8; int8 is fastest for one row on a CPU; auto: int8 where it is faster",
    )
    graph: bool = setting(False, "on cuda: keep steps of one shape in a CUDA graph, one launch a token")
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=Rules)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class EvaluateConfig:
    """musictx evaluate: measure a model's nats per token, note and second on a split, beside simple baselines."""

    bundle: str = setting(MISSING, "piano, chorale, harmoniser, a file that `musictx train` made or a run's folder")
    data: DataConfig = field(default_factory=DataConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    objective: str | None = setting(
        None, "the objective to score: next_token, infill or another; null: the bundle's own, but never infill"
    )
    split: str = setting("validation", "train, validation or test")
    out: str | None = setting(None, "a JSON file for the figures; null: none")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("float32", "float32, bfloat16 or int8: shows what `generate` loses by fewer bits")


@dataclass
class CompareConfig:
    """musictx compare: compare several models on one store, in a report with a table and pictures."""

    runs: list[str] = setting(MISSING, "run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too")
    names: list[str] | None = setting(None, "names for the table; null: each run's own")
    store: str = setting(MISSING, "a store of the tokens that all of them were trained on")
    out: str = setting(MISSING, "a folder for report.md, report.json and pictures")
    split: str = setting("validation", "train, validation or test")
    segment: int | None = setting(None, "ids in a segment for scoring; null: whole pieces")
    score_batch_tokens: int = setting(DataConfig.score_batch_tokens, "ids scored in one batch")
    pieces: int = setting(64, "held-out pieces to continue")
    seed_seconds: float = setting(10.0, "seconds of each piece to continue")
    length_seconds: float = setting(30.0, "length of each continuation")
    span_seconds: float = setting(5.0, "span in which motif retention and seed gain are measured")
    copying: bool = setting(True, "search the whole training set for each continuation")
    seed_gain: bool = setting(
        True, "measure what the seed is worth, and whether the true continuation is found; draws nothing"
    )
    random_seed: int = setting(0, "random seed")
    device: str = setting("cpu", "cpu or cuda")
    overwrite: bool = setting(False, "replace an existing report")
    sampler: Sampling = field(default_factory=Sampling)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class DemoConfig:
    """musictx demo: prepare Bach chorales, train on them and continue them."""

    out: str = setting(MISSING, "the run's folder, which also gets the music")
    store: str = setting(MISSING, "the store of chorales; prepared if it does not exist")
    pieces: int | None = setting(None, "learn from so many chorales; null: all 371")
    max_steps: int | None = setting(None, "optimizer steps; null: as in experiment=demo")
    variations: int = setting(3, "continuations of each seed")


@dataclass
class JamConfig:
    """musictx jam: continue what a person plays, whenever they pause."""

    bundle: str | None = setting(
        None,
        "piano, chorale, or a performance or chorale model that `musictx train` made; null: piano, unless the input is "
        "a file of four voices on a grid",
    )
    input: str = setting(
        MISSING,
        "the player: a MIDI port by its name or a part of it, or a MIDI file to play; elise, gymnopedie, chorale",
    )
    output: str = setting(MISSING, "where the replies sound: a MIDI port, or a MIDI file for the whole session")
    record: str | None = setting(None, "a MIDI file for the whole session, if the replies go to a port; null: none")
    virtual: bool = setting(False, "make ports of these names, so that other programs can connect to them")
    realtime: bool | None = setting(
        None, "false: a clock that jumps, for files; null: true unless both input and output are files"
    )
    pause_s: float = setting(0.6, "a phrase ends after this long without a key held")
    phrase_s: float = setting(0.0, "shorter phrases get no answer yet: the next notes join them")
    reply_seconds: float | None = setting(8.0, "length of a reply; null: as long as the phrase")
    bpm: float | None = setting(None, "quarters a minute of a chorale model's grid; null: the file's, or 100")
    channel: int = setting(1, "MIDI channel of the replies, 1 to 16")
    window: int | None = setting(None, "tokens that the model sees at once; null: its own")
    random_seed: int = setting(0, "random seed")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it is faster")
    threads: int = setting(
        1, "processor threads for the model: a second one helps only large models, and waits on a busy core"
    )
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=lambda: Rules(max_silence_s=1.0, max_note_s=8.0))
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class AccompanyConfig:
    """musictx accompany: write alto, tenor and bass, or the rest of a song, and leave the melody unchanged."""

    bundle: str = setting(
        "harmoniser", "the model: harmoniser, a file that `musictx train objective=conditional` made, or a run's folder"
    )
    melody: str = setting(
        MISSING, "a MIDI file with one line of notes; with line=highest also elise, gymnopedie or chorale"
    )
    out: str = setting(MISSING, "a folder for the melody with its voices")
    line: str = setting(
        Accompany.line, "only: the file has one line; highest: take the highest notes of several lines as the melody"
    )
    transpose: int = setting(
        Accompany.transpose, "the model hears the melody so many semitones higher; the output is moved back"
    )
    variations: int = setting(Accompany.variations, "accompaniments of the melody")
    rows_at_once: int = setting(Accompany.rows_at_once, "rows drawn together; songs are drawn one by one")
    random_seed: int = setting(Accompany.random_seed, "random seed: the same one gives the same music")
    wav: bool = setting(False, "also write the sound of each accompaniment")
    png: bool = setting(False, "also write a picture of melody and voices")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting(
        "auto", "float32, bfloat16 or int8; int8 is fastest for one row on a CPU; auto: int8 where it is faster"
    )
    sampler: Sampling = field(default_factory=lambda: Accompany().sampling)
    rules: Rules = field(default_factory=lambda: Accompany().rules)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
