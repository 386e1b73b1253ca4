"""Many rows after few prompts: one product reads each prompt's keys and values for all its rows. Behind a long seed, a
step on a CPU mostly waits for them."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.model.cache import KVCache

BLOCK = 4  # rows in a product, always: else a row's rounding, and so its music, would depend on the number of others


class PromptCache(KVCache):
    """Each row's tokens after its prompt, for steps of one token. Not for forms of position that add a table to the
    logits."""

    def __init__(self, prompts: Sequence[KVCache], of_row: Sequence[int], room: int) -> None:
        """Row b continues prompts[of_row[b]], a cache of one row; `room` is for new tokens."""
        rows, like = [prompts[i] for i in of_row], prompts[0]
        shape = like.k.shape[0], len(rows), like.k.shape[2], room * (1 + (like.window is not None))
        k, v = (x.new_empty((*shape, x.shape[4])) for x in (like.k, like.v))
        length = max(p.length for p in rows)
        behind = torch.tensor([[length - p.length] for p in rows], device=k.device)
        super().__init__(k, v, like.clock, like.window, length, 0, behind if behind.any() else None)
        self._copy_rest(rows)
        self.longest = length  # tokens of the longest prompt
        self.blocks = list[tuple[KVCache, Tensor]]()  # a prompt and at most BLOCK of its rows
        for i in sorted(set(of_row)):
            whole = torch.tensor([b for b, j in enumerate(of_row) if j == i], device=k.device)
            self.blocks += [(prompts[i], part) for part in torch.split(whole, BLOCK)]

    def _masked(self, t: int) -> None:
        """No row sees a slot that is not its own."""

    def take(self, rows: Tensor) -> KVCache:
        raise TypeError("rows of a PromptCache only move among those of their prompt")

    def attend(self, layer: int, q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        """One query a row, (B, H, 1, Dk), over its prompt and its own keys and values (B, H, T, ·) -> (B, H, 1, D)."""
        assert q.shape[2] == 1, "a prompt cache takes steps of one token"
        q, t = q * scale, k.shape[2]
        own_logits = (k @ q.mT)[..., 0]  # (B, H, T)
        outputs, own_weights = v.new_empty(*q.shape[:2], v.shape[3]), v.new_empty(*q.shape[:2], t)  # (B, H, ·)
        n_own = self.length - self.longest + 1
        for prompt, rows in self.blocks:
            most = prompt.end if self.window is None else min(self.window - n_own, prompt.end)
            slots = slice(prompt.end - max(most, 0), prompt.end)
            keys, values = prompt.k[layer, 0, :, slots], prompt.v[layer, 0, :, slots]  # (H, S, ·)
            n, empty = len(rows), (0, 0, 0, 0, 0, BLOCK - len(rows))  # which fill the block up
            queries = F.pad(q[rows, :, 0], empty).permute(1, 2, 0)  # (H, Dk, BLOCK)
            logits = torch.cat([(keys @ queries).permute(2, 0, 1)[:n], own_logits[rows]], 2)  # (N, H, S + T)
            weights = logits.to(torch.promote_types(q.dtype, torch.float32)).softmax(2).to(v.dtype)
            own_weights[rows] = weights[..., -t:]
            of_prompt = F.pad(weights[..., :-t], empty).transpose(0, 1)  # (H, BLOCK, S)
            outputs[rows] = (of_prompt @ values).transpose(0, 1)[:n]
        return outputs[:, :, None] + own_weights[:, :, None] @ v
