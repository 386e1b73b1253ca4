"""Squeeze and excitation: gates open the channels of a net by what a whole hymn has, so that each chord knows the key.

A block has channels u_c(t) at each time t. The squeeze is their mean over time, z_c = mean_t u_c(t). The excitation is
s = sigmoid(W2 ReLU(W1 z)), one gate between 0 and 1 for each channel, and the block gives s_c u_c(t) (Hu et al. 2018,
section 3). Here convolutions of kernel 1 read a hymn chord by chord, and name the degree of the scale that the melody
is on: do, re or mi. A chord alone does not tell the key. Only the squeeze hears the others.
"""

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import chords, roll
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, INK, new_figure

LENGTH, STEP, BATCH = 16, 4, 48  # chords of a window; sixteenths between them; windows
LOWEST, KEYS = 30, 64  # of the roll
C, NARROWER, BLOCKS = 64, 4, 2  # channels; how many times fewer the excitation has inside
FIFTHS = np.arange(12) * 7 % 12  # C, G, D, …: neighbours share all notes but one
COMMONEST, CONSTANT, SE = "the commonest degree", "gates without a squeeze", "squeeze and excitation"
SWAPPED = "with another hymn's gates"
NAMES = ("C", "D♭", "D", "E♭", "E", "F", "G♭", "G", "A♭", "A", "B♭", "B")


class SqueezeExcitation(nn.Module):
    """(B, C, T) -> (B, C): how open each channel is."""

    def __init__(self, squeeze: bool) -> None:
        super().__init__()
        self.squeeze, self.w1, self.w2 = squeeze, nn.Linear(C, C // NARROWER), nn.Linear(C // NARROWER, C)

    def forward(self, u: Tensor) -> Tensor:
        z = u.mean(2) if self.squeeze else torch.zeros(u.shape[:2])  # (B, C)
        return torch.sigmoid(self.w2(F.relu(self.w1(z))))


class Net(nn.Module):
    """Rolls (B, KEYS, T) -> logits (B, 12, T) of the melody's degree, and the gates (B, C) of each block."""

    def __init__(self, squeeze: bool) -> None:
        super().__init__()
        self.stem, self.out = nn.Conv1d(KEYS, C, 1), nn.Conv1d(C, 12, 1)
        self.convolve = nn.ModuleList([nn.Conv1d(C, C, 1) for _ in range(BLOCKS)])
        self.gate = nn.ModuleList([SqueezeExcitation(squeeze) for _ in range(BLOCKS)])

    def forward(self, roll: Tensor, of: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """`of` (B,): whose gates each row gets instead of its own."""
        x, gates = F.relu(self.stem(roll)), []  # (B, C, T)
        for convolve, gate in zip(self.convolve, self.gate, strict=True):
            u = F.relu(convolve(F.layer_norm(x.mT, (C,)).mT))  # a norm over time would tell a chord of the others
            s = gate(u) if of is None else gate(u)[of]
            x = x + s[..., None] * u
            gates.append(s)
        return self.out(x), gates


def windows(held_out: bool) -> tuple[Tensor, Tensor]:
    """Chords (N, T, 4), and the tonic (N,) of each window's key, 0 to 11."""
    music, keys = chords(LENGTH, STEP, held_out=held_out)
    return torch.from_numpy(music), torch.from_numpy(keys)


def degrees(music: Tensor, tonic: Tensor) -> Tensor:
    """(B, T): the melody's semitones above the tonic of the major key, 0 to 11."""
    return (music[..., 0] - tonic[:, None]) % 12


def alike(gates: Tensor, tonic: Tensor) -> tuple[Tensor, Tensor]:
    """The mean gates (12, C) of each key along the circle of fifths, and how two keys' gates correlate (7,) by the
    fifths between them."""
    of_key = torch.stack([gates[tonic == key].mean(0) for key in FIFTHS])  # (12, C)
    away = F.normalize(of_key - of_key.mean(0), dim=1)
    return of_key, torch.stack([(away * away.roll(n, 0)).sum(1).mean() for n in range(7)])


def share(answer: Tensor, truth: Tensor) -> float:
    return float((answer == truth).float().mean())


def lesson(size: float = 1.0) -> Finding:
    (music, tonic), (unseen, unseen_tonic) = windows(False), windows(True)
    keys = torch.arange(-6, 6)
    test = (unseen[:, None] + keys[:, None, None]).flatten(0, 1)  # (N, T, 4) each in twelve keys
    test_tonic = ((unseen_tonic[:, None] + keys) % 12).flatten()
    truth = degrees(test, test_tonic)
    nets = {CONSTANT: Net(False), SE: Net(True)}
    right = {COMMONEST: share(degrees(music, tonic).flatten().bincount().argmax(), truth)}
    for name, net in nets.items():

        def loss(net: nn.Module = net) -> Tensor:
            which, up = torch.randint(len(music), (BATCH,)), torch.randint(-6, 6, (BATCH,))
            moved, key = music[which] + up[:, None, None], tonic[which] + up
            return F.cross_entropy(net(roll(moved, LOWEST, KEYS))[0], degrees(moved, key))

        descend(net.parameters(), loss, max(130, int(800 * size)), lr=0.02)
        with torch.no_grad():
            logits, gates = net(roll(test, LOWEST, KEYS))
        right[name] = share(logits.argmax(1), truth)
    with torch.no_grad():
        logits, _ = net(roll(test, LOWEST, KEYS), torch.randperm(len(test)))
    right[SWAPPED] = share(logits.argmax(1), truth)
    of_key, curve = alike(gates[0], test_tonic)
    near = (f"{curve[1]:.2f}", f"{curve[6]:.2f}")
    return Finding(
        ("what names the melody's degree", "right", "gates alike, keys a fifth apart", "six fifths apart"),
        [(name, f"{each:.0%}", *(near if name == SE else ("", ""))) for name, each in right.items()],
        f"Chord by chord, with gates that are the same for all music, the net names {right[CONSTANT]:.0%} of the "
        f"degrees in hymns that it never saw. With gates that hear the whole window it names {right[SE]:.0%}, and with "
        f"those of another hymn {right[SWAPPED]:.0%}. Keys a fifth apart open like channels (correlation {near[0]}), "
        f"keys six fifths apart do not ({near[1]}). Nobody told the net of the circle of fifths.",
        picture(right, of_key, curve),
        (),
    )


def picture(right: dict[str, float], of_key: Tensor, curve: Tensor) -> Figure:
    """How often each is right; which channels open in which key; how alike the gates of two keys are."""
    figure = new_figure(11, 3.8, dpi=90)
    bars, gates, fifths = figure.subplots(1, 3, width_ratios=(0.8, 1.5, 1))
    drawn = bars.barh(list(right), list(right.values()), color=[FAINT, *[COLOURS[0]] * 3])
    bars.bar_label(drawn, [f"{each:.0%}" for each in right.values()], padding=3, color=INK)
    bars.invert_yaxis()
    bars.set(xlim=(0, 1.3), xticks=(0, 0.5, 1), xlabel="share right", title="Do, re or mi?")
    order = of_key.argmax(0).argsort(stable=True)  # channels by the key that opens them most
    image = gates.imshow(of_key[:, order], cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    gates.set_yticks(range(12), [NAMES[key] for key in FIFTHS])
    gates.set(xlabel="channel of the first block", ylabel="key", title="Which channels open in which key")
    figure.colorbar(image, ax=gates, label="how open")
    fifths.axhline(0, color=FAINT, lw=0.8)
    fifths.plot(range(7), curve, "o-", color=COLOURS[0])
    fifths.set(xlabel="fifths between two keys", ylabel="correlation of their gates", title="Are two keys alike?")
    for axes in (bars, fifths):
        axes.spines[["top", "right"]].set_visible(False)
    return figure
