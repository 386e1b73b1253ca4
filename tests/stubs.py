"""Models that say what a test wants, without weights, and a score continued."""

import math

import numpy as np
import torch

from musictx.generate.draw import continue_primers
from musictx.generate.primer import Primer
from musictx.music.score import Meter


class Saying:
    """Rows that count what they have seen."""

    def __init__(self, say, rows, length=0):
        self.say, self.rows, self.length = say, rows, length

    def prefill(self, ids):
        self.length += ids.shape[1]
        return self.say(self.length, self.rows)

    def step(self, ids):
        return self.prefill(ids[:, None])

    def take(self, rows):
        return Saying(self.say, len(rows), self.length)

    def move(self, rows):
        pass


class Said:
    """A player whose logits are `say(length, rows)` -> (rows, V), whatever it has been said."""

    window: int | None = 64
    cycle = 1

    def __init__(self, say):
        self.say = say

    def begin(self, room, rolling=False):
        return Saying(self.say, 1)

    def join(self, parts, of_row):
        return Saying(self.say, len(of_row), max(part.length for part in parts))


class Echo:
    """Knows one thing: a token comes again after `lag`. Where it cannot look so far back, all are alike. Keeps what it
    has read."""

    window, cycle = None, 1

    def __init__(self, vocab, lag, sure=0.9):
        self.v, self.lag, self.sure, self.read = vocab.size, lag, sure, []

    def __call__(self, ids):
        self.read.append(ids[0].tolist())
        logits = torch.zeros(*ids.shape, self.v)
        for t in range(self.lag, ids.shape[1] + 1):  # the token after t - 1
            logits[0, t - 1] = math.log((1 - self.sure) / (self.v - 1))
            logits[0, t - 1, ids[0, t - self.lag]] = math.log(self.sure)
        return logits


def noise(vocab_size, seed=0, loud=3.0, favourites=0):
    """Random logits; with `favourites`, so many ids that are always liked far better than the others."""
    chance = torch.Generator().manual_seed(seed)
    liked = torch.zeros(vocab_size)
    liked[torch.randperm(vocab_size, generator=chance)[:favourites]] = 30.0
    return Said(lambda length, rows: (torch.randn(rows, vocab_size, generator=chance) * loud + liked).numpy())


def restless(tokenizer):
    """Any note at any time, other logits at each step, the same for all rows."""
    v = tokenizer.vocab
    waits = np.abs(v.values("TIME_SHIFT") - 15) < 15 if not tokenizer.voices else 0.0
    liked = 3.0 * v.mask("VELOCITY") + 2.0 * v.mask("NOTE_OFF") + 3.0 * waits

    def say(length, rows):
        chance = torch.Generator().manual_seed(length)
        return np.tile((torch.randn(v.size, generator=chance).numpy() + liked).astype(np.float32), (rows, 1))

    return Said(say)


def continued(score, player, tokenizer, request):
    """The continuations of a whole score, or of nothing."""
    primer = None if score is None else Primer(score, score.duration_s, Meter(score.quarter_s))
    return continue_primers([primer], player, tokenizer, request)[0]


def whole(answer):
    """What a generator returns in the end."""
    while True:
        try:
            next(answer)
        except StopIteration as end:
            return end.value
