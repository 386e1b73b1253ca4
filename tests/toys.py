"""From outside the package, as small as can be: an objective that fills a gap, and a model that takes two inputs."""

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from musictx.errors import ConfigError
from musictx.model.build import Kind
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.setting import setting
from musictx.tokenizers import EventRange


class Infill(NextToken):
    """A <to> C <fill> B <end>, the borders drawn by time; only B and its end count. A share stays as it is."""

    added = (EventRange("TO", 0, 0), EventRange("FILL", 0, 0), EventRange("END", 0, 0))
    continuous = False

    def __init__(self, tokenizer, plain=0.5):
        super().__init__(tokenizer)
        self.plain = plain
        self.pace = tokenizer.pace
        if self.pace is None:
            raise ConfigError("objective", got="infill", why=f"{tokenizer.name} tokens do not tell time")

    def example(self, window, rng):
        room, music = len(window), window[window != self.pad].numpy()
        if rng.random() < self.plain or len(music) < 8:
            return super().example(window, rng)
        vocab = self.tokenizer.vocab
        music = music[: room - 3]  # three ids more: the end of C goes
        clock = np.cumsum(self.pace[music])
        first, last = np.searchsorted(clock, np.sort(rng.uniform(0, clock[-1], 2)))
        a, b, c = music[: max(first, 1)], music[max(first, 1) : last], music[max(first, 1, last) :]
        to, fill, end = ([vocab.id(name)] for name in ("TO", "FILL", "END"))
        whole = torch.from_numpy(np.concatenate([a, to, c, fill, b, end]))
        targets = whole[1:].clone()
        targets[: len(a) + len(c) + 1] = self.pad  # what is given
        short = room - len(whole)
        return Example((F.pad(whole[:-1], (0, short), value=self.pad),), F.pad(targets, (0, short), value=self.pad))


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
    lambda config, pace: Pair(config),
    lambda config: (f"{config.n_layers} layers for pairs", ""),
    inputs=("source", "ids"),
)
