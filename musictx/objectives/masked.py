"""Guessing hidden notes from the music on both sides (Devlin et al. 2019, BERT).

A note is hidden as a whole: its beginning and its end, or all sixteenths that it lasts. Else a model would read one of
them off the other.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import ConfigError
from musictx.music.grid import REST
from musictx.objectives import Example
from musictx.objectives.next_token import NextToken
from musictx.tokenizers import EventRange, Tokenizer

HIDDEN, OTHER = 0.8, 0.1  # shares of the chosen ids: MASK in their place, any other id; the rest stay as they are


class Masked(NextToken):
    """Obeys `musictx.objectives.Objective`. Raises ConfigError for an impossible share."""

    added = (EventRange("MASK", 0, 0),)
    continuous = False
    continues = False
    both_ways = True

    def __init__(self, tokenizer: Tokenizer, share: float = 0.15) -> None:
        """`share` of the ids is guessed."""
        vocab = tokenizer.vocab
        if not tokenizer.voices and not vocab.mask("NOTE_ON", "MELODY_ON").any():
            allowed = "performance or chorale"
            raise ConfigError("TokenizerConfig.name", got=tokenizer.name, why="its notes have no ends", allowed=allowed)
        if not 0 < share < 1:
            raise ConfigError("share", got=share, allowed="a share of the ids, above 0 and below 1")
        super().__init__(tokenizer)
        self.share, self.mask = share, tokenizer.vocab.id("MASK")

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        """Inputs (T,): the ids with some hidden. Targets (T,): the hidden ids."""
        ids = window[: len(window) - 1].numpy().copy()
        targets = np.full(len(ids), self.pad)
        music = np.flatnonzero(ids < self.tokenizer.vocab.n_events)
        if self.tokenizer.voices:
            music = music[music > 0]  # the first id may be the last of the step before
        for place in self.chosen(ids[music], rng):
            at, how = music[place], rng.random()
            targets[at] = ids[at]
            if how < HIDDEN:
                ids[at] = self.mask
            elif how < HIDDEN + OTHER:
                ids[at] = rng.integers(self.tokenizer.vocab.n_events, size=len(at))
        return Example((torch.from_numpy(ids),), torch.from_numpy(targets))

    def chosen(self, ids: NDArray[np.int64], rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """The places of notes and of other ids, each a whole, at random until they are the share of all ids (T,)."""
        note = notes_of(self.tokenizer, ids)
        order = np.argsort(note, kind="stable")
        wholes = np.split(order, np.flatnonzero(np.diff(note[order])) + 1) if len(ids) else []
        found, n = list[NDArray[np.intp]](), 0
        for k in rng.permutation(len(wholes)):
            if n >= self.share * len(ids):
                break
            found.append(wholes[k])
            n += len(wholes[k])
        return found


def notes_of(tokenizer: Tokenizer, ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """(T,) a number for each id, the same for all ids of a note. These are its beginning and end, or the run of one
    pitch in a voice of a grid. Any other id has its own."""
    own = np.arange(len(ids))
    if tokenizer.voices:
        before = own - tokenizer.voices
        for at in np.flatnonzero(before >= 0).tolist():
            if ids[at] == ids[before[at]] and tokenizer.pitch[ids[at]] != REST:
                own[at] = own[before[at]]
        return own
    vocab = tokenizer.vocab
    for on, off in (("NOTE_ON", "NOTE_OFF"), ("MELODY_ON", "MELODY_OFF")):
        begins, ends, sounding = vocab.mask(on)[ids], vocab.mask(off)[ids], dict[int, int]()
        for at in np.flatnonzero(begins | ends).tolist():
            pitch = int(tokenizer.pitch[ids[at]])
            if begins[at]:
                sounding[pitch] = at
            elif pitch in sounding:
                own[at] = sounding.pop(pitch)
    return own
