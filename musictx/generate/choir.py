"""Four voices of which some are given, anywhere: a bass, two outer voices, all but the alto of two bars. The model
writes the rest, sixteenth by sixteenth, and hears all that is given before it begins."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import UserError
from musictx.generate.requests import Accompany
from musictx.generate.steering import Steering
from musictx.generate.voices import Voices, draw_rows
from musictx.model.protocol import SourceModel
from musictx.music.grid import OPEN, REST
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.chorale.rules import GridRules
from musictx.tokenizers.grammar import Grammar
from musictx.tokenizers.rules import parallel


class AroundVoices:
    """The grammar of four voices of which some are given; rows draw at free places alone. A free voice does not cross a
    given one below, nor move in parallels with it, where the rules forbid that; nor does it leave for given notes of
    the next step in parallels. Obeys `Grammar`."""

    def __init__(
        self, grammar: Grammar, given: list[int], tokenizer: ChoraleTokenizer, device: torch.device | str
    ) -> None:
        """`grammar` has seen all steps before those of `given`, ids in their order, -1 where free. The last step of
        `given` may only be looked at."""
        self.grammar, self.given, self.tokenizer = grammar, given, tokenizer
        self.pitch = torch.from_numpy(tokenizer.pitch.astype(np.int64)).to(device)  # (V,)
        self.drawn = 0

    def legal(self) -> Tensor:
        may, rest = self.grammar.legal().clone(), self.tokenizer.rest  # (B, V)
        v = self.drawn % self.tokenizer.voices
        if isinstance(self.grammar, GridRules) and self.grammar.no_parallels:
            may &= ~self._leaves_in_parallels(self.grammar, v)
        for lower in range(v + 1, self.tokenizer.voices):
            below = self.given[self.drawn + lower - v]
            if below >= 0 and below != rest and isinstance(self.grammar, GridRules):
                may &= self._goes_with(self.grammar, v, lower, int(self.pitch[below]))
        may[:, rest] |= ~may.any(1)  # as in `GridRules`
        return may

    def _goes_with(self, grammar: GridRules, v: int, lower: int, below: int) -> Tensor:
        """(B, V) the ids with which voice `v` neither crosses the pitch below nor moves in parallels with it."""
        goes = ((self.pitch >= below) | (self.pitch == REST))[None] | torch.tensor(not grammar.order)
        if grammar.no_parallels:
            then, then_below = grammar.last[:, v, None], grammar.last[:, lower, None]  # (B, 1)
            goes = goes & ~parallel(self.pitch[None], torch.full_like(then, below), then, then_below)
        return goes

    def _leaves_in_parallels(self, grammar: GridRules, v: int) -> Tensor:
        """(B, V) the ids from which voice `v` would move in parallels with another into the next step, as far as the
        notes of both are known."""
        n, first = self.tokenizer.voices, self.drawn - v
        now, then = self.given[first : first + n], self.given[first + n :][:n]
        parallels = torch.zeros(len(grammar.last), len(self.pitch), dtype=torch.bool, device=self.pitch.device)
        for other in range(n):
            if other == v or not then or min(then[v], then[other]) < 0 or (other > v and now[other] < 0):
                continue
            sung = grammar.last[:, other, None] if other < v else self.pitch[now[other]]
            parallels |= parallel(self.pitch[then[v]], self.pitch[then[other]], self.pitch[None], sung)
        return parallels

    def update(self, ids: Tensor) -> None:
        self.grammar.update(ids)
        self.drawn += 1

    def move(self, rows: Tensor) -> None:
        self.grammar.move(rows)


def draw_around(
    given: NDArray[np.integer],
    model: SourceModel,
    tokenizer: ChoraleTokenizer,
    quarter_s: float,
    request: Accompany,
    *,
    device: str = "cpu",
    **more: Any,
) -> list[Voices]:
    """Writes the OPEN places of a grid (S, 4), as often as a request asks; `more` and errors as in `draw_voices`. Nats
    are a token of those places. Raises UserError where nothing is open."""
    free = given == OPEN
    if not free.any():
        raise UserError("every voice is given, and none is left to write", "name the voices that the file has")
    first, last = (int(free.any(1).nonzero()[0][k]) for k in (0, -1))
    ids = torch.from_numpy(tokenizer.encode_grid(np.where(free, REST, given)).astype(np.int64)).to(device)  # (4S,)
    source = torch.where(torch.from_numpy(free.flatten()).to(device), tokenizer.vocab.pad, ids)
    before = ids[: first * tokenizer.voices]
    forced = torch.where(source == tokenizer.vocab.pad, -1, ids)[len(before) : (last + 2) * tokenizer.voices].tolist()
    count = (last + 1 - first) * tokenizer.voices
    asked = np.array(forced[:count]) < 0

    def around(grammar: Grammar, _: Steering | None) -> Grammar:  # steering sees every id of the stream
        return AroundVoices(grammar, forced, tokenizer, device)

    rows = draw_rows(
        source, before, count, around, model, tokenizer, quarter_s, request, given=forced[:count], device=device, **more
    )
    out = []
    for row, log_p in rows:
        grid = np.where(free, REST, given).astype(np.int16)
        grid[first : last + 1] = tokenizer.pitch[row].reshape(-1, tokenizer.voices)
        out.append(Voices(grid, float(log_p[asked].mean())))
    return out
