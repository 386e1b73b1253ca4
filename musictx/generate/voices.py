"""The voices below a melody, drawn by a model of a source and a target: the melody is given, sixteenth by sixteenth.

Guidance by the melody is `guidance.guided` with a second stream that does not see the melody. Some examples of training
hide it too (Ho and Salimans 2022, Classifier-Free Diffusion Guidance; of language models Sanchez et al. 2023).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.generate.batch import LOOK_EVERY
from musictx.generate.engine import ByChance, Drawn, Stream
from musictx.generate.filters import NanError
from musictx.generate.particles import Particles, keys_of
from musictx.generate.requests import Accompany, rows_each
from musictx.generate.steering import Steering, beside
from musictx.model.protocol import SourceModel
from musictx.music.grid import REST, Grid
from musictx.music.score import Meter
from musictx.tokenizers import Ids
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import Grammar, build_grammar

Report = Callable[[int, int], None]


class Voices(NamedTuple):
    """All four voices (S, 4), the soprano as it was given, and nats a token of the others under the model alone."""

    grid: Grid
    mean_log_p: float


class BelowMelody:
    """The grammar of four voices, of which the first is given: rows draw the others. Obeys `Grammar`."""

    def __init__(self, grammar: Grammar, melody: Tensor, voices: int, steering: Steering | None = None) -> None:
        """`grammar` and `steering` have seen nothing yet; `melody` are the soprano's ids (S,)."""
        self.grammar, self.melody, self.lower, self.steering = grammar, melody, voices - 1, steering
        self.drawn = 0
        self._sing()

    def legal(self) -> Tensor:
        return self.grammar.legal()

    def update(self, ids: Tensor) -> None:
        self.grammar.update(ids)
        self.drawn += 1
        if self.drawn % self.lower == 0 and self.drawn < len(self.melody) * self.lower:
            self._sing()

    def move(self, rows: Tensor) -> None:
        self.grammar.move(rows)

    def _sing(self) -> None:
        sung = self.melody[self.drawn // self.lower].expand(len(self.grammar.legal()))
        self.grammar.update(sung)
        if self.steering is not None:
            self.steering.update(sung)


@torch.inference_mode()
def draw_rows(
    source: Tensor,
    heard: Tensor,
    count: int,
    around: Callable[[Grammar, Steering | None], Grammar],
    model: SourceModel,
    tokenizer: ChoraleTokenizer,
    quarter_s: float,
    request: Accompany,
    *,
    given: Sequence[int] = (),
    meter: Meter | None = None,
    from_s: float = 0.0,
    device: str = "cpu",
    report: Report = lambda done, of: None,
) -> Iterator[tuple[Ids, NDArray[np.float64]]]:
    """`count` ids and their log-probabilities (T,), as often as a request asks, beside a source (S,) and after what is
    heard (T,). `around` makes the grammar; `given` are as in `Stream`, with a log-probability of 0. With seed guidance
    above 0 each row has a second one beside it, which hears no source. Chords count bars of the `meter`, and the source
    begins at `from_s`. `report` gets how many tokens of how many are drawn, and may raise to end the drawing. Raises
    ConfigError, NanError."""
    strength, several, variations = request.sampling.strength, rows_each(request), request.variations
    sampling = request.sampling if strength else replace(request.sampling, seed_guidance=None)  # 0 takes no time
    sources = [source, torch.full_like(source, tokenizer.vocab.pad)] if strength else [source]
    start = model.init_state(torch.stack(sources), len(heard) + count + 1)
    read = torch.cat([source.new_tensor([tokenizer.vocab.bos]), heard]).expand(len(sources), -1)
    logits = model.prefill(read, start)  # (streams, V)
    meter, written = replace(meter or Meter(), quarter_s=quarter_s), heard.cpu().numpy().astype(np.uint16)
    at_once = max(request.rows_at_once // several, 1)
    for first in range(0, variations, at_once):
        each = range(first, min(first + at_once, variations))
        keys = [key for k in each for key in keys_of(request.random_seed, k, several)]
        grammar = build_grammar(tokenizer, request.rules, [written] * len(keys), [quarter_s] * len(keys), device)
        steering = beside(
            request.control, tokenizer, written, meter, device, rows=len(keys), from_s=from_s, higher=request.transpose
        )
        chance = ByChance(sampling, keys, device, steering)
        of_row = torch.arange(len(sources), device=device).repeat(len(keys))  # (B · streams,)
        rows = around(grammar, steering)
        stream = Stream(model, logits[of_row], start.take(of_row), rows, chance, len(sources), given)
        particles, moves, drawn = Particles(stream, several, keys), list[NDArray[np.int64]](), list[Drawn]()
        for each_row in islice(stream, count):
            drawn.append(each_row)
            report(first // at_once * count + len(drawn), -(-variations // at_once) * count)
            if len(drawn) % LOOK_EVERY == 0 or len(drawn) == count:
                if not stream.finite.all():
                    raise NanError
                moves.append(particles.look(last=len(drawn) == count))
        yield from zip(*traced(drawn, moves, particles.best()), strict=True)


def traced(
    drawn: list[Drawn], moves: list[NDArray[np.int64]], rows: NDArray[np.int64]
) -> tuple[Ids, NDArray[np.float64]]:
    """The ids and log-probabilities (N, T) of some rows (N,), from the last token back through all moves of rows."""
    ids, log_p = (torch.stack(column, 1).cpu().numpy() for column in zip(*drawn, strict=True))  # (B, T)
    parts = []
    for k, moved in reversed(list(enumerate(moves))):
        rows = moved[rows]
        part = slice(k * LOOK_EVERY, (k + 1) * LOOK_EVERY)
        parts.append((ids[rows, part], log_p[rows, part]))
    found, nats = (np.concatenate(column[::-1], 1) for column in zip(*parts, strict=True))
    return found.astype(np.uint16), nats.astype(np.float64)


def draw_voices(
    melody: NDArray[np.integer],
    model: SourceModel,
    tokenizer: ChoraleTokenizer,
    quarter_s: float,
    request: Accompany,
    *,
    device: str = "cpu",
    **more: Any,
) -> list[Voices]:
    """Alto, tenor and bass for a soprano (S,) of pitches or REST, as often as a request asks; `more` as in `draw_rows`.
    Variation k is a function of melody, seed and k alone. Raises ConfigError for rules that cannot be kept, and for a
    melody longer than the model has positions. Raises NanError for a model that gives no numbers."""
    steps = np.full((len(melody), tokenizer.voices), REST, np.int16)
    steps[:, 0] = melody
    soprano = torch.from_numpy(tokenizer.encode_grid(steps)[:: tokenizer.voices].astype(np.int64)).to(device)

    def below(grammar: Grammar, steering: Steering | None) -> Grammar:
        return BelowMelody(grammar, soprano, tokenizer.voices, steering)

    asked = soprano[:0], len(soprano) * (tokenizer.voices - 1), below, model, tokenizer, quarter_s, request
    out = []
    for ids, log_p in draw_rows(soprano, *asked, device=device, **more):
        lower = tokenizer.pitch[ids].reshape(len(soprano), -1)  # (S, 3)
        grid = np.concatenate([steps[:, :1], lower.astype(np.int16)], 1)
        out.append(Voices(grid, float(log_p.mean())))
    return out
