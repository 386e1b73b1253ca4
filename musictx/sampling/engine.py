"""Sampling over ids: a prefill of the prompt in blocks, then one cached step per token."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.protocol import LanguageModel

PREFILL_BLOCK = 512  # tokens: attention over a whole prompt of T at once would take memory O(T²)
MAX_SEED = 2**63 - 1


@dataclass(frozen=True)
class Sampling:
    """How a next token is drawn; temperature 0 takes the likeliest. Raises ConfigError for impossible values."""

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None

    def __post_init__(self) -> None:
        # logits overflow when divided by less, and -inf becomes NaN when divided by very much more
        if self.temperature != 0 and not 1e-3 <= self.temperature <= 1e3:
            raise ConfigError(f"sampler.temperature={self.temperature}: give 0 (greedy) or 0.001 to 1000")
        if self.top_k is not None and self.top_k < 1:
            raise ConfigError(f"sampler.top_k={self.top_k}: give 1 or more, or null for no limit")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"sampler.top_p={self.top_p}: give a share above 0 up to 1, or null for no limit")


def filter_logits(logits: Tensor, sampling: Sampling) -> Tensor:
    """Logits (B, V) with everything outside the top k and the nucleus at -inf.

    Nucleus: the smallest set of tokens whose probability reaches `top_p` (Holtzman et al. 2020, section 3.1).
    """
    if sampling.temperature > 0:
        logits = logits / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < logits.shape[-1]:
        least = logits.topk(sampling.top_k).values[:, -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if sampling.top_p is not None and sampling.top_p < 1:
        ordered, order = logits.sort(descending=True)
        p = ordered.softmax(-1)
        before = p.cumsum(-1) - p
        before[:, 0] = -1.0  # the likeliest token always stays, even if top_p is 0 in single precision
        drop = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= sampling.top_p)
        logits = logits.masked_fill(drop, -torch.inf)
    return logits


def draw(logits: Tensor, sampling: Sampling, generators: list[torch.Generator]) -> Tensor:
    """One token per row (B,) from logits (B, V); row b draws from its own generator."""
    if sampling.temperature == 0:
        return logits.argmax(-1)
    p = filter_logits(logits.float(), sampling).softmax(-1)
    rows = [torch.multinomial(row, 1, generator=g) for row, g in zip(p, generators, strict=True)]
    return torch.cat(rows)


@torch.inference_mode()
def sample(
    model: LanguageModel,
    prompt: Tensor,
    n_tokens: int,
    variations: int,
    sampling: Sampling,
    seed: int,
    legal: Tensor,
) -> Iterator[Tensor]:
    """Yields up to `n_tokens` next tokens (variations,) after a prompt (T,), all rows from one prefill.

    `legal` (V,) bool says which ids may be drawn at all. Row k depends on (seed, k) alone.
    """
    device = prompt.device
    state = model.init_state(1, len(prompt) + n_tokens)
    for start in range(0, len(prompt), PREFILL_BLOCK):
        logits = model.prefill(prompt[None, start : start + PREFILL_BLOCK], state)  # (1, V)
    logits = logits.expand(variations, -1)  # (B, V)
    state = state.repeat(variations)
    # PyTorch takes seeds of 64 bits; the factor is odd, so that no two seeds fall together
    seeds = [(seed * 1_000_003 + k) % 2**63 for k in range(variations)]
    generators = [torch.Generator(device).manual_seed(s) for s in seeds]
    for i in range(n_tokens):
        ids = draw(logits.masked_fill(~legal, -torch.inf), sampling, generators)  # (B,)
        yield ids
        if i + 1 < n_tokens:
            logits = model.step(ids, state)
