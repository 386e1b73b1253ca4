"""Four voices with fixed places, which an encoder reads; the decoder writes the rest by sixteenths.

Guidance is `guide` with a second stream without the source (Ho and Salimans 2022, Classifier-Free Diffusion Guidance;
of language models Sanchez et al. 2023)."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError
from musictx.generate.batch import Batch, Progress
from musictx.generate.engine import ByChance, Stream
from musictx.generate.particles import Particles, random_keys
from musictx.generate.requests import Accompany, Length
from musictx.generate.steering import steer_accompaniment
from musictx.model.steps import SourcePlayer
from musictx.music.grid import OPEN, REST, Grid
from musictx.music.score import Meter
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.chorale.rules import GridRules
from musictx.tokenizers.grammar import Grammar, build_grammar
from musictx.tokenizers.rules import parallel

Report = Callable[[int, int], None]


class Harmonisation(NamedTuple):
    """Four voices (S, 4), and the mean log-probability of their new ids under the model alone, in nats."""

    grid: Grid
    mean_log_p: float


class AroundVoices:
    """The `Grammar` of voices with fixed places; rules hold towards fixed notes below and in the next step too."""

    def __init__(self, grammar: Grammar, forced_ids: list[int], tokenizer: ChoraleTokenizer) -> None:
        """`forced_ids`, -1 where free, follow the steps that `grammar` has read, and end one step ahead."""
        self.grammar, self.forced_ids, self.tokenizer = grammar, forced_ids, tokenizer
        self.pitch, self.position = tokenizer.pitch, 0  # (V,)

    def legal(self) -> NDArray[np.bool_]:
        may, rest = self.grammar.legal().copy(), self.tokenizer.rest  # (B, V)
        v = self.position % self.tokenizer.voices
        if isinstance(self.grammar, GridRules) and self.grammar.no_parallels:
            may &= ~self._leaves_in_parallels(self.grammar, v)
        for lower in range(v + 1, self.tokenizer.voices):
            below = self.forced_ids[self.position + lower - v]
            if below >= 0 and below != rest and isinstance(self.grammar, GridRules):
                may &= self._fits_above(self.grammar, v, lower, int(self.pitch[below]))
        may[:, rest] |= ~may.any(1)  # as in `GridRules`
        return may

    def _fits_above(self, grammar: GridRules, v: int, lower: int, below: int) -> NDArray[np.bool_]:
        """(B, V) the ids with which voice `v` neither crosses the pitch `below` nor makes parallels with it."""
        goes: NDArray[np.bool_] = ((self.pitch >= below) | (self.pitch == REST) | (not grammar.order))[None]
        if grammar.no_parallels:
            then, then_below = grammar.last[:, v, None], grammar.last[:, lower, None]  # (B, 1)
            goes = goes & ~parallel(self.pitch, below, then, then_below)
        return goes

    def _leaves_in_parallels(self, grammar: GridRules, v: int) -> NDArray[np.bool_]:
        """(B, V) the ids from which voice `v` makes parallels into fixed notes of the next step."""
        n, first = self.tokenizer.voices, self.position - v
        now, then = self.forced_ids[first : first + n], self.forced_ids[first + n :][:n]
        parallels = np.zeros((len(grammar.last), len(self.pitch)), bool)
        for other in range(n):
            if other == v or not then or min(then[v], then[other]) < 0 or (other > v and now[other] < 0):
                continue
            pitch = grammar.last[:, other, None] if other < v else self.pitch[now[other]]
            parallels |= parallel(self.pitch[then[v]], self.pitch[then[other]], self.pitch, pitch)
        return parallels

    def update(self, ids: NDArray[np.int64]) -> None:
        self.grammar.update(ids)
        self.position += 1

    def move(self, rows: NDArray[np.int64]) -> None:
        self.grammar.move(rows)


def draw_around(
    template: NDArray[np.integer],
    player: SourcePlayer,
    tokenizer: ChoraleTokenizer,
    quarter_s: float,
    request: Accompany,
    *,
    meter: Meter | None = None,
    from_s: float = 0.0,
    higher: int = 0,
    report: Report = lambda done, of: None,
) -> list[Harmonisation]:
    """Writes the OPEN places of a grid (S, 4) that begins at `from_s` of the `meter` and is so many semitones `higher`
    than the melody, once a variation.

    Variation k depends on the grid, the random seed and k alone. `report` gets the tokens drawn and their total, and
    may raise. Raises UserError where nothing is open, NanError, and ConfigError for impossible rules and for a grid
    longer than the model."""
    free, n, vocab = template == OPEN, tokenizer.voices, tokenizer.vocab
    if not free.any():
        raise UserError("every voice is given, and none is left to write", "name the voices that the file has")
    first, last = (int(free.any(1).nonzero()[0][k]) for k in (0, -1))
    ids = tokenizer.encode_grid(np.where(free, REST, template))  # (4S,)
    before, count = ids[: first * n], (last + 1 - first) * n
    forced_ids = np.where(free.flatten(), -1, ids.astype(int))[len(before) : (last + 2) * n].tolist()
    is_free = np.array(forced_ids[:count]) < 0
    source = np.where(free.flatten(), vocab.pad, ids).astype(np.int64)
    context = np.append(vocab.bos, before).astype(np.int64)

    guides = bool(request.sampling.strength)
    sampling = request.sampling if guides else replace(request.sampling, seed_guidance=None)  # 0 takes no time
    sources = [source, np.full_like(source, vocab.pad)] if guides else [source]
    start = player.begin(np.stack(sources), len(context) + count)
    logits = start.prefill(np.tile(context, (len(sources), 1)))  # (streams, V)
    meter, several, out = replace(meter or Meter(), quarter_s=quarter_s), request.rows_each, list[Harmonisation]()
    at_once = max(request.rows_at_once // several, 1)
    for done in range(0, request.variations, at_once):
        each = range(done, min(done + at_once, request.variations))
        keys = [key for k in each for key in random_keys(request.random_seed, k, several)]
        grammar = build_grammar(tokenizer, request.rules, [before] * len(keys), [quarter_s] * len(keys))
        steering = steer_accompaniment(
            request.control, tokenizer, before, meter, rows=len(keys), from_s=from_s, higher=higher
        )
        of_row = np.tile(np.arange(len(sources)), len(keys))  # (B · streams,)
        stream = Stream(
            start.take(of_row),
            logits[of_row],
            AroundVoices(grammar, forced_ids, tokenizer),
            ByChance(sampling, keys, steering),
            len(sources),
            forced_ids=forced_ids[:count],
        )
        particles = Particles(stream, several, keys) if several > 1 else None
        progress = [Progress(Length(tokens=count), meter, tokenizer, before, quarter_s) for _ in keys]
        batch = Batch(stream, progress, count, particles)
        for k, _ in enumerate(batch, 1):
            report(done // at_once * count + k, -(-request.variations // at_once) * count)
        for take in batch.takes():
            grid = np.where(free, REST, template).astype(np.int16)
            grid[first : last + 1] = tokenizer.pitch[take.ids].reshape(-1, n)
            out.append(Harmonisation(grid, float(take.log_p[is_free].mean())))
    return out
