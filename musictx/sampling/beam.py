"""Beam search: the likeliest music instead of music drawn by chance. For study: it soon goes in circles."""

from typing import NamedTuple

import torch
from torch import Tensor

from musictx.model.protocol import LanguageModel
from musictx.sampling.engine import prefill
from musictx.sampling.grammar import Grammar


class Beams(NamedTuple):
    """Ids (K, T), the likeliest row first, and each token's log-probability under the model alone (K, T)."""

    ids: Tensor
    log_p: Tensor


@torch.inference_mode()
def beam_search(
    model: LanguageModel, prompt: Tensor, n_tokens: int, beams: int, grammar: Grammar, room: int, rolling: bool
) -> Beams:
    """The `beams` likeliest legal continuations found of a prompt (T,), all of `n_tokens`; `grammar` has one row."""
    logits, state = prefill(model, [prompt], [0], room, rolling)
    ids = torch.empty(1, 0, dtype=torch.long, device=prompt.device)
    log_p = torch.empty(1, 0, device=prompt.device)
    for i in range(n_tokens):
        each = logits.float().log_softmax(-1)  # (K, V)
        total = (log_p.sum(1, keepdim=True) + each).masked_fill(~grammar.legal(), -torch.inf)
        best = total.flatten().topk(min(beams, int(total.isfinite().sum()))).indices
        rows, drawn = best // each.shape[1], best % each.shape[1]
        ids = torch.cat([ids[rows], drawn[:, None]], 1)
        log_p = torch.cat([log_p[rows], each[rows, drawn][:, None]], 1)
        grammar = grammar.take(rows)
        grammar.update(drawn)
        if i + 1 < n_tokens:
            state = state.take(rows)
            logits = model.step(drawn, state)
    return Beams(ids, log_p)
