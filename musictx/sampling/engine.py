"""Sampling over ids: every prompt read once, in blocks, then one cached step a token for all rows together."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from musictx.model.protocol import LanguageModel
from musictx.sampling.filters import draw
from musictx.sampling.grammar import Grammar
from musictx.sampling.settings import Sampling
from musictx.sampling.streams import Uniforms

PREFILL_BLOCK = 512  # tokens: attention over a whole prompt of T at once would take memory O(T²)


class Drawn(NamedTuple):
    """One token a row: its id, and under the model alone the log-probability of it and of the end (B,) each."""

    ids: Tensor
    log_p: Tensor
    end_log_p: Tensor


class Row(NamedTuple):
    """Which prompt a row continues, and the key of its chance: (seed, k)."""

    prompt: int
    key: tuple[int, int]


class Stream:
    """Rows that go on for ever, a token each at every `step`. What a row draws depends on its prompt and key alone.

    Prompts (T,) int64 may differ in length. `room` tokens fit the model's state; with `rolling` they are the last.
    Nothing here waits for the device: whoever steps must look at `finite` now and then.
    """

    def __init__(
        self,
        model: LanguageModel,
        prompts: Sequence[Tensor],
        rows: Sequence[Row],
        sampling: Sampling,
        grammar: Grammar,
        eos: int,
        room: int,
        rolling: bool,
    ) -> None:
        self.model, self.sampling, self.grammar, self.eos = model, sampling, grammar, eos
        self.logits, self.state = prefill(model, prompts, [row.prompt for row in rows], room, rolling)
        device = self.logits.device
        self.uniforms = Uniforms([row.key for row in rows], device)
        self.temperature = torch.full((len(rows), 1), sampling.temperature, device=device)
        self.finite = torch.ones(len(rows), dtype=torch.bool, device=device)  # False once a row's logits were not
        self.ids: Tensor | None = None

    @torch.inference_mode()
    def step(self) -> Drawn:
        if self.ids is not None:
            self.logits = self.model.step(self.ids, self.state)  # (B, V)
        logits = self.logits.float()
        legal = torch.where(self.grammar.legal(), logits, -torch.inf)
        ids = draw(legal, self.sampling, self.temperature, self.uniforms.next())
        self.grammar.update(ids)
        log_p = logits.log_softmax(-1)  # (B, V) all NaN where a logit is NaN or +infinity, or none is finite
        end_log_p = log_p[:, self.eos]
        self.finite &= ~end_log_p.isnan()
        self.ids = ids
        return Drawn(ids, log_p.gather(1, ids[:, None])[:, 0], end_log_p)


@torch.inference_mode()
def prefill(
    model: LanguageModel, prompts: Sequence[Tensor], of_row: Sequence[int], room: int, rolling: bool
) -> tuple[Tensor, Any]:
    """Each prompt (T,) read once -> logits (B, V) after it and the joint state; row b continues prompt of_row[b]."""
    logits, states = {}, {}
    for i in sorted(set(of_row)):
        state = model.init_state(1, room, rolling)
        for start in range(0, len(prompts[i]), min(PREFILL_BLOCK, room)):
            block = prompts[i][None, start : start + min(PREFILL_BLOCK, room)]
            logits[i] = model.prefill(block, state)  # (1, V)
        states[i] = state
    each = [states[i] for i in of_row]
    joint = each[0].repeat(len(each)) if len(states) == 1 else type(each[0]).join(each)
    return torch.cat([logits[i] for i in of_row]), joint
