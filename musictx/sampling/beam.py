"""Beam search: finds the likeliest music instead of drawing. For study: it soon goes in circles."""

from collections.abc import Iterator

import torch
from torch import Tensor

from musictx.model.protocol import LanguageModel
from musictx.sampling.engine import Drawn, Stream, prefill
from musictx.tokenizers.grammar import Grammar


class Widest:
    """Extends every row by every legal id, and chooses the `beams` likeliest."""

    def __init__(self, beams: int, device: torch.device | str) -> None:
        self.beams = beams
        self.log_p = torch.empty(1, 0, device=device)  # (K, T) of each token so far, the model's own

    def __call__(self, logits: Tensor, log_p: Tensor, legal: Tensor) -> tuple[Tensor, Tensor | None]:
        total = (self.log_p.sum(1, keepdim=True) + log_p).masked_fill(~legal, -torch.inf)  # (K, V)
        best = total.flatten().topk(min(self.beams, int(total.isfinite().sum()))).indices
        rows, ids = best // log_p.shape[1], best % log_p.shape[1]
        self.log_p = torch.cat([self.log_p[rows], log_p[rows, ids][:, None]], 1)
        return ids, rows


class Beams:
    """The likeliest legal continuations that beam search finds for a prompt (T,), the likeliest row first. An iterator:
    a step at a time until all have `n_tokens`. `ids` and `log_p`, the model's own, are (K, T). `grammar` has one
    row."""

    def __init__(
        self,
        model: LanguageModel,
        prompt: Tensor,
        n_tokens: int,
        beams: int,
        grammar: Grammar,
        eos: int,
        room: int,
        rolling: bool,
    ) -> None:
        self.choose, self.n_tokens = Widest(beams, prompt.device), n_tokens
        self.stream = Stream(model, *prefill(model, [prompt], [0], room, rolling), grammar, self.choose, eos)
        self.ids = torch.empty(1, 0, dtype=torch.long, device=prompt.device)

    @property
    def log_p(self) -> Tensor:
        return self.choose.log_p

    def __iter__(self) -> Iterator[Drawn]:
        while self.ids.shape[1] < self.n_tokens:
            drawn = next(self.stream)
            assert drawn.rows is not None  # Widest gives them
            self.ids = torch.cat([self.ids[drawn.rows], drawn.ids[:, None]], 1)
            yield drawn
