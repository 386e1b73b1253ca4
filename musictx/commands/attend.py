"""musictx attend: draw arcs over a piano roll to the notes that the model looks at, and what each head does."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from omegaconf import MISSING

from musictx.analysis.heads import (
    MOTIF_NOTES,
    attention_map,
    attention_to_melody,
    attention_to_past,
    ids_by_height,
    last_beside,
    position_vectors,
    repeats,
)
from musictx.commands import open_and_print, print_table
from musictx.config.command import Command
from musictx.errors import ConfigError, UserError
from musictx.files import check_new, only_new
from musictx.generate.choose_bundle import name_bundle
from musictx.generate.open_bundle import Opened
from musictx.generate.open_player import check_device
from musictx.generate.score_seeds import read_score
from musictx.generate.seeds import fit_grid
from musictx.model.build import can
from musictx.model.encoder_decoder import EncoderDecoder
from musictx.model.packaged import seed_path
from musictx.music.grid import VOICE_NAMES, VOICES
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.objectives.voices import Voices
from musictx.setting import setting
from musictx.terminal import say
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.tokenizer import Trace
from musictx.viz.arcs import choose_heads, head_names, plot_arcs, plot_heads, plot_map, plot_positions
from musictx.viz.figure import FORMATS


@dataclass
class AttendConfig:
    """musictx attend: show which past notes the model looks at when it generates a note, and what each head does."""

    bundle: str | None = setting(
        None,
        "piano, chorale, score, harmoniser (its voices look at their melody), a file that `musictx train` made "
        "or a run's folder; null: piano, unless the music is four voices on a grid",
        path=True,
    )
    midi: str = setting(MISSING, "a MIDI file, say a continuation; or elise, gymnopedie, chorale", path=True)
    out: str = setting("outputs/attention", "a folder for the pictures", folder=True)
    at: str | None = setting(None, "12.5: the first note from this second on; note37: the 37th note; null: the last")
    layer: int | None = setting(None, "layer, counted from 0; null: the mean of all")
    head: int | None = setting(None, "head of that layer, counted from 0; null: all heads, each in its colour")
    voice: str = setting("S", "of four voices, the one that the harmoniser was given: S, A, T or B")
    format: str = setting("png", "format of the pictures: png, svg or pdf")
    drums: bool = setting(False, "include the file's drums")
    overwrite: bool = setting(False, "replace existing pictures")
    device: str = setting("cpu", "cpu or cuda")


MOST_TOKENS = 2048  # that the model sees
Map = tuple[str, NDArray[Any], str]  # a title, a figure of each head (L, H), and its format


class Piece(NamedTuple):
    """A file as the model reads it, and the paths of its pictures."""

    config: AttendConfig
    tokenizer: Tokenizer
    ids: Ids
    trace: Trace
    stem: str
    pictures: list[Path]

    @property
    def score(self) -> Score:
        return self.trace.score

    def where(self, note: int) -> str:
        return f"note {note + 1} of {len(self.score)}, at {self.score.onset_s[note]:.2f} s"


def attend(config: AttendConfig) -> None:
    device = check_device(config.device)
    source = seed_path(config.midi)
    if f".{config.format}" not in FORMATS:
        raise ConfigError("format", got=config.format, allowed=f"one of {', '.join(f[1:] for f in FORMATS)}")
    if config.voice not in [*VOICES]:
        raise ConfigError("voice", got=config.voice, allowed="S, A, T or B")
    data = read_bytes(source)  # reports a missing file before the model loads
    choice = name_bundle(config.bundle, [source], config.drums)
    if choice.remark:
        say(choice.remark)
    opened = open_and_print(choice.bundle, device, continues=False)
    model: Any = opened.model
    tokenizer, harmonises = opened.tokenizer, is_harmoniser(opened, choice.bundle)
    if not harmonises and config.voice != AttendConfig.voice:
        why = f"{choice.bundle} has nothing to choose by it"
        raise ConfigError("voice", got=config.voice, why=why, hint="leave it out")
    names = ["attention", "heads", *["map", "positions"] * (not harmonises)]
    pictures = [Path(config.out) / f"{source.stem}-{name}.{config.format}" for name in names]
    check_new(config.overwrite, *pictures)
    check_heads(config.layer, config.head, model.config.n_layers, model.config.n_heads)
    tracks = read_tracks(data, source, one_tempo=tokenizer.metrical)
    score = tracks.merge(config.drums)
    if not len(score):
        raise UserError(f"{source}: no notes to look at", "give a file with music in it")
    if remark := tracks.remark(config.drums):
        say(f"{source}: {remark}")
    score = fit_grid(score, tokenizer, source, say)
    if isinstance(tokenizer, ScoreTokenizer):
        if config.drums:
            raise ConfigError("drums", got=True, why="a score has no drums", hint="leave it out")
        ids = tokenizer.encode_notation(read_score(source, tokenizer).notation)
    else:
        ids = ids_by_height(tokenizer, score) if harmonises else tokenizer.encode(score)
    piece = Piece(config, tokenizer, ids, tokenizer.trace(ids, score.quarter_s), source.stem, pictures)
    (show_melody if harmonises else show_past)(model, piece)


def is_harmoniser(opened: Opened, bundle: str) -> bool:
    """Whether the model's notes look at a melody, not at their past. Raises ConfigError for unreadable attention."""
    grid = isinstance(opened.tokenizer, ChoraleTokenizer)
    if grid and can(opened.model, "voices") and opened.header.objective.get("name") == Voices.name:
        return True
    if not can(opened.model, "readout"):
        allowed = "a Transformer or a harmoniser of four voices"
        raise ConfigError("bundle", got=bundle, why="it has no attention to draw", allowed=allowed)
    return False


def show_melody(model: EncoderDecoder, piece: Piece) -> None:
    """Draws and prints the attention of a note to its melody."""
    tokenizer, trace, voice = piece.tokenizer, piece.trace, VOICES.index(piece.config.voice)
    if not (trace.struck_by % tokenizer.voices == voice).any():
        raise ConfigError("voice", got=piece.config.voice, why="the file has no note of this voice", allowed="another")
    note = last_beside(trace, tokenizer, voice) if piece.config.at is None else find_note(piece.score, piece.config.at)
    looks = attention_to_melody(model, tokenizer, piece.ids, trace, note, piece.config.device, voice)
    share = f"{looks.sounding.mean():.1%} of the weight lies on the melody's sixteenth it begins with"
    say(f"{piece.where(note)}; {share}; the melody is the {VOICE_NAMES[voice]}")
    sounding = "on the sixteenth it begins with", looks.sounding, ".0%"
    draw(piece, note, looks.weight, [sounding, ("sixteenths away", looks.steps_away, ".1f")])


def show_past(model: Any, piece: Piece) -> None:
    """Draws and prints the attention of a note to its past."""
    note, most = find_note(piece.score, piece.config.at), min(model.reach or MOST_TOKENS, MOST_TOKENS)
    looks = attention_to_past(model, piece.tokenizer, piece.ids, piece.trace, note, max_tokens=most)
    say(f"{piece.where(note)}; means over {looks.queries} notes up to it")
    maps = [("seconds back", looks.distance_s, ".2f"), ("weight on notes", looks.on_notes, ".1%")]
    if looks.repeated:
        maps.append(("on the motif's last occurrence", looks.on_repeat, ".1%"))
        even = f"{looks.even_repeat:.1%}"
        say(f"the motif had occurred before {looks.repeated} of them; even attention would put {even} there")
    layer, head, end = piece.config.layer, piece.config.head, int(piece.trace.struck_by[note])
    weight, first = attention_map(model, piece.tokenizer, piece.ids, end, layer=layer, head=head, max_tokens=most)
    draw(piece, note, looks.weight, maps, repeats(piece.score, MOTIF_NOTES).get(note, ()))
    *_, path, positions = piece.pictures
    plot_map(f"{piece.stem}: up to {piece.where(note)}, {head_names(layer, head)}", weight, first, path)
    say(f"{path}: the weights between the newest {len(weight)} tokens")
    if (position := position_vectors(model, layer or 0)) is not None:
        vectors, last, unit = position
        title = f"position={model.config.position}, layer {layer or 0}"
        plot_positions(title, vectors if head is None else vectors[head % len(vectors)][None], last, unit, positions)
        say(f"{positions}: what that layer adds for each {unit.partition(',')[0]}")


def draw(piece: Piece, note: int, weight: NDArray[Any], maps: list[Map], motif: Iterable[NDArray[Any]] = ()) -> None:
    """Draws arcs by the weight (L, H, N) on each note, and draws and prints maps of all heads."""
    arcs, heads, *_ = piece.pictures
    weights, what = choose_heads(weight, piece.config.layer, piece.config.head)
    plot_arcs(f"{piece.stem}: {piece.where(note)}, {what}", piece.score, note, weights, list(motif), arcs)
    plot_heads(maps, heads)
    rows = [(*at, *(format(figure[at], how) for _, figure, how in maps)) for at in np.ndindex(weight.shape[:2])]
    print_table(["layer", "head", *(title for title, *_ in maps)], rows, right=len(maps))
    say(f"{arcs}: what it looks at, {what}\n{heads}: all heads")


def check_heads(layer: int | None, head: int | None, n_layers: int, n_heads: int) -> None:
    """Raises ConfigError for a layer or head that the model does not have."""
    for name, value, count in (("layer", layer, n_layers), ("head", head, n_heads)):
        if value is not None and not 0 <= value < count:
            raise ConfigError(name, got=value, allowed=f"0 to {count - 1}, which the model has")
    if head is not None and layer is None:
        raise ConfigError("head", got=head, why="it needs a layer", allowed=f"layer=0 to {n_layers - 1} too")


def find_note(score: Score, at: str | None) -> int:
    """The index of a note: `12.5` is the first struck from that second on, note37 the 37th. Raises ConfigError."""
    if at is None:
        return len(score) - 1
    kind, value = ("note", at[4:]) if at.startswith("note") else ("second", at)
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    n = int(np.searchsorted(score.onset_s, number - 1e-6)) if kind == "second" else number - 1
    if not (0 <= n < len(score) and n == int(n) and (kind == "note" or number >= 0)):
        until = f"{score.onset_s.max():.2f}, when the last note begins"
        raise ConfigError("at", got=at, allowed=f"a second up to {until}, or note1 to note{len(score)}")
    return int(n)


COMMAND = Command("attend", only_new(attend), AttendConfig, main="midi")
