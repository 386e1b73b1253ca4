"""The voices below a melody, drawn by a model of a source and a target: the melody is given, sixteenth by sixteenth.

Guidance by the melody is `guidance.guided` with a second stream that does not see the melody. Some examples of training
hide it too (Ho and Salimans 2022, Classifier-Free Diffusion Guidance; of language models Sanchez et al. 2023).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.generate.engine import ByChance, Stream
from musictx.generate.filters import NanError
from musictx.generate.requests import Accompany
from musictx.generate.steering import Steering, beside
from musictx.model.protocol import SourceModel
from musictx.music.grid import REST, Grid
from musictx.music.score import Meter
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

    def _sing(self) -> None:
        sung = self.melody[self.drawn // self.lower].expand(len(self.grammar.legal()))
        self.grammar.update(sung)
        if self.steering is not None:
            self.steering.update(sung)


@torch.inference_mode()
def draw_voices(
    melody: NDArray[np.integer],
    model: SourceModel,
    tokenizer: ChoraleTokenizer,
    quarter_s: float,
    request: Accompany,
    *,
    meter: Meter | None = None,
    from_s: float = 0.0,
    device: str = "cpu",
    report: Report = lambda done, of: None,
) -> list[Voices]:
    """Alto, tenor and bass for a soprano (S,) of pitches or REST, as often as a request asks.
    Variation k is a function of melody, seed and k alone. With seed guidance above 0 each row has a second one beside
    it, which hears no melody. Chords count bars of the `meter`, and the melody begins at `from_s`. `report` gets how
    many tokens of how many are drawn, and may raise to end the drawing. Raises ConfigError for rules that cannot be
    kept, and for a melody longer than the model has positions. Raises NanError for a model that gives no numbers."""
    steps = np.full((len(melody), tokenizer.voices), REST, np.int16)
    steps[:, 0] = melody
    soprano = torch.from_numpy(tokenizer.encode_grid(steps)[:: tokenizer.voices].astype(np.int64)).to(device)
    n_tokens = len(soprano) * (tokenizer.voices - 1)
    sampling, variations, rows_at_once = request.sampling, request.variations, request.rows_at_once
    if not sampling.strength:
        sampling = replace(sampling, seed_guidance=None)  # 0 takes no time
    sources = [soprano] if sampling.strength is None else [soprano, torch.full_like(soprano, tokenizer.vocab.pad)]
    start = model.init_state(torch.stack(sources), n_tokens + 1)
    logits = model.prefill(soprano.new_tensor([[tokenizer.vocab.bos]] * len(sources)), start)  # (streams, V)
    meter = replace(meter or Meter(), quarter_s=quarter_s)
    where: dict[str, Any] = {"device": device, "from_s": from_s, "higher": request.transpose}
    steer = partial(beside, request.control, tokenizer, np.zeros(0, np.uint16), meter, **where)
    out = []
    for first in range(0, variations, rows_at_once):
        keys = [(request.random_seed, k) for k in range(first, min(first + rows_at_once, variations))]
        nothing = [np.zeros(0, np.uint16)] * len(keys)
        grammar = build_grammar(tokenizer, request.rules, nothing, [quarter_s] * len(keys), device)
        steering = steer(rows=len(keys))
        below = BelowMelody(grammar, soprano, tokenizer.voices, steering)
        chance = ByChance(sampling, keys, device, steering)
        of_row = torch.arange(len(sources), device=device).repeat(len(keys))  # (B · streams,)
        stream = Stream(model, logits[of_row], start.take(of_row), below, chance, len(sources))
        drawn = []
        for each in islice(stream, n_tokens):
            drawn.append(each)
            report(first // rows_at_once * n_tokens + len(drawn), -(-variations // rows_at_once) * n_tokens)
        if not stream.finite.all():
            raise NanError
        ids, log_p = (torch.stack(column, 1).cpu().numpy() for column in zip(*drawn, strict=True))
        for row, nats in zip(ids, log_p, strict=True):
            lower = tokenizer.pitch[row].reshape(len(soprano), -1)  # (S, 3)
            grid = np.concatenate([steps[:, :1], lower.astype(np.int16)], 1)
            out.append(Voices(grid, float(nats.astype(np.float64).mean())))
    return out
