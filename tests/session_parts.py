"""A tiny session without files: a random model, a virtual clock, a player who is a list of messages."""

import mido
import numpy as np
import torch

from musictx.generate.requests import PLAIN
from musictx.jam.conversation import Conversation
from musictx.jam.keyboard import Keyboard
from musictx.jam.partner import Partner
from musictx.jam.players import MessagePlayer
from musictx.jam.recording import Playback
from musictx.jam.session import VirtualClock, converse
from musictx.model.torch_steps import TorchPlayer
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.tokenizer import Event

QUARTER_S = 0.6
RULES = Rules(max_silence_s=0.5, max_note_s=2.0)


def tiny_model(encoding, **changes):
    torch.manual_seed(1)
    sizes = {"d_model": 16, "n_layers": 1, "n_heads": 2, "d_ff": 32, "max_distance": 32, "max_positions": 64}
    net = Transformer(TransformerConfig(build_tokenizer(encoding).vocab.size, **(sizes | changes))).eval()
    torch.nn.init.normal_(net.embed.weight, std=0.1)
    return net


def make_partner(encoding="performance", seed=0, **changes):
    tokenizer = build_tokenizer(encoding)
    idiom = tokenizer.idiom(QUARTER_S)
    return Partner(TorchPlayer(tiny_model(encoding, **changes)), tokenizer, idiom, QUARTER_S, PLAIN, RULES, seed), idiom


def phrase_score(seed):
    """What a keyboard makes of random playing."""
    keyboard = Keyboard(21, 108, QUARTER_S)
    for at_s, message in random_playing(seed):
        keyboard.hear(at_s, message)
    return keyboard.score(keyboard.last_s + 1)


def note(onset_s, offset_s, pitch, velocity=80):
    return [
        (onset_s, mido.Message("note_on", note=pitch, velocity=velocity)),
        (offset_s, mido.Message("note_off", note=pitch)),
    ]


def pedal(at_s, value):
    return [(at_s, mido.Message("control_change", control=64, value=value))]


def played(*parts):
    return sorted((timed for part in parts for timed in part), key=lambda timed: timed[0])


class WatchedClock(VirtualClock):
    """Lets a test look on after every step of a conversation."""

    def __init__(self, watch):
        super().__init__()
        self.watch = watch

    def wait(self, until_s, arrived):
        self.watch()
        super().wait(until_s, arrived)


class Session:
    """What came out of a whole session: `events`, and the parts as they are at its end."""

    def __init__(
        self, messages, encoding="performance", pause_s=0.6, reply_s=2.0, seed=0, watch=lambda session: None, **changes
    ):
        self.events: list[Event] = []
        self.partner, idiom = make_partner(encoding, seed, **changes)
        self.playback, self.clock = Playback(self.events.append), WatchedClock(lambda: watch(self))
        tokenizer = build_tokenizer(encoding)
        keyboard = Keyboard(tokenizer.lo, tokenizer.hi, QUARTER_S)
        self.conversation = Conversation(keyboard, idiom, self.partner, self.playback, self.clock.now, pause_s, reply_s)
        converse(self.conversation, MessagePlayer(messages), self.clock, lambda at_s, message: None)
        self.playback.close(self.clock.now())

    @property
    def begins(self):
        return [event for event in self.events if event.velocity]


def hanging(events):
    """The pitches that still sound after all; no note may begin twice, nor end when it is silent."""
    on: set[int] = set()
    for event in events:
        assert (event.pitch in on) == (event.velocity == 0), event
        (on.add if event.velocity else on.discard)(event.pitch)
    return on


def random_playing(seed, count=40):
    """Messages of careless hands and a foot."""
    rng = np.random.default_rng(seed)
    onset = np.cumsum(rng.choice([0.0, 0.004, 0.1, 0.23, 1.4], count))
    notes = [
        note(float(at), float(at + rng.choice([0.003, 0.12, 0.6, 2.5])), int(rng.integers(40, 90))) for at in onset
    ]
    feet = [pedal(float(at), int(value)) for at, value in zip(onset[::5], rng.choice([0, 127], count), strict=False)]
    return played(*notes, *feet)
