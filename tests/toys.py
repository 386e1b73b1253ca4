"""From outside the package, as small as can be: an objective that adds ids, and a model that takes two inputs."""

from dataclasses import dataclass

import torch
from torch import nn

from musictx.model.build import Kind
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.setting import setting
from musictx.tokenizers import EventRange


class Infill(NextToken):
    """The next token, with more ids. A random beginning of the window is given, and a share stays as it is."""

    added = (EventRange("TO", 0, 0), EventRange("FILL", 0, 0), EventRange("END", 0, 0))
    continuous = False

    def __init__(self, tokenizer, plain=0.5):
        super().__init__(tokenizer)
        self.plain = plain

    def example(self, window, rng):
        inputs, targets = super().example(window, rng)
        if rng.random() < self.plain:
            return Example(inputs, targets)
        given = torch.arange(len(targets)) < rng.integers(1, len(targets) // 2)
        return Example(inputs, targets.masked_fill(given, self.pad))


@dataclass(frozen=True)
class PairConfig:
    vocab_size: int
    d_model: int = setting(16, "width")
    n_layers: int = setting(1, "layers")
    dropout: float = setting(0.0, "share dropped in training")


class Pair(nn.Module):
    """source (B, S), ids (B, T) -> logits (B, T, V): the least that takes two."""

    cycle = 1

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        self.cells = nn.GRU(config.d_model, config.d_model, config.n_layers, batch_first=True)
        self.head = nn.Linear(config.d_model, config.vocab_size)

    def forward(self, source, ids):
        heard = self.embed(source)[:, torch.arange(ids.shape[1]) // 3]  # (B, T, C) of the same sixteenth
        return self.head(self.cells(self.embed(ids) + heard)[0])


PAIR = Kind(
    PairConfig,
    Pair,
    lambda config: f"{config.n_layers} layers for pairs",
    inputs=("source", "ids"),
)
