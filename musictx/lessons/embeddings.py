"""Embeddings of chords by skip-gram and CBOW: which chords are near each other, and an analogy.

A chord is known by the company it keeps. Skip-gram guesses each neighbour of a chord c, CBOW guesses c from the mean of
its neighbours (Mikolov et al. 2013, arXiv 1301.3781). With a vector v for what is read and u for what is guessed, a
true chord o is told from chords n drawn by chance, as often as they come to the power 3/4 (arXiv 1310.4546):

    loss = -log sigmoid(u_o · v) - sum over n of log sigmoid(-u_n · v)

An analogy is a sum: v(Am) - v(C) + v(G) should be nearest to v(Em), the relative minor of G.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import hymns
from musictx.music.harmony import Chord, exact_chord
from musictx.viz.curves import COLOURS
from musictx.viz.figure import new_figure

QUALITIES = ("", "m", "7", "dim")
CHORDS = [Chord(7 * n % 12, quality) for quality in QUALITIES for n in range(12)]  # around the circle of fifths
NUMBER = {chord: n for n, chord in enumerate(CHORDS)}
WIDTH, SPAN, ROWS, NEGATIVE = 16, 4, 256, 5  # a neighbour is at most SPAN chords away


def windows() -> tuple[Tensor, Tensor]:
    """(N,) chords and (N, 2 SPAN) their neighbours, one chord for each change of harmony, each hymn in all keys."""
    found = []
    for grid in hymns():
        chords = [exact_chord(row.tolist()) for row in grid[::4] if (row >= 0).all()]
        chords = [chord for chord in chords if chord in NUMBER]
        chords = [chord for n, chord in enumerate(chords) if n == 0 or chord != chords[n - 1]]
        for key in range(12):
            moved = [NUMBER[Chord((chord.root + key) % 12, chord.quality)] for chord in chords]
            found += [moved[n - SPAN : n + SPAN + 1] for n in range(SPAN, len(moved) - SPAN)]
    all_of = torch.tensor(found)  # (N, 2 SPAN + 1)
    return all_of[:, SPAN], torch.cat((all_of[:, :SPAN], all_of[:, SPAN + 1 :]), 1)


def embed(chords: Tensor, neighbours: Tensor, skip_gram: bool, steps: int) -> Tensor:
    """(V, D) a vector of length 1 for each chord."""
    often = chords.bincount(minlength=len(CHORDS)).float()
    v = torch.nn.Parameter(0.1 * torch.randn(len(CHORDS), WIDTH))
    u = torch.nn.Parameter(torch.zeros(len(CHORDS), WIDTH))

    def loss() -> Tensor:
        at = torch.randint(len(chords), (ROWS,))
        chord, near = chords[at, None], neighbours[at]  # (B, 1) and (B, W)
        read = v[chord] if skip_gram else v[near].mean(1, keepdim=True)  # (B, 1, D)
        true = near if skip_gram else chord  # (B, W) or (B, 1)
        drawn = torch.multinomial(often**0.75, true.numel() * NEGATIVE, replacement=True).view(ROWS, -1)
        score, other = (u[true] * read).sum(-1), (u[drawn] * read).sum(-1)
        return -(F.logsigmoid(score).sum() + F.logsigmoid(-other).sum()) / true.numel()

    descend((v, u), loss, steps, lr=0.02)
    return F.normalize(v.detach(), dim=-1)


def nearest(vectors: Tensor, to: Tensor, but: list[int]) -> int:
    """The chord with the largest cosine, other than those of the question."""
    cosine = vectors @ to  # (V,)
    cosine[but] = -torch.inf
    return int(cosine.argmax())


def questions() -> list[list[int]]:
    """a : b = c : d for major chords a and c a fifth apart, and their relative minors b and d."""
    of = [(NUMBER[chord], NUMBER[Chord((chord.root + 9) % 12, "m")]) for chord in CHORDS[:12]]
    return [[*of[n], *of[(n + by) % 12]] for n in range(12) for by in (1, -1)]


def answer(vectors: Tensor, a: int, b: int, c: int) -> int:
    return nearest(vectors, vectors[b] - vectors[a] + vectors[c], [a, b, c])


def lesson(size: float = 1.0) -> Finding:
    chords, neighbours = windows()
    asked, rows, words = questions(), [], []
    figure = new_figure(9, 4, 80)
    left, right = figure.subplots(1, 2)
    for name, colour, mark in (("CBOW", COLOURS[1], "s"), ("skip-gram", COLOURS[0], "o")):
        vectors = embed(chords, neighbours, name == "skip-gram", max(150, int(600 * size)))
        by_sum = [answer(vectors, *three) == d for *three, d in asked]
        alone = [[nearest(vectors, vectors[each[n]], each[:3]) == each[3] for each in asked] for n in (2, 1)]
        company = (vectors @ vectors[0]).argsort(descending=True)[1:5].tolist()  # of C
        correct = (f"{sum(each)} of {len(asked)}" for each in (by_sum, *alone))
        rows.append((name, " ".join(str(CHORDS[n]) for n in company), *correct))
        a, b, c, d = (str(CHORDS[n]) for n in asked[by_sum.index(max(by_sum))])
        words.append(f"{name} completes {sum(by_sum)} of {len(asked)} relative minors, as in {a} : {b} = {c} : {d}")
        cosine = [float((vectors[:12] * vectors[:12].roll(step, 0)).sum(-1).mean()) for step in range(7)]
        words[-1] += f"; major chords a fifth apart have a cosine of {cosine[1]:.2f}, a tritone apart {cosine[6]:.2f}"
        right.plot(range(7), cosine, f"{mark}-", color=colour, label=name)
    chance = f"{len(asked) / (len(CHORDS) - 3):.1f} of {len(asked)}"
    rows.append(("chance", "", chance, chance, chance))

    triads = vectors[:24] - vectors[:24].mean(0)
    plane = (triads @ torch.linalg.svd(triads)[2][:2].T).numpy()  # (24, 2), the directions with the most variance
    for kind, at, colour, out in (("major", 0, COLOURS[0], 1.16), ("minor", 12, COLOURS[4], 0.84)):
        left.plot(*plane[at : at + 12].T, "o", color=colour, ms=4, label=kind)
        for chord, place in zip(CHORDS[at : at + 12], plane[at : at + 12] * out, strict=True):
            left.text(*place, str(chord), color=colour, ha="center", va="center", fontsize=9)
    left.legend(frameon=False, loc="center")
    left.set(title="vectors of skip-gram on a plane", xlabel="first direction", ylabel="second direction")
    left.set_aspect("equal")
    left.set_xlim(-1.3 * plane.max(), 1.3 * plane.max())
    left.set_ylim(-1.3 * plane.max(), 1.3 * plane.max())
    right.set(title="major chords, both trainings", xlabel="steps on the circle of fifths", ylabel="cosine of vectors")
    right.legend(frameon=False)
    return Finding(
        ("training", "nearest to C", "a : b = c : ? by the sum", "nearest to c", "nearest to b"),
        rows,
        ". ".join(words) + f". The chord nearest to c or b alone and chance ({chance}) are the baselines.",
        figure,
        ("model/transformer.py", "analysis/embedding.py"),
    )
