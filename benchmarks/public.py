"""A rewrite of how the public PyTorch code of the Music Transformer works, to compare with ours. That code itself never
runs: the benchmarks' rows call this one `NAME`.

It models gwinndr/MusicTransformer-Pytorch with its relative attention on (its model/rpr.py,
model/music_transformer.py and utilities/run_model.py), with which jason9693/MusicTransformer-pytorch mostly agrees:

- encoder layers of nn.Transformer's first form: norm after the sum, ReLU, dropout, a last norm, a separate output
  layer. Float32. Sinusoidal positions beside the relative ones. Time first, batch and heads folded into one dimension
- one relative table a layer, shared by its heads; relative logits by masking, padding and reshaping a (T, T) matrix a
  head. Every call builds the causal mask again, and computes the weights' mean over heads and throws it away
- generation reads the whole sequence again for every token, and takes the softmax at all positions. It uses the last
- a training step is Adam under the schedule of Vaswani et al. 2017, section 5.3, without clipping, mixed precision or
  compiling; the loss is read on the host after each

It leaves out printing, and what only the second code does. These are a table that is not trained, embeddings times
sqrt(C), no last norm, half as wide a feed-forward layer. Sizes are free, so that both models can have the same.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NAME = "our rewrite of the public code"
WARMUP_STEPS = 4000


@dataclass(frozen=True)
class PublicConfig:
    """Sizes; the defaults are the public code's, which has none for `vocab_size`."""

    vocab_size: int
    d_model: int = 512
    n_layers: int = 6
    n_heads: int = 8
    d_ff: int = 1024
    dropout: float = 0.1
    attention_dropout: float = 0.1  # the public code has one number for both
    max_sequence: int = 2048


class PublicAttention(nn.Module):
    """x (T, B, C) -> (T, B, C). Row M - 1 - d of the table (M, D) is the embedding of distance d."""

    def __init__(self, config: PublicConfig) -> None:
        super().__init__()
        c = config.d_model
        self.n_heads, self.dropout = config.n_heads, config.attention_dropout
        self.qkv, self.project = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.table = nn.Parameter(torch.empty(config.max_sequence, c // config.n_heads))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        t, b, c = x.shape
        h = self.n_heads
        q, k, v = self.qkv(x).chunk(3, -1)
        q = q * (c // h) ** -0.5
        q, k, v = (y.contiguous().view(t, b * h, c // h).transpose(0, 1) for y in (q, k, v))  # (B·H, T, D)
        logits = torch.bmm(q, k.transpose(1, 2))
        logits += mask
        logits += relative_logits(q, self.table)
        weights = F.dropout(logits.softmax(-1), self.dropout, self.training)
        out = torch.bmm(weights, v).transpose(0, 1).contiguous().view(t, b, c)
        _ = weights.view(b, h, t, t).sum(1) / h
        projected: Tensor = self.project(out)
        return projected


def relative_logits(q: Tensor, table: Tensor) -> Tensor:
    """q (N, T, D) -> q_i · e_{i-j} at (i, j) for j <= i, (N, T, T)."""
    n, t, _ = q.shape
    by_distance = torch.einsum("nid,md->nim", q, table[-t:])
    exists = torch.ones(t, t, device=q.device).triu().flip(0)  # row i knows the distances 0 to i
    padded = F.pad(by_distance * exists, (1, 0))  # (N, T, T + 1)
    return padded.reshape(n, t + 1, t)[:, 1:]


class PublicLayer(nn.Module):
    def __init__(self, config: PublicConfig) -> None:
        super().__init__()
        c = config.d_model
        self.attend = PublicAttention(config)
        self.up, self.down = nn.Linear(c, config.d_ff), nn.Linear(config.d_ff, c)
        self.norm_1, self.norm_2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.norm_1(x + self.dropout(self.attend(x, mask)))
        mixed = self.down(self.dropout(F.relu(self.up(x))))
        out: Tensor = self.norm_2(x + self.dropout(mixed))
        return out


class PublicTransformer(nn.Module):
    """ids (B, T) -> logits (B, T, V)."""

    positions: Tensor  # (M, 1, C)

    def __init__(self, config: PublicConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.layers = nn.ModuleList(PublicLayer(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model)
        self.head = nn.Linear(config.d_model, config.vocab_size)
        self.dropout = nn.Dropout(config.dropout)
        self.register_buffer("positions", _sines(config.max_sequence, config.d_model))
        for p in self.layers.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, ids: Tensor) -> Tensor:
        t = ids.shape[1]
        mask = torch.full((t, t), -torch.inf, device=ids.device).triu(1)
        x = self.embed(ids).permute(1, 0, 2)  # (T, B, C)
        x = self.dropout(x + self.positions[:t])
        for layer in self.layers:
            x = layer(x, mask)
        logits: Tensor = self.head(self.norm(x).permute(1, 0, 2))
        return logits


def _sines(n: int, width: int) -> Tensor:
    angle = torch.arange(n)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, None, :width]  # (M, 1, C)


@torch.no_grad()
def next_id(model: PublicTransformer, ids: Tensor, n_events: int) -> Tensor:
    """Draws one more token (1,) after ids (1, T), reading all of them; never one from `n_events` on."""
    p = model(ids).softmax(-1)[..., :n_events]
    drawn: Tensor = torch.distributions.Categorical(probs=p[:, -1]).sample()
    return drawn


class PublicTraining:
    """The public code's training loop, one batch at a time."""

    def __init__(self, model: PublicTransformer, pad: int) -> None:
        self.model, self.loss = model.train(), nn.CrossEntropyLoss(ignore_index=pad)
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-8)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self._lr)

    def _lr(self, step: int) -> float:
        step = max(step, 1)
        return float(self.model.config.d_model**-0.5 * min(step**-0.5, step * WARMUP_STEPS**-1.5))

    def step(self, ids: Tensor) -> float:
        """ids (B, T + 1) -> the loss."""
        self.optimizer.zero_grad()
        logits = self.model(ids[:, :-1])
        loss = self.loss(logits.reshape(-1, logits.shape[-1]), ids[:, 1:].flatten())
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        return float(loss.detach())
