"""What looking and listening can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig
from musictx.config.use import RulesConfig, SamplerConfig


@dataclass
class AttendConfig:
    """musictx attend: which past notes the model looks at while it generates a note, and what each head is for."""

    # piano or chorale, or a file that `musictx train` made; null: piano, unless the music is four voices on a grid
    bundle: str | None = None
    midi: str = MISSING  # a MIDI file, say a continuation; or elise, gymnopedie, chorale
    out: str = MISSING  # a folder for the pictures
    at: str | None = None  # 12.5: the first note from this second on; note37: the 37th note; null: the last note
    layer: int | None = None  # counted from 0; null: the mean of all
    head: int | None = None  # of that layer, counted from 0; null: all heads, each in its colour
    motif_notes: int = 4  # notes in a motif whose earlier occurrences are looked for
    max_tokens: int = 2048  # as far back as the model sees
    format: str = "png"  # or svg, pdf
    drums: bool = False  # the file's drums too
    overwrite: bool = False
    device: str = "cpu"
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class RenderConfig:
    """musictx render: a MIDI file as a picture, a film or a sound, by the suffix of `out`."""

    midi: str = MISSING  # a MIDI file; or elise, gymnopedie, chorale
    out: str = MISSING  # .png .svg .pdf: a piano roll; .gif .mp4: one that moves; .wav .flac: sound
    new_from: float | None = None  # the second at which a continuation begins, drawn in its own colour
    bars: bool = False  # count bars instead of seconds
    row_seconds: float | None = None  # longer music goes on in a row below; null: about a minute
    drums: bool = False  # draw the drums too; they always sound
    soundfont: str | None = None  # a .sf2 file; null: the General MIDI one that is installed
    overwrite: bool = False


@dataclass
class ListenConfig:
    """musictx listen: a blind listening sheet, one HTML file in which people tell models from composers."""

    bundles: list[str] = MISSING  # run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too
    names: list[str] | None = None  # for the key; null: each run's own
    store: str = MISSING  # of the tokens that all of them were trained on
    out: str = MISSING  # the .html file
    split: str = "validation"  # or test
    pieces: int = 8  # held-out pieces whose beginnings are continued
    seed_seconds: float = 10.0
    length_seconds: float = 20.0  # of each continuation
    seed: int = 0  # of what is drawn and of the order in which it is heard
    soundfont: str | None = None  # a .sf2 file; null: the General MIDI one that is installed
    overwrite: bool = False
    device: str = "cpu"
    sampler: SamplerConfig = field(default_factory=SamplerConfig)
    rules: RulesConfig = field(default_factory=RulesConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
