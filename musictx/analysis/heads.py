"""What the heads of a model look at while it makes a note: in its own past, or in the melody it accompanies.

The token before the one that begins a note generates that note. So the weights are those of that position's row, at the
tokens up to there. A motif is a pattern of notes in an outer line, the highest or the lowest notes of chords. The line
takes all chords, which tolerates a pedal, or only those where no earlier note sounds beyond, which follows the voices
of a chorale. A motif returns where the same intervals return in that line, in any key and any rhythm.
"""

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
    """What L layers of H heads look at: for one note in full, and on average over the notes up to it."""

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
    """What the heads look at before note number `note` of a piece's ids (T,). The model sees at most `max_tokens`
    before it, with BOS if they reach back to the beginning. Raises ConfigError for the first note."""
    end = int(trace.struck_by[note])
    window, lead, start = window_before(model, tokenizer, ids, end, max_tokens)
    if len(window) == lead:
        raise ConfigError("at", why="the first note has nothing before it to look at", allowed="a later note")

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
    """What a model sees of a piece."""

    ids: Indices  # (W,)
    lead: int  # 1 if it begins with BOS, else 0
    start: int  # which token of the piece comes first


def window_before(model: Transformer, tokenizer: Tokenizer, ids: Ids, end: int, max_tokens: int) -> Window:
    """What it sees of ids (T,) when it makes the token number `end`: at most `max_tokens`, with BOS if they reach back
    to the beginning."""
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
    """The mean weights of all heads, or of a layer's, or one head, (Q, Q): the columns are the newest tokens up to
    number `end` of ids (T,), at most `most`, and each row is the token that is made after its column. The number of the
    first column comes with it; -1 is BOS."""
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
    """What a layer adds for each distance, (H or 1, N, ·): the rows of its table, the sums of its waves, the cosines of
    its rotations; or what joins the embedding of each place, (1, N, C). With it the last distance, and what is counted,
    in words. None for a model that knows no position."""
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
    """For each note after a motif that came before: occurrences, oldest first and the motif last, each with the note
    that followed (R, motif_notes + 1). The earlier ones do not overlap the motif. A note in several lines counts in the
    first line that repeats its motif."""
    occurrences: dict[int, Indices] = {}
    k = motif_notes
    lowest, highest = chord_ends(score)
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
    """What one note looks at in the melody, in L layers of H heads."""

    weight: NDArray[Any]  # (L, H, N) on each note, 0 on other voices; what is missing lies on the melody's rests
    sounding: NDArray[Any]  # (L, H) share on the sixteenth that the note begins with
    steps_away: NDArray[Any]  # (L, H) mean distance in sixteenths, earlier or later


def ids_by_height(tokenizer: Tokenizer, score: Score) -> Ids:
    """Four voices as ids (T,), the highest first in every sixteenth. A file does not say which voice a note belongs to,
    and a harmoniser's voices do not cross. Raises TokenError for more than four."""
    assert isinstance(tokenizer, ChoraleTokenizer)
    grid = score_to_grid(score)
    for step in grid:
        sung = step != REST
        step[sung] = -np.sort(-step[sung])
    return tokenizer.encode_grid(grid)


def attention_to_melody(
    model: EncoderDecoder, tokenizer: Tokenizer, ids: Ids, trace: Trace, note: int, device: str, melody_voice: int = 0
) -> MelodyLooks:
    """What the heads look at for note number `note` of a piece's ids (T,), soprano, alto, tenor and bass, of which one
    is the melody. Raises ConfigError for a note of the melody, which the model reads and does not write."""
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
    """The last note that is not of the melody's voice. Raises UserError if there is none."""
    others = np.flatnonzero(trace.struck_by % tokenizer.voices != voice)
    if not len(others):
        hint = "give a file that `musictx accompany` wrote, or other four voices"
        raise UserError("all notes are in one line", hint)
    return int(others[np.argmax(trace.struck_by[others])])
