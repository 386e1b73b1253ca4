"""BERT: an encoder that guesses masked notes and whether B follows A, then learns labels of notes and pieces.

    input:     [CLS] A [SEP] B [SEP], each token the sum of its embeddings: token + segment + position
    masked:    15 % of the notes are guessed; of these 80 % become [MASK], 10 % any note, 10 % stay as they are
    next:      half of the time B follows A, else it comes from another hymn; the state of [CLS] says which
    loss = cross-entropy of the masked notes + cross-entropy of "B follows A"       (Devlin et al. 2019, section 3)

Fine-tuning adds a linear layer: on each note's state for a label of notes, here the interval down to a bass that it
does not hear; on that of [CLS] for a label of pieces, here the key. The control has random weights instead.
"""

import copy
import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import hymns, tonics
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, new_figure

CLS, SEP, MASK = 128, 129, 130  # after the pitches
HALF, WIDTH, LAYERS, HEADS, ROWS = 12, 64, 2, 4, 24  # HALF: quarter notes of A and of B
CHOSEN, HIDDEN, OTHER = 0.15, 0.8, 0.1
KEYS, LABELLED = (-5, 7), 8  # semitones that a pair is moved by; hymns whose labels are known
BASS, KEY = 0, 1  # tasks


class Pairs(NamedTuple):
    notes: Tensor  # (N, 2 HALF) quarter notes of sopranos, as A and the B that follows
    bass: Tensor  # (N, 2 HALF) semitones down to the bass, without octaves, 0 to 11
    of: Tensor  # (N,) which hymn
    tonic: Tensor  # (N,)


def pairs(held_out: bool = False) -> Pairs:
    notes, of = list[NDArray[np.int64]](), list[int]()
    for hymn, grid in enumerate(hymns(held_out)):
        outer = grid[::4, [0, 3]].astype(np.int64)
        windows = np.lib.stride_tricks.sliding_window_view(outer, 2 * HALF, 0)[::4]  # (·, 2, 2 HALF)
        notes += [window for window in windows if (window >= 0).all()]
        of += [hymn] * (len(notes) - len(of))
    soprano, bass = torch.from_numpy(np.stack(notes)).unbind(1)
    return Pairs(soprano, (soprano - bass) % 12, torch.tensor(of), torch.tensor(tonics(held_out))[of])


def joined(a: Tensor, b: Tensor) -> Tensor:
    """(B, T) ids: [CLS] A [SEP] B [SEP]."""
    first, between = torch.full((len(a), 1), CLS), torch.full((len(a), 1), SEP)
    return torch.cat((first, a, between, b, between), 1)


def drawn(music: Pairs, n: int) -> tuple[Tensor, Tensor]:
    """(n, T) ids in any key, and (n,) 1 where B follows A, 0 where it is of another hymn."""
    notes, of = music.notes, music.of
    at, other = torch.randint(len(notes), (2, n))
    follows = (torch.rand(n) < 0.5) | (of[at] == of[other])
    b = torch.where(follows[:, None], notes[at, HALF:], notes[other, HALF:])
    by = torch.randint(*KEYS, (n, 1))
    return joined(notes[at, :HALF] + by, b + by), follows.long()


def mask(ids: Tensor) -> tuple[Tensor, Tensor]:
    """The ids with some hidden, and (B, T) True where a note is to be guessed."""
    notes = ids[ids < CLS]
    chosen = (torch.rand(ids.shape) < CHOSEN) & (ids < CLS)
    how = torch.rand(ids.shape)
    hidden = torch.where(how < HIDDEN + OTHER, notes[torch.randint(len(notes), ids.shape)], ids)
    return torch.where(chosen, torch.where(how < HIDDEN, MASK, hidden), ids), chosen


class Bert(nn.Module):
    """ids (B, T) -> states (B, T, C). Every token sees all others."""

    def __init__(self) -> None:
        super().__init__()
        self.token, self.segment = nn.Embedding(MASK + 1, WIDTH), nn.Embedding(2, WIDTH)
        self.position = nn.Embedding(2 * HALF + 3, WIDTH)
        for table in (self.token, self.segment, self.position):
            nn.init.normal_(table.weight, std=0.1)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, 0.0, F.gelu, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.note, self.follows = nn.Linear(WIDTH, CLS), nn.Linear(WIDTH, 2)

    def forward(self, ids: Tensor) -> Tensor:
        place = torch.arange(ids.shape[1])
        states: Tensor = self.layers(self.token(ids) + self.segment((place > HALF + 1).long()) + self.position(place))
        return states


def share(is_so: Tensor) -> float:
    return float(is_so.float().mean())


class Labels(nn.Module):
    """An encoder with a layer for the bass below each note, and one for the key of the pair."""

    def __init__(self, encoder: Bert) -> None:
        super().__init__()
        self.encoder, self.bass, self.key = encoder, nn.Linear(WIDTH, 12), nn.Linear(WIDTH, 12)

    def forward(self, music: Pairs, at: Tensor, task: int) -> tuple[Tensor, Tensor]:
        """Logits and labels of the notes or of the keys of some pairs, each moved to any key."""
        by = torch.randint(*KEYS, (len(at), 1))
        ids = joined(music.notes[at, :HALF] + by, music.notes[at, HALF:] + by)
        states = self.encoder(ids)
        if task == KEY:
            return self.key(states[:, 0]), (music.tonic[at] + by[:, 0]) % 12
        return self.bass(states[ids < CLS]), music.bass[at].flatten()


def fine_tune(encoder: Bert, task: int, steps: int) -> float:
    """The share of right labels in held-out hymns."""
    torch.manual_seed(1)  # the same examples and first layers for each encoder
    model = Labels(copy.deepcopy(encoder))
    music, new = pairs(), pairs(held_out=True)
    few = (music.of < LABELLED).nonzero().flatten()
    loss = lambda: F.cross_entropy(*model(music, few[torch.randint(len(few), (ROWS,))], task))  # noqa: E731
    descend(model.parameters(), loss, steps)
    with torch.no_grad():
        logits, label = model(new, torch.arange(len(new.of)), task)
    return share(logits.argmax(-1) == label)


def lesson(size: float = 1.0) -> Finding:
    music, new = pairs(), pairs(held_out=True)
    model, control = Bert(), Bert()

    def loss() -> Tensor:
        ids, follows = drawn(music, ROWS)
        hidden, chosen = mask(ids)
        states = model(hidden)
        guesses, pair = model.note(states[chosen]), model.follows(states[:, 0])
        return F.cross_entropy(guesses, ids[chosen]) + F.cross_entropy(pair, follows)

    descend(model.parameters(), loss, max(80, int(500 * size)), warm_up=30)
    ids, follows = drawn(new, 1000)
    hidden, chosen = mask(ids)
    before = ids.roll(1, 1)
    chosen &= before < CLS  # so that there is a note before
    with torch.no_grad():
        states = model(hidden)
    guessed = share(model.note(states[chosen]).argmax(-1) == ids[chosen])
    told = share(model.follows(states[:, 0]).argmax(-1) == follows)
    steps = max(20, int(120 * size))
    trained, untrained = ([fine_tune(each, task, steps) for task in (BASS, KEY)] for each in (model, control))
    commonest = music.bass[music.of < LABELLED].flatten().bincount().argmax()
    tasks = {  # baseline, random weights, BERT
        "masked note": ("the note before", share(before[chosen] == ids[chosen]), math.nan, guessed),
        "B follows A": ("always yes", share(follows == 1), math.nan, told),
        "bass below a note": ("the commonest", share(new.bass == commonest), untrained[BASS], trained[BASS]),
        "key of a pair": ("chance", 1 / 12, untrained[KEY], trained[KEY]),
    }
    figure = new_figure(9, 3.8, 80)
    axes = figure.subplots()
    for n, (name, colour) in enumerate((("baseline", FAINT), ("random weights", COLOURS[4]), ("BERT", COLOURS[0]))):
        at, heights = np.arange(len(tasks)) + 0.27 * (n - 1), [each[n + 1] for each in tasks.values()]
        axes.bar_label(axes.bar(at, heights, 0.25, color=colour, label=name), fmt="{:.0%}", fontsize=9)
    axes.set_xticks(range(len(tasks)), [f"{task}\nbaseline: {what}" for task, (what, *_) in tasks.items()])
    axes.set(title="four tasks on held-out hymns", ylabel="share of right answers", ylim=(0, 1.05))
    axes.legend(frameon=False, loc="upper left")
    rows: list[tuple[str, ...]] = [
        (task, f"{what}: {base:.0%}", "" if math.isnan(other) else f"{other:.0%}", f"{bert:.0%}")
        for task, (what, base, other, bert) in tasks.items()
    ]
    return Finding(
        ("held-out task", "baseline", "random weights", "BERT"),
        rows,
        f"BERT guesses {guessed:.0%} of the masked notes of held-out hymns and knows in {told:.0%} of pairs whether B "
        f"follows A. Fine-tuned on {LABELLED} hymns, it names {trained[BASS]:.0%} of the basses and "
        f"{trained[KEY]:.0%} of the keys; from random weights {untrained[BASS]:.0%} and {untrained[KEY]:.0%}.",
        figure,
        ("analysis/probe.py",),
    )
