"""The settings of the commands that show or play what is there: attend, inspect, listen, render, runs, verify."""

from dataclasses import dataclass, field

from omegaconf import MISSING

from musictx.config.train import AttentionConfig, TokenizerConfig
from musictx.generate.requests import Sampling
from musictx.setting import setting
from musictx.tokenizers.rules import Rules


@dataclass
class AttendConfig:
    """musictx attend: show which past notes the model looks at when it generates a note, and what each head does."""

    bundle: str | None = setting(
        None,
        "piano, chorale, harmoniser (its voices look at their melody), a file that `musictx train` made "
        "or a run's folder; null: piano, unless the music is four voices on a grid",
    )
    midi: str = setting(MISSING, "a MIDI file, say a continuation; or elise, gymnopedie, chorale")
    out: str = setting(MISSING, "a folder for the pictures")
    at: str | None = setting(
        None, "12.5: the first note from this second on; note37: the 37th note; null: the last note"
    )
    seed_seconds: float | None = setting(
        None, "second at which the seed ends: also draws which notes the seed made likelier; null: draws nothing more"
    )
    layer: int | None = setting(None, "layer, counted from 0; null: the mean of all")
    head: int | None = setting(None, "head of that layer, counted from 0; null: all heads, each in its colour")
    motif_notes: int = setting(4, "notes in a motif; its earlier occurrences are marked")
    max_tokens: int = setting(2048, "how many tokens back the model sees")
    format: str = setting("png", "format of the pictures: png, svg or pdf")
    drums: bool = setting(False, "include the file's drums")
    overwrite: bool = setting(False, "replace existing pictures")
    device: str = setting("cpu", "cpu or cuda")
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class RenderConfig:
    """musictx render: turn a MIDI file into a picture, a film or a sound, by the suffix of `out`."""

    midi: str = setting(MISSING, "a MIDI file; or elise, gymnopedie, chorale")
    out: str = setting(MISSING, ".png .svg .pdf: a piano roll; .gif .mp4: a moving one; .wav .flac: sound")
    new_from: float | None = setting(None, "second at which a continuation begins; draws it in its own colour")
    bars: bool = setting(False, "count bars instead of seconds")
    row_seconds: float | None = setting(
        None, "length of a row; longer music continues in a row below; null: about a minute"
    )
    drums: bool = setting(False, "draw the drums too; they always sound")
    soundfont: str | None = setting(None, "a .sf2 file; null: the installed General MIDI one")
    overwrite: bool = setting(False, "replace an existing file")


@dataclass
class ListenConfig:
    """musictx listen: make a blind listening sheet, one HTML file in which people tell models from composers."""

    bundles: list[str] = setting(MISSING, "run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too")
    names: list[str] | None = setting(None, "names for the key; null: each run's own")
    store: str = setting(MISSING, "a store of the tokens that all of them were trained on")
    out: str = setting(MISSING, "the .html file")
    split: str = setting("validation", "validation or test; or train, whose pieces the models may know")
    pieces: int = setting(8, "held-out pieces whose beginnings are continued")
    seed_seconds: float = setting(10.0, "seconds of each piece to continue")
    length_seconds: float = setting(20.0, "length of each continuation")
    guided: float | None = setting(None, "add each model once more with this sampler.seed_guidance; null: do not")
    random_seed: int = setting(0, "random seed of the music and of the order in which people hear it")
    soundfont: str | None = setting(None, "a .sf2 file; null: the installed General MIDI one")
    overwrite: bool = setting(False, "replace an existing sheet")
    device: str = setting("cpu", "cpu or cuda")
    sampler: Sampling = field(default_factory=Sampling)
    rules: Rules = field(default_factory=Rules)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


@dataclass
class InspectConfig:
    """musictx inspect: show a MIDI file's tracks and tokens, a store's contents, or what a bundle says of itself."""

    midi: str | None = setting(None, "a MIDI file; or elise, gymnopedie, chorale")
    store: str | None = setting(None, "the folder of a token store")
    bundle: str | None = setting(None, "piano, chorale, harmoniser, a file that `musictx train` made or a run's folder")
    out: str | None = setting(None, "of a store: the picture, a .png file; null: STORE-histograms.png beside it")
    json: bool = setting(False, "everything as JSON, for programs")
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)


@dataclass
class VerifyConfig:
    """musictx verify: read a store again and check its fingerprint, offsets, ids and music."""

    store: str = setting(MISSING, "the folder of a token store")


@dataclass
class RunsConfig:
    """musictx runs: list the training runs below a folder, the best first: state, steps, NLL."""

    folder: str = setting("outputs", "where they are looked for, at any depth")
    json: bool = setting(False, "everything as JSON, for programs")
