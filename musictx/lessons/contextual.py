"""Contextual embeddings: the states of a forward and a backward LSTM joined, so a note differs with what surrounds it.

An embedding gives a note the same vector everywhere. ELMo (Peters et al. 2018, section 3) trains two language models,
one that reads from the left and guesses the next note, one that reads from the right and guesses the note before:

    forward:   p(x_t+1 | x_1 … x_t) from the state f_t        backward:   p(x_t-1 | x_t … x_T) from the state b_t
    ELMo_t = [f_t ; b_t]

Here one layer of each; the paper also mixes the layers by learned weights. A linear probe asks each vector which degree
of the scale the note is. The pitch cannot tell: all hymns are heard in all keys.
"""

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

NOTES, WIDTH, ROWS, RIDGE = 20, 96, 32, 1.0
PITCH = 67  # G above middle C
KEYS = range(-5, 7)  # semitones that a hymn is moved by


def melodies(held_out: bool = False) -> tuple[Tensor, Tensor]:
    """(N, T) pitches of the soprano's quarter notes, and (N,) the tonics of their keys."""
    pitches, keys = list[NDArray[np.int64]](), list[int]()
    for grid, tonic in zip(hymns(held_out), tonics(held_out), strict=True):
        line = grid[::4, 0]
        windows = line[: len(line) // NOTES * NOTES].reshape(-1, NOTES)
        pitches += [window for window in windows.astype(np.int64) if (window >= 0).all()]
        keys += [tonic] * (len(pitches) - len(keys))
    return torch.from_numpy(np.stack(pitches)), torch.tensor(keys)


class BothWays(nn.Module):
    """pitches (B, T) -> embeddings, forward states and backward states, (B, T, D) each."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(128, WIDTH)
        self.forwards, self.backwards = (nn.LSTM(WIDTH, WIDTH, batch_first=True) for _ in range(2))
        self.head = nn.Linear(WIDTH, 128)  # shared by both, as in the paper

    def forward(self, pitches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.embed(pitches)
        f, _ = self.forwards(x)
        b, _ = self.backwards(x.flip(1))
        return x, f, b.flip(1)

    def loss(self, pitches: Tensor) -> Tensor:
        _, f, b = self(pitches)
        ahead = F.cross_entropy(self.head(f[:, :-1]).flatten(0, 1), pitches[:, 1:].flatten())
        back = F.cross_entropy(self.head(b[:, 1:]).flatten(0, 1), pitches[:, :-1].flatten())
        return (ahead + back) / 2


def in_all_keys(pitches: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
    """(12 N, T) pitches and the degree of each in semitones above its tonic."""
    moved = torch.cat([pitches + by for by in KEYS])
    return moved, (moved - torch.cat([keys + by for by in KEYS])[:, None]) % 12


def probe(vectors: Tensor, degree: Tensor) -> Tensor:
    """(D + 1, 12) ridge regression on which degree it is."""
    x = F.pad(vectors.flatten(0, 1), (0, 1), value=1.0)
    y = F.one_hot(degree.flatten(), 12).float()
    weights: Tensor = torch.linalg.solve(x.T @ x + RIDGE * torch.eye(x.shape[1]), x.T @ y)
    return weights


def scores(vectors: Tensor, weights: Tensor) -> Tensor:
    """(B, T, 12) the probe's score of each degree."""
    return F.pad(vectors, (0, 1), value=1.0) @ weights


def thirds(is_right: Tensor) -> tuple[str, str, str]:
    """The share of right answers in the first third of the places, in the last, and in all."""
    parts = is_right[:, : NOTES // 3], is_right[:, -NOTES // 3 :], is_right
    first, last, every = (f"{float(part.float().mean()):.0%}" for part in parts)
    return first, last, every


def lesson(size: float = 1.0) -> Finding:
    music, keys = melodies()
    model = BothWays()

    def loss() -> Tensor:
        by = torch.randint(KEYS.start, KEYS.stop, (ROWS, 1))
        return model.loss(music[torch.randint(len(music), (ROWS,))] + by)

    descend(model.parameters(), loss, max(60, int(500 * size)), lr=5e-3)
    fitted, fitted_degree = in_all_keys(music, keys)
    asked, degree = in_all_keys(*melodies(held_out=True))
    with torch.no_grad():
        (x, f, b), (new_x, new_f, new_b) = model(fitted), model(asked)
    vectors = {
        "embedding": (x, new_x, FAINT, ":"),
        "forward state": (f, new_f, COLOURS[0], "--"),
        "backward state": (b, new_b, COLOURS[1], "-."),
        "both joined": (torch.cat((f, b), -1), torch.cat((new_f, new_b), -1), COLOURS[2], "-"),
    }
    most = fitted_degree.flatten().bincount().argmax()
    rows: list[tuple[str, ...]] = [("the most frequent degree", *thirds(degree == most))]
    shares, margin = dict[str, float](), dict[str, Tensor]()
    figure = new_figure(9, 3.8, 80)
    left, right = figure.subplots(1, 2)
    for name, (known, new, colour, line) in vectors.items():
        found = scores(new, probe(known, fitted_degree))  # (B, T, 12)
        is_right = found.argmax(-1) == degree
        rows.append((name, *thirds(is_right)))
        margin[name] = found[..., 0] - found[..., 7]  # (B, T) tonic against fifth
        shares[name] = float(is_right.float().mean())
        by_place = is_right.float().view(len(asked), -1, 4).mean((0, 2))
        left.plot(range(2, NOTES, 4), by_place, line, color=colour, label=name)
    left.axhline(float((degree == most).float().mean()), color=FAINT, lw=0.8, label="the most frequent degree")
    left.set(title="which degree of the scale?", xlabel="place in the melody, quarter notes")
    left.set(ylabel="share of right answers", ylim=(0, 0.85))
    left.legend(frameon=False, fontsize=8, ncols=2, loc="upper left")

    places = {"tonic, in G": (asked == PITCH) & (degree == 0), "fifth, in C": (asked == PITCH) & (degree == 7)}
    tonic, fifth = (margin["both joined"][at].numpy() for at in places.values())
    bins = np.linspace(-0.7, 0.7, 25).tolist()
    for values, name, colour in zip((tonic, fifth), places, (COLOURS[0], COLOURS[4]), strict=True):
        right.hist(values, bins, color=colour, alpha=0.55, label=f"joined states, G as the {name}")
    fixed = float(margin["embedding"][asked == PITCH].mean())  # the same everywhere
    right.axvline(fixed, color=FAINT, ls=":", label="its embedding, everywhere")
    right.set(title="G above middle C in two contexts", ylabel="held-out notes")
    right.set(xlabel="score as tonic - score as fifth", ylim=(0, 1.45 * right.get_ylim()[1]))
    right.legend(frameon=False, fontsize=8, loc="upper left")
    return Finding(
        ("vector of a note", "first third", "last third", "all"),
        rows,
        f"The degree of a held-out note is right for {shares['embedding']:.0%} from the embedding, "
        f"{shares['forward state']:.0%} from the forward state, {shares['backward state']:.0%} from the backward one, "
        f"and {shares['both joined']:.0%} from both. G above middle C has one embedding. Its joined states "
        f"score it higher as tonic than as fifth in {(tonic > 0).mean():.0%} of the places where it is the tonic, and "
        f"in {(fifth > 0).mean():.0%} of those where it is the fifth.",
        figure,
        ("model/recurrent.py", "analysis/probe.py"),
    )
