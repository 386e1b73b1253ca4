"""musictx attend: draw arcs over a piano roll to the notes that the model looks at; what each head or gate does."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import MISSING

from musictx.analysis.heads import (
    Looks,
    attention_both_ways,
    attention_to_melody,
    attention_to_past,
    ids_by_height,
    last_beside,
    repeats,
)
from musictx.analysis.seed_gain import raised_by_seed
from musictx.analysis.trained_labels import as_probe, cuts
from musictx.commands import check_new, print_table
from musictx.config.command import Command
from musictx.config.train import AttentionConfig
from musictx.errors import ConfigError, UserError
from musictx.files import only_new
from musictx.generate.melodies import SINGERS
from musictx.generate.open_bundle import check_device, name_bundle, open_and_print
from musictx.generate.seeds import fit_grid
from musictx.model.build import can
from musictx.model.encoder import Encoder
from musictx.model.encoder_decoder import EncoderDecoder
from musictx.model.gates import GATES, read_gates
from musictx.model.packaged import bundle_path, seed_path
from musictx.model.roll import FRAME_S, LOWEST
from musictx.model.se_resnet import SEResNet, read_channels
from musictx.model.vit import PATCH, ViT, read_class_token
from musictx.music.grid import VOICES
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.setting import setting
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.tokenizer import Trace
from musictx.viz.arcs import choose_heads, plot_arcs, plot_heads
from musictx.viz.figure import FORMATS
from musictx.viz.gates import plot_gates
from musictx.viz.patches import View, plot_patches
from musictx.viz.raised import plot_raised


@dataclass
class AttendConfig:
    """musictx attend: show which past notes the model looks at when it generates a note, and what each head does. Of an
    encoder: which notes before and after a note it looks at. Of an LSTM: how open its gates are at each note. Of a
    model of pictures: the patches that its class token looks at, or the channels that its gates open."""

    bundle: str | None = setting(
        None,
        "piano, chorale, harmoniser (its voices look at their melody), a file that `musictx train` made "
        "or a run's folder; null: piano, unless the music is four voices on a grid",
    )
    midi: str = setting(MISSING, "a MIDI file, say a continuation; or elise, gymnopedie, chorale")
    out: str = setting("outputs/attention", "a folder for the pictures")
    at: str | None = setting(
        None,
        "12.5: the first note from this second on; note37: the 37th note; null: the last, of an encoder the middle one",
    )
    seed_seconds: float | None = setting(
        None, "second at which the seed ends: also draws which notes the seed made likelier; null: draws nothing more"
    )
    layer: int | None = setting(None, "layer, counted from 0; null: the mean of all")
    head: int | None = setting(None, "head of that layer, counted from 0; null: all heads, each in its colour")
    voice: str = setting("S", "of four voices, the one that the harmoniser was given: S, A, T or B")
    motif_notes: int = setting(4, "notes in a motif; its earlier occurrences are marked")
    format: str = setting("png", "format of the pictures: png, svg or pdf")
    drums: bool = setting(False, "include the file's drums")
    overwrite: bool = setting(False, "replace existing pictures")
    device: str = setting("cpu", "cpu or cuda")
    attention: AttentionConfig = field(default_factory=AttentionConfig)


MOST_TOKENS = 2048  # that the model sees
OF_PAST: tuple[str, ...] = ("at", "seed_seconds", "layer", "head", "motif_notes")


class Music(NamedTuple):
    """A file as the model reads it, and where its pictures go."""

    ids: Ids
    traced: Trace
    stem: str
    pictures: list[Path]

    def where(self, note: int) -> str:
        score = self.traced.score
        return f"note {note + 1} of {len(score)}, at {score.onset_s[note]:.2f} s"


def attend(config: AttendConfig) -> None:
    device = check_device(config.device)
    source = seed_path(config.midi)
    if f".{config.format}" not in FORMATS:
        raise ConfigError("format", got=config.format, allowed=f"one of {', '.join(f[1:] for f in FORMATS)}")
    data = read_bytes(source)  # reports a missing file before the model loads
    bundle = name_bundle(config.bundle, [source], config.drums)
    model: Any
    model, tokenizer, header = open_and_print(bundle, device, config.attention.impl, continues=False)
    reads_melody = isinstance(model, EncoderDecoder) and header.objective.get("name") in ("conditional", "voices")
    if config.voice not in [*VOICES]:
        raise ConfigError("voice", got=config.voice, allowed="S, A, T or B")
    if config.voice != AttendConfig.voice and not (reads_melody and model.config.source_voices > 1):
        raise ConfigError("voice", got=config.voice, why=f"{bundle} is given no such voice", hint="leave it out")
    has_gates = can(model, "gates") and model.config.cell == "lstm"
    opens, looks = isinstance(model, SEResNet) and model.config.gates, isinstance(model, ViT)
    both_ways = isinstance(model, Encoder)
    if not (has_gates or reads_melody or opens or looks or both_ways or can(model, "readout")):
        why = "attend can draw neither attention nor gates of this kind of model"
        why = "this net has no gates" if isinstance(model, SEResNet) else why
        allowed = "a Transformer, an encoder, an LSTM, a net for pictures or a harmoniser of four voices"
        raise ConfigError("bundle", got=bundle, why=why, allowed=allowed)
    unused = OF_PAST if has_gates or opens else ("at", "seed_seconds", "motif_notes") if looks else ()
    unused = ("seed_seconds",) if reads_melody else ("seed_seconds", "motif_notes") if both_ways else unused
    for name in unused:
        if (value := getattr(config, name)) != getattr(AttendConfig, name):
            why = "it is for models that look at their own past"
            raise ConfigError(name, got=value, why=why, hint="leave it out")
    if opens or looks:
        as_probe(header, bundle_path(bundle))  # refuses a damaged header
    whats = ["gates"] if has_gates or opens else ["class-token"] if looks else ["attention", "heads"]
    whats += ["raised"] * (config.seed_seconds is not None)
    pictures = [Path(config.out) / f"{source.stem}-{what}.{config.format}" for what in whats]
    check_new(config.overwrite, *pictures)
    if not (has_gates or opens):
        check_heads(config.layer, config.head, model.config.n_layers, model.config.n_heads)
    tracks = read_tracks(data, source, one_tempo=tokenizer.metrical)
    score = tracks.merge(config.drums)
    if not len(score):
        raise UserError(f"{source}: no notes to look at", "give a file with music in it")
    if said := tracks.remark(config.drums):
        print(f"{source}: {said}")
    score = fit_grid(score, tokenizer, source)
    ids = ids_by_height(tokenizer, score) if reads_melody else tokenizer.encode(score)
    music = Music(ids, tokenizer.trace(ids, score.quarter_s), source.stem, pictures)
    if has_gates:
        show_gates(model, music, device)
    elif opens or looks:
        show_pictures(model, music, config, device)
    elif reads_melody:
        show_melody(model, tokenizer, music, config, device)
    elif both_ways:
        show_both_ways(model, tokenizer, music, config)
    else:
        show_past(model, tokenizer, music, config, device)


def show_melody(model: EncoderDecoder, tokenizer: Tokenizer, music: Music, config: AttendConfig, device: str) -> None:
    """Draws and prints what a note beside a melody looks at in the melody."""
    traced, (arcs, maps), voice = music.traced, music.pictures, VOICES.index(config.voice)
    if not (traced.struck_by % tokenizer.voices == voice).any():
        raise ConfigError("voice", got=config.voice, why="the file has no note of this voice", allowed="another")
    note = last_beside(traced, tokenizer, voice) if config.at is None else find_note(traced.score, config.at)
    looked = attention_to_melody(model, tokenizer, music.ids, traced, note, device, voice)
    heads, what = choose_heads(looked.weight, config.layer, config.head)
    title = f"{music.stem}: {music.where(note)}, its looks at the melody, {what}"
    plot_arcs(title, traced.score, note, heads, [], arcs)
    on = "on the sixteenth it begins with"
    plot_heads([(on, looked.sounding, ".0%"), ("sixteenths away", looked.steps_away, ".1f")], maps)
    share = f"{looked.sounding.mean():.1%} of the weight lies on the melody's sixteenth it begins with"
    print(f"{music.where(note)}; {share}; the melody is the {SINGERS[voice]}")
    print(f"{arcs}: what it looks at in the melody, {what}\n{maps}: all heads")


def show_both_ways(model: Encoder, tokenizer: Tokenizer, music: Music, config: AttendConfig) -> None:
    """Draws and prints which notes before and after it a note looks at."""
    traced, (arcs, maps), onset_s = music.traced, music.pictures, music.traced.score.onset_s
    note = find_note(traced.score, config.at) if config.at else len(traced.score) // 2
    most = min(model.reach or MOST_TOKENS, model.config.trained_length or MOST_TOKENS)
    weight = attention_both_ways(model, tokenizer, music.ids, traced, note, most)
    heads, what = choose_heads(weight, config.layer, config.head)
    plot_arcs(f"{music.stem}: {music.where(note)}, {what}", traced.score, note, heads, [], arcs)
    before, after = (weight[..., which].sum(-1) for which in (onset_s < onset_s[note], onset_s > onset_s[note]))
    plot_heads([("weight on notes before", before, ".0%"), ("after", after, ".0%")], maps)
    shares = f"{before.mean():.1%} of the weight lies on notes before it, {after.mean():.1%} on notes after"
    print(f"{music.where(note)}; {shares}; the rest lies on this moment and on waits")
    print(f"{arcs}: what it looks at, {what}\n{maps}: all heads")


def show_past(model: Any, tokenizer: Tokenizer, music: Music, config: AttendConfig, device: str) -> None:
    """Draws and prints what a note looks at before it, and what the seed made likelier."""
    traced, (arcs, maps, *raised) = music.traced, music.pictures
    note = find_note(traced.score, config.at)
    gain = np.full(len(traced.score), np.nan)  # (N,) NaN for the seed's own notes
    if config.seed_seconds is not None:
        gain = raised_notes(model, tokenizer, music.ids, traced, config.seed_seconds, device)
        if np.isnan(gain[note]):
            why, allowed = "that note is the seed's own", "a later one, or leave at= out"
            raise ConfigError("at", got=config.at, why=why, allowed=allowed)
    most = min(model.reach or MOST_TOKENS, MOST_TOKENS)
    looks = attention_to_past(
        model, tokenizer, music.ids, traced, note, motif_notes=config.motif_notes, max_tokens=most
    )
    looks = looks._replace(weight=looks.weight * np.isnan(gain))  # with a seed, only its notes are asked for
    motif = list(repeats(traced.score, config.motif_notes).get(note, []))
    heads, what = choose_heads(looks.weight, config.layer, config.head)
    plot_arcs(f"{music.stem}: {music.where(note)}, {what}", traced.score, note, heads, motif, arcs)
    figures = [("seconds back", looks.distance_s, ".1f"), ("weight on notes", looks.on_notes, ".0%")]
    if looks.repeated:
        figures.append(("on the motif's last occurrence", looks.on_repeat, ".0%"))
    plot_heads(figures, maps)
    print(f"{music.where(note)}; means over {looks.asked} notes up to it")
    print_heads(looks)
    print(f"{arcs}: what it looks at{' of the seed' * len(raised)}, {what}\n{maps}: all heads")
    for path in raised:
        plot_raised(f"{music.stem}: what its seed made likelier", traced.score, gain, [note], path)
        mean, this = np.nanmean(gain), gain[note]
        print(f"{path}: the seed raised this note by {this:+.2f} nats, new notes by {mean:+.2f} on average")


def show_gates(model: Any, music: Music, device: str) -> None:
    """Draws the gates of all cells, and prints each layer's means where a note begins and elsewhere."""
    ids, traced, (path,) = music.ids, music.traced, music.pictures
    found = read_gates(model, torch.as_tensor(ids.astype(np.int64), device=device)[None])[:, 0].cpu().numpy()
    gates = {name: list(found[:, n]) for n, name in enumerate(GATES)}  # of each layer (T, C)
    plot_gates(f"{music.stem}: the gates of its cells", traced.score, traced.time_s, gates, path)
    begins = np.zeros(len(ids), bool)
    begins[traced.struck_by] = True
    means = [
        [f"{gates[name][layer][where].mean():.3f}" for name in GATES for where in (begins, ~begins)]
        for layer in range(len(found))
    ]
    headings = [f"{name} {where}" for name in GATES for where in ("at notes", "between")]
    print_table(["layer", *headings], [[layer, *row] for layer, row in enumerate(means)])
    print(f"{path}: how open each layer's gates are; 1 lets all through")


def show_pictures(model: ViT | SEResNet, music: Music, config: AttendConfig, device: str) -> None:
    """Draws what the class token looks at, or how open gates are, in windows as long as the picture."""
    ids, score, (path,) = music.ids, music.traced.score, music.pictures
    edges = cuts(music.traced.time_s, model.config.n_frames * FRAME_S)
    edges_s = np.append(0.0, music.traced.time_s)[edges]  # (W + 1,) between windows
    windows = [torch.as_tensor(part.astype(np.int64), device=device)[None] for part in np.split(ids, edges[1:-1])]
    if isinstance(model, SEResNet):
        found = zip(*(read_channels(model, x) for x in windows), strict=True)
        gates = {"channel": [torch.cat(layer).cpu().numpy() for layer in found]}  # of each layer (W, C)
        plot_gates(f"{music.stem}: the gates of its channels", score, edges_s[:-1], gates, path)
        print(f"{path}: how open each layer's channels are in {len(windows)} windows; 1 lets all through")
        return
    views: list[View] = []
    layers, heads = (slice(n, None if n is None else n + 1) for n in (config.layer, config.head))
    for x, from_s, to_s in zip(windows, edges_s, edges_s[1:], strict=False):
        weight = read_class_token(model, x)[layers, 0, heads].mean((0, 1)).cpu().numpy()  # (P, N)
        rows, columns = (PATCH * np.arange(n + 1) for n in weight.shape)
        views.append((weight * weight.size, LOWEST - 0.5 + rows, np.minimum(from_s + columns * FRAME_S, to_s)))
    title = f"{music.stem}: where the class token of each window looks"
    plot_patches(title, score, views, "how much; 1: as much as evenly", path)
    print(f"{path}: where the class token looks in {len(windows)} windows")


def raised_notes(
    model: Any, tokenizer: Tokenizer, ids: Ids, traced: Trace, seed_s: float, device: str
) -> NDArray[np.float64]:
    """(N,) nats by which the seed made each new note likelier, all its tokens together; NaN for a note with tokens in
    the seed. Raises ConfigError, also for more tokens than the model has positions for."""
    if model.reach is not None and len(ids) > model.reach:
        why = f"the model reads the piece whole, and its {len(ids)} tokens are more than its {model.reach} positions"
        raise ConfigError("seed_seconds", got=seed_s, why=why, allowed="a shorter file, or leave seed_seconds= out")
    gain = raised_by_seed(model, tokenizer, ids, seed_s, traced.score.quarter_s, device=device)
    owned = traced.note >= 0
    total = np.zeros(len(traced.score))
    np.add.at(total, traced.note[owned], gain[owned])
    return total


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
        wanted = float(value)
    except ValueError:
        wanted = np.nan
    n = int(np.searchsorted(score.onset_s, wanted - 1e-6)) if kind == "second" else wanted - 1
    if not (0 <= n < len(score) and n == int(n) and (kind == "note" or wanted >= 0)):
        until = f"{score.onset_s.max():.2f}, when the last note begins"
        raise ConfigError("at", got=at, allowed=f"a second up to {until}, or note1 to note{len(score)}")
    return int(n)


def print_heads(looks: Looks) -> None:
    rows = [
        (*at, f"{distance_s:.2f}", f"{looks.on_notes[at]:.1%}", f"{looks.on_repeat[at]:.1%}" if looks.repeated else "")
        for at, distance_s in np.ndenumerate(looks.distance_s)
    ]
    print_table(["layer", "head", "seconds back", "on notes", "on the motif's last occurrence"], rows, right=3)
    if looks.repeated:
        even = f"{looks.even_repeat:.1%}"
        print(f"the motif had occurred before {looks.repeated} of them; even attention would put {even} there")
    else:
        print("no motif had occurred before: give fewer motif_notes= or a longer piece")


COMMAND = Command("attend", only_new(attend), AttendConfig, {"attention": "auto"})
