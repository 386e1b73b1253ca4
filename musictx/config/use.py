"""What generating, accompanying, playing live, evaluating, comparing and the demo can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig, DataConfig
from musictx.sampling.settings import DEFAULT_S, Sampling, Settings
from musictx.setting import setting
from musictx.tokenizers.rules import Rules

ASKED = Settings()  # what is asked of a continuation where a person says nothing


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
        "a file, a folder or a pattern like 'mine/*.mid'; elise, gymnopedie or chorale; null: begin from nothing; left "
        "out with infill and between",
    )
    out: str = setting(MISSING, "a folder for the music")
    infill: str | None = setting(
        None, "a file in which a region is written anew: from_s and to_s, or from_bar and to_bar"
    )
    between: str | None = setting(None, "two files, a.mid,b.mid: what goes between them, length_seconds or _bars long")
    from_s: float | None = setting(None, "infill: where the region begins, seconds")
    to_s: float | None = setting(None, "infill: where it ends")
    from_bar: int | None = setting(None, "infill: the region's first bar, counted from 1")
    to_bar: int | None = setting(None, "infill: its last bar")
    seed_seconds: float | None = setting(
        None, "so much of the seed is continued, at most one of three; null: all of it"
    )
    seed_bars: int | None = setting(None, "the same, in bars")
    seed_notes: int | None = setting(None, "the same, in notes")
    seed_from: str = setting("start", "from which side of the seed, start or end; on a grid it is rounded to a beat")
    length_seconds: float | None = setting(
        None, f"how much new music: at most one of four; null of all: {DEFAULT_S:g} seconds"
    )
    length_bars: float | None = setting(None, "how much new music, in bars")
    length_notes: int | None = setting(None, "how much new music, in notes")
    length_tokens: int | None = setting(None, "how much new music, in tokens")
    forced_ending: bool = setting(
        ASKED.forced_ending, "end where an end is likeliest, between 90 and 110 % of the length"
    )
    max_tokens: int | None = setting(ASKED.max_tokens, "stop here even if the length is not reached; null: go on")
    window: int | None = setting(ASKED.window, "tokens that the model looks back; null: its own")
    seed_pinned: bool = setting(
        ASKED.seed_pinned, "music longer than the window: the seed stays in sight, right before what is newest"
    )
    variations: int = setting(1, "continuations of each seed")
    rows_at_once: int = setting(ASKED.rows_at_once, "drawn together; a GPU has use for more")
    draws: int | None = setting(None, "draw so many and keep the best as the variations; null: keep all")
    rank: str = setting("likelihood", "what is best: likelihood, motif (what returns of the seed) or both")
    seed: int = setting(ASKED.seed, "of the random numbers: the same one gives the same music")
    include_seed: bool = setting(ASKED.include_seed, "write what is continued before the new music")
    drums: bool = setting(False, "the seed's drums too")
    out_of_range: str = setting(
        "refuse", "notes that the model has no token for, and those beyond its voices: refuse or drop"
    )
    wav: bool = setting(False, "the sound of each continuation too")
    png: bool = setting(False, "a picture of seed and continuations too")
    overwrite: bool = setting(False, "take the place of files that are there")
    device: str = setting(ASKED.device, "cpu or cuda")
    weights: str = setting(
        "auto",
        "float32, bfloat16 or int8, on a CPU the fastest for one row; auto: int8 where it pays",
    )
    graph: bool = setting(False, "on cuda: steps of one shape, held in a CUDA graph, one launch a token")
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=Rules)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class EvaluateConfig:
    """musictx evaluate: nats per token, note and second of a split under a model, beside simple baselines."""

    bundle: str = setting(MISSING, "piano, chorale, harmoniser, a file that `musictx train` made or a run's folder")
    data: DataConfig = field(default_factory=DataConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    objective: str | None = setting(
        None, "what is scored: next_token, infill or another; null: what the bundle was trained for, but no infill"
    )
    split: str = setting("validation", "train, validation or test")
    out: str | None = setting(None, "a JSON file for the figures; null: none")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("float32", "float32, bfloat16 or int8: what `generate` loses by fewer bits")


@dataclass
class CompareConfig:
    """musictx compare: several models on one store, as a report with a table and pictures."""

    runs: list[str] = setting(MISSING, "run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too")
    names: list[str] | None = setting(None, "for the table; null: each run's own")
    store: str = setting(MISSING, "of the tokens that all of them were trained on")
    out: str = setting(MISSING, "a folder for report.md, report.json and pictures")
    split: str = setting("validation", "train, validation or test")
    segment: int | None = setting(None, "likelihood of inputs of this many ids; null: whole pieces")
    score_batch_tokens: int = setting(DataConfig.score_batch_tokens, "ids that are scored together")
    pieces: int = setting(64, "held-out pieces to continue")
    seed_seconds: float = setting(10.0, "of each piece, to be continued")
    length_seconds: float = setting(30.0, "of each continuation")
    window_seconds: float = setting(5.0, "motif retention and seed gain are measured in windows of this length")
    copying: bool = setting(True, "search all of the training set for each continuation")
    seed_gain: bool = setting(True, "what the seed is worth, and which continuation is the true one: nothing is drawn")
    seed: int = setting(0, "of the random numbers")
    device: str = setting("cpu", "cpu or cuda")
    overwrite: bool = setting(False, "take the place of a report that is there")
    sampler: Sampling = field(default_factory=Sampling)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class DemoConfig:
    """musictx demo: Bach chorales prepared, learned, continued."""

    out: str = setting(MISSING, "the run's folder, for the music too")
    store: str = setting(MISSING, "the chorales' tokens; prepared if they are not there")
    pieces: int | None = setting(None, "learn from so many chorales; null: all 371")
    max_steps: int | None = setting(None, "optimizer steps; null: what experiment=demo says")
    variations: int = setting(3, "continuations of each seed")


@dataclass
class JamConfig:
    """musictx jam: continue what a person plays, whenever they pause."""

    bundle: str | None = setting(
        None,
        "piano, chorale, or a performance or chorale model that `musictx train` made; null: piano, unless a file plays "
        "itself that is four voices on a grid",
    )
    input: str = setting(
        MISSING,
        "the player: a MIDI port by its name or a part of it, or a MIDI file that plays itself; elise, gymnopedie, "
        "chorale",
    )
    output: str = setting(MISSING, "where the replies sound: a MIDI port, or a MIDI file for the whole session")
    record: str | None = setting(None, "a MIDI file for the whole session, where the replies go to a port; null: none")
    virtual: bool = setting(False, "make the ports of these names, for other programs to connect to")
    realtime: bool | None = setting(
        None, "false: a clock that jumps, for files; null: true unless both input and output are files"
    )
    pause_s: float = setting(0.6, "so long without a key held: the phrase is over")
    phrase_s: float = setting(0.0, "shorter phrases are not answered yet: what comes next belongs to them")
    reply_seconds: float | None = setting(8.0, "length of a reply; null: as long as the phrase")
    bpm: float | None = setting(None, "quarters a minute of a chorale model's grid; null: the file's, or 100")
    channel: int = setting(1, "of the replies, 1 to 16")
    window: int | None = setting(None, "tokens that the model looks back; null: its own")
    seed: int = setting(0, "of the random numbers")
    overwrite: bool = setting(False, "take the place of files that are there")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it pays")
    threads: int = setting(
        1, "of the processor, for the model: a second one helps large models alone, and waits on a busy core"
    )
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=lambda: Rules(max_silence_s=1.0, max_note_s=8.0))
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class AccompanyConfig:
    """musictx accompany: alto, tenor and bass for a melody, or the rest of a song; the melody is kept as it is."""

    bundle: str = setting(
        "harmoniser", "the model: harmoniser, a file that `musictx train objective=conditional` made, or a run's folder"
    )
    melody: str = setting(MISSING, "a MIDI file with one line of notes")
    out: str = setting(MISSING, "a folder for the melody with its voices")
    line: str = setting("only", "only: music of one line; highest: of more than one, the highest notes are the melody")
    transpose: int = setting(0, "the model hears the melody so many semitones higher; what is written is moved back")
    variations: int = setting(1, "accompaniments of the melody")
    rows_at_once: int = setting(ASKED.rows_at_once, "drawn together; those of songs are drawn one by one")
    seed: int = setting(ASKED.seed, "of the random numbers: the same one gives the same music")
    wav: bool = setting(False, "the sound of each accompaniment too")
    png: bool = setting(False, "a picture of melody and voices too")
    overwrite: bool = setting(False, "take the place of files that are there")
    device: str = setting(ASKED.device, "cpu or cuda")
    weights: str = setting(
        "auto", "float32, bfloat16 or int8, on a CPU the fastest for one row; auto: int8 where it pays"
    )
    sampler: Sampling = field(default_factory=lambda: Sampling(guard=False))
    rules: Rules = field(default_factory=lambda: Rules(voice_order=True, voice_ranges=True, no_parallels=True))
    attention: AttentionConfig = field(default_factory=AttentionConfig)
