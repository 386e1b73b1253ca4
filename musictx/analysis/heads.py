"""Attention of heads to the past or to a melody, for the generation of a note."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from torch import Tensor

from musictx.analysis.motif import chord_ends, lines
from musictx.errors import ConfigError, UserError
from musictx.model.encoder_decoder import EncoderDecoder
from musictx.model.readout import read_attention, read_cross_attention
from musictx.model.steps import newest
from musictx.model.transformer import Transformer
from musictx.music.grid import REST, score_to_grid
from musictx.music.score import Score
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.tokenizer import Trace

Indices = NDArray[np.int64]

MOST_QUERIES = 256  # notes, evenly spread, over which heads are averaged
MOTIF_NOTES = 4


class Looks(NamedTuple):
    """Attention of L layers of H heads: for one note, and on average up to it."""

    weight: NDArray[Any]  # (L, H, N) on each note's tokens while `note` is generated; the rest lies on waits and BOS
    distance_s: NDArray[Any]  # (L, H) mean distance back from the generated note, weighted by attention
    on_notes: NDArray[Any]  # (L, H) share of weight on tokens that belong to a note
    on_repeat: NDArray[Any]  # (L, H) share on the last earlier occurrence of the motif and the note after it; or NaN
    even_repeat: float  # the share there if all tokens had the same weight
    queries: int  # number of notes in the means
    repeated: int  # number of them whose motif has occurred before


def attention_to_past(
    model: Transformer,
    tokenizer: Tokenizer,
    ids: Ids,
    trace: Trace,
    note: int,
    *,
    motif_notes: int = MOTIF_NOTES,
    max_tokens: int = 2048,
) -> Looks:
    """The attention that generates a note of ids (T,). Raises ConfigError for the first note."""
    end = int(trace.struck_by[note])
    window, lead, start = window_before(model, tokenizer, ids, end, max_tokens)
    if len(window) == lead:
        raise ConfigError("at", why="the first note has nothing before it to look at", allowed="a later note")

    # the token before a note's first token generates the note, so its row of weights counts
    place = trace.struck_by - start - 1 + lead  # (N,) the position that generates each note
    query_notes = np.flatnonzero((place >= lead) & (place <= place[note]))
    query_notes = query_notes[np.argsort(place[query_notes])]
    spread = np.unique(np.linspace(0, len(query_notes) - 1, MOST_QUERIES).round().astype(int))
    query_notes = query_notes[spread]  # `note` comes last
    is_music = np.arange(len(window)) >= lead
    owner = np.concatenate([[-1] * lead, trace.note[start:end]]).astype(np.int64)  # (W,)
    time_s = np.concatenate([[0.0] * lead, trace.time_s[start:end]])
    back_s = trace.score.onset_s[query_notes, None] - time_s  # (Q, W)
    earlier = {n: runs[-2] for n, runs in repeats(trace.score, motif_notes).items() if place[runs[-2]].min() >= 0}
    returns = np.flatnonzero([n in earlier for n in query_notes])
    is_repeat = np.array([np.isin(owner, earlier[n]) for n in query_notes[returns]]).reshape(-1, len(window))  # (R, W)

    layers: list[tuple[NDArray[Any], ...]] = []

    def visit(layer: int, rows: Tensor) -> None:
        w = rows[0].double().cpu().numpy()  # (H, Q, W)
        on_music = w * is_music
        distance_s = (on_music * back_s).sum(-1) / on_music.sum(-1)
        on_repeat = (w[:, returns] * is_repeat).sum(-1)  # (H, R)
        weight = np.array([np.bincount(owner + 1, row, len(trace.score) + 1)[1:] for row in w[:, -1]])
        means = distance_s.mean(-1), (w * (owner >= 0)).sum(-1).mean(-1)
        layers.append((weight, *means, on_repeat.mean(-1) if len(returns) else np.full(len(w), np.nan)))

    device = model.embed.weight.device
    queries = torch.from_numpy(place[query_notes]).to(device)
    read_attention(model, torch.from_numpy(window)[None].to(device), queries, visit)
    uniform = is_repeat.sum(-1) / (place[query_notes[returns]] + 1)
    weight, distance_s, on_notes, on_repeat = (np.array(column) for column in zip(*layers, strict=True))
    even_repeat = float(uniform.mean()) if len(uniform) else np.nan
    return Looks(weight, distance_s, on_notes, on_repeat, even_repeat, len(query_notes), len(returns))


class Window(NamedTuple):
    """The ids that a model sees of a piece."""

    ids: Indices  # (W,)
    lead: int  # 1 if it begins with BOS, else 0
    start: int  # which token of the piece comes first


def window_before(model: Transformer, tokenizer: Tokenizer, ids: Ids, end: int, max_tokens: int) -> Window:
    """The window that generates token `end` of ids (T,)."""
    period = max(model.cycle, tokenizer.group)
    lead = 1 if end < max(max_tokens, period) else 0  # BOS
    start = 0 if lead else newest(end, max_tokens, period)
    window = np.concatenate([[tokenizer.vocab.bos] * lead, ids[start:end]]).astype(np.int64)
    return Window(window, lead, start)


def attention_map(
    model: Transformer,
    tokenizer: Tokenizer,
    ids: Ids,
    end: int,
    *,
    layer: int | None = None,
    head: int | None = None,
    max_tokens: int = 2048,
    most: int = MOST_QUERIES,
) -> tuple[NDArray[Any], int]:
    """The mean weights (Q, Q) of all heads, a layer's or one, and the number of the first column; -1 is BOS.

    Columns are the newest tokens before `end` of ids (T,); a row generates the token after its column.
    """
    window, lead, start = window_before(model, tokenizer, ids, end, max_tokens)
    first = max(len(window) - most, 0)
    total, n_layers = np.zeros((len(window) - first,) * 2), 0

    def visit(n: int, rows: Tensor) -> None:
        nonlocal n_layers
        if layer is None or n == layer:
            heads = rows[0] if head is None else rows[0, head : head + 1]  # (H, Q, W)
            total[:] += heads[..., first:].mean(0).double().cpu().numpy()
            n_layers += 1

    device = model.embed.weight.device
    queries = torch.arange(first, len(window), device=device)
    read_attention(model, torch.from_numpy(window)[None].to(device), queries, visit)
    return total / n_layers, start - lead + first


def position_vectors(model: Transformer, layer: int, n: int = 512) -> tuple[NDArray[Any], float, str] | None:
    """A layer's vectors by distance (H or 1, N, ·) or place (1, N, C), the last distance, the axis; None without
    position."""
    unit, label = (1.0, "tokens") if model.config.clock == "index" else (0.1, "quarters or seconds, its clock")
    at = unit * torch.arange(n, dtype=torch.float64, device=model.embed.weight.device)
    block: Any = model.blocks[layer]
    with torch.no_grad():
        if model.places is not None:
            places: Any = model.places
            vectors, label = places.vectors(at, model.config.d_model), "place, tokens from the beginning"
        else:
            vectors, label = block.attend.vectors(at), f"distance, {label}"
    return None if vectors is None else (vectors.double().cpu().numpy(), float(at[-1]), label)


def repeats(score: Score, motif_notes: int) -> dict[int, Indices]:
    """Occurrences of the motif before a note, oldest first, each with the next note (R, motif_notes + 1)."""
    occurrences: dict[int, Indices] = {}
    k = motif_notes
    lowest, highest = chord_ends(score)
    # all chords tolerate a pedal; sounding lines follow the voices of a chorale
    for line in (*lines(score, np.inf), highest, lowest):
        if len(line) <= 2 * k:
            continue
        motifs = sliding_window_view(np.diff(score.pitch[line].astype(np.int64)), k - 1)  # row i: from note i on
        runs = sliding_window_view(line, k + 1)
        for i in range(k, len(runs)):
            same = np.flatnonzero((motifs[: i - k + 1] == motifs[i]).all(1))
            if len(same):
                occurrences.setdefault(int(line[i + k]), runs[[*same, i]])
    return occurrences


class MelodyLooks(NamedTuple):
    """The attention of a note to the melody, in L layers of H heads."""

    weight: NDArray[Any]  # (L, H, N) on each note, 0 on other voices; the rest of 1 lies on the melody's rests
    sounding: NDArray[Any]  # (L, H) share on the sixteenth that the note begins with
    steps_away: NDArray[Any]  # (L, H) mean distance in sixteenths, earlier or later


def ids_by_height(tokenizer: Tokenizer, score: Score) -> Ids:
    """Four voices as ids (T,), by height in every sixteenth. Raises TokenError for more than four."""
    assert isinstance(tokenizer, ChoraleTokenizer)
    # a file does not name the voice of a note, and a harmoniser's voices do not cross
    grid = score_to_grid(score)
    for step in grid:
        sounds = step != REST
        step[sounds] = -np.sort(-step[sounds])
    return tokenizer.encode_grid(grid)


def attention_to_melody(
    model: EncoderDecoder, tokenizer: Tokenizer, ids: Ids, trace: Trace, note: int, device: str, melody_voice: int = 0
) -> MelodyLooks:
    """The attention that generates a note of ids (T,). Raises ConfigError for a note of the melody."""
    steps = ids.reshape(-1, tokenizer.voices).astype(np.int64)  # (S, 4)
    query = int(trace.struck_by[note])
    step, voice = divmod(query, tokenizer.voices)
    if voice == melody_voice:
        where = f"note {note + 1}, at {trace.score.onset_s[note]:.2f} s"
        why = f"{where}, belongs to the melody, which the model does not write"
        raise ConfigError("at", why=why, allowed="a note of another voice")
    prompt = np.append(tokenizer.vocab.bos, steps.reshape(-1)[:query])
    source = np.where(np.arange(tokenizer.voices) == melody_voice, steps, tokenizer.vocab.pad).reshape(-1)
    melody, before = (torch.from_numpy(x)[None].to(device) for x in (source, prompt))
    rows = read_cross_attention(model, melody, before, query)
    w = rows.double().cpu().numpy()  # (L, H, S)
    owner = trace.note[melody_voice :: tokenizer.voices]  # (S,) the melody's note in each sixteenth, -1 in a rest
    weight = np.zeros((*w.shape[:2], len(trace.score)))
    for s in np.flatnonzero(owner >= 0):
        weight[:, :, owner[s]] += w[:, :, s]
    away = np.abs(np.arange(len(steps)) - step)
    return MelodyLooks(weight, w[:, :, step], (w * away).sum(-1))


def last_beside(trace: Trace, tokenizer: Tokenizer, voice: int = 0) -> int:
    """The last note outside the melody's voice. Raises UserError if there is none."""
    others = np.flatnonzero(trace.struck_by % tokenizer.voices != voice)
    if not len(others):
        hint = "give a file that `musictx accompany` wrote, or other four voices"
        raise UserError("all notes are in one line", hint)
    return int(others[np.argmax(trace.struck_by[others])])
