"""What generating, evaluating and the demo can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig, DataConfig


@dataclass
class SamplerConfig:
    """How a next token is drawn: see `musictx.sampling.settings.Sampling`."""

    temperature: float = 1.0  # 0: always the likeliest
    temperature_end: float | None = None  # a line from temperature to this over the asked length
    top_k: int | None = None
    top_p: float | None = 0.98
    min_p: float | None = None
    typical: float | None = None
    guard: bool = True  # raise the temperature while the music goes in circles
    beams: int | None = None  # search for the likeliest music instead of drawing; needs length_tokens


@dataclass
class RulesConfig:
    """What is not to be drawn: see `musictx.sampling.rules.Rules`."""

    masks: bool = True  # false: any event at any time
    max_silence_s: float = 5.0
    max_note_s: float = 20.0
    max_polyphony: int | None = None
    lowest: int = 0  # pitches
    highest: int = 127
    scale: str | None = None  # as in 'F# minor'
    voice_order: bool = False  # chorale models: no voice above the one before it
    voice_ranges: bool = False  # chorale models: every voice where its singers can


@dataclass
class GenerateConfig:
    """musictx generate: continue seed MIDI files."""

    # piano or chorale, or a file that `musictx train` made; null: piano, unless the seed is four voices on a grid
    bundle: str | None = None
    # a file, a folder, a pattern like 'mine/*.mid'; elise, gymnopedie, chorale; or null to begin from nothing
    seed_midi: str | None = MISSING
    out: str = MISSING  # a folder for the continuations
    seed_seconds: float | None = None  # the motif: so much of the seed; at most one of three, none is all of it
    seed_bars: int | None = None
    seed_notes: int | None = None
    seed_from: str = "start"  # or end: the motif's side of the seed; on a grid it is rounded out to a beat
    length_seconds: float | None = None  # how much new music: at most one of four, none is 20 seconds
    length_bars: float | None = None
    length_notes: int | None = None
    length_tokens: int | None = None
    forced_ending: bool = False  # end where an end is likeliest, between 90 and 110 % of the length
    max_tokens: int | None = None  # stop here even if the length is not reached
    window: int | None = None  # tokens the model looks back; null: its own
    variations: int = 1
    rows_at_once: int = 16  # drawn together; a GPU has use for more
    draws: int | None = None  # draw so many and keep the best as the variations
    rank: str = "likelihood"  # or motif, what returns of the seed, or both: what is best
    seed: int = 0
    include_seed: bool = True
    drums: bool = False  # the seed's drums too
    out_of_range: str = "refuse"  # or drop: notes that the model has no token for, and those beyond its voices
    wav: bool = False
    png: bool = False
    overwrite: bool = False
    device: str = "cpu"
    weights: str = "float32"  # or bfloat16, or int8: on a CPU the fastest for one row, bfloat16 for many
    graph: bool = False  # on cuda: steps of one shape, held in a CUDA graph, one launch a token
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    rules: RulesConfig = field(default_factory=RulesConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class EvaluateConfig:
    """musictx evaluate: negative log-likelihood of a split under a model, beside simple baselines."""

    bundle: str = MISSING  # piano or chorale, or a file that `musictx train` made
    data: DataConfig = field(default_factory=DataConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    split: str = "validation"
    out: str | None = None  # a JSON file for the figures
    device: str = "cpu"
    weights: str = "float32"  # or bfloat16, or int8: what `generate` loses by fewer bits


@dataclass
class CompareConfig:
    """musictx compare: several models on one store, as a report with a table and pictures."""

    runs: list[str] = MISSING  # run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too
    names: list[str] | None = None  # for the table; null: each run's own
    store: str = MISSING
    out: str = MISSING  # a folder for report.md, report.json and pictures
    split: str = "validation"
    segment: int | None = None  # likelihood of inputs of this many ids; null: whole pieces
    score_batch_tokens: int = 4096
    pieces: int = 64  # held-out pieces to continue
    seed_seconds: float = 10.0
    length_seconds: float = 30.0
    window_seconds: float = 5.0  # motif retention and seed gain are measured in windows of this length
    copying: bool = True  # search all of the training set for each continuation
    seed_gain: bool = True  # what the seed is worth, and which continuation is the true one: without drawing a note
    seed: int = 0
    device: str = "cpu"
    overwrite: bool = False
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class DemoConfig:
    """musictx demo: Bach chorales prepared, learned, continued."""

    out: str = MISSING
    store: str = MISSING
    pieces: int | None = None  # learn from so many chorales; null: all 371
    max_steps: int | None = None  # null: what experiment=demo says
    variations: int = 3
