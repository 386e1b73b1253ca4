"""What looking and listening can be told."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig


@dataclass
class AttendConfig:
    """musictx attend: which past notes the model looks at while it generates a note, and what each head is for."""

    bundle: str | None = None  # a model file that `musictx train` made; null: the one inside musictx
    midi: str = MISSING  # a MIDI file, say a continuation
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

    midi: str = MISSING
    out: str = MISSING  # .png .svg .pdf: a piano roll; .gif .mp4: one that moves; .wav .flac: sound
    new_from: float | None = None  # the second at which a continuation begins, drawn in its own colour
    bars: bool = False  # count bars instead of seconds
    row_seconds: float | None = None  # longer music goes on in a row below; null: about a minute
    drums: bool = False  # draw the drums too; they always sound
    soundfont: str | None = None  # a .sf2 file; null: the General MIDI one that is installed
    overwrite: bool = False
