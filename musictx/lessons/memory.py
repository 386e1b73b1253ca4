"""A memory network: several hops over the notes of a melody answer "which note came after this one?".

Each note x_i of a melody is a memory with a key m_i = A x_i + T_i and a value c_i = C x_i + T'_i, where T, T' say its
place. A question q begins as u = A q. A hop looks, p_i = softmax_i(u · m_i), and takes along what it finds,
u' = H u + sum_i p_i c_i. After the last hop the answer is softmax(W u). All hops share A, C and H (end-to-end memory
networks, Sukhbaatar et al. 2015, section 2). The first hop can find the note of the question, and so its place; only a
second hop can look beside that place. A memory whose keys come one note late, m_{i-1} with c_i, needs one hop.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, INK, new_figure

LENGTH, PITCHES, D, BATCH = 12, 128, 64, 64  # notes of a melody, one a quarter


class Asked(NamedTuple):
    """Melodies (B, T), the place of the note that each question names (B,); the answer is the note after it."""

    notes: Tensor
    place: Tensor

    def note(self, later: int) -> Tensor:
        return self.notes.gather(1, self.place[:, None] + later)[:, 0]


def ask(notes: Tensor) -> Asked:
    """A question on each melody (B, T): a note that occurs only once, and is not the last. Others are left out."""
    once = (notes[:, :, None] == notes[:, None]).sum(-1) == 1  # (B, T)
    once[:, -1] = False
    able = once.any(1)
    return Asked(notes[able], once[able].float().multinomial(1)[:, 0])


class MemoryNetwork(nn.Module):
    """Melodies (B, T) and questions (B,) -> logits (B, PITCHES) of the answers, and each hop's weights (B, T)."""

    def __init__(self, hops: int, places: bool = True, late: bool = False) -> None:
        super().__init__()
        self.hops, self.places, self.late = hops, places, late
        self.a, self.c = nn.Embedding(PITCHES, D), nn.Embedding(PITCHES, D)
        self.t_a, self.t_c = nn.Embedding(LENGTH, D), nn.Embedding(LENGTH, D)
        self.h, self.w = nn.Linear(D, D, bias=False), nn.Linear(D, PITCHES, bias=False)
        for table in (self.a, self.c, self.t_a, self.t_c):
            nn.init.normal_(table.weight, std=0.3)

    def forward(self, notes: Tensor, question: Tensor) -> tuple[Tensor, list[Tensor]]:
        m, c = self.a(notes), self.c(notes)  # (B, T, D)
        if self.places:
            m, c = m + self.t_a.weight, c + self.t_c.weight
        if self.late:
            m = F.pad(m[:, :-1], (0, 0, 1, 0))
        u, looks = self.a(question), []  # (B, D)
        for _ in range(self.hops):
            p = (m @ u[..., None])[..., 0].softmax(-1)  # (B, T)
            u = self.h(u) + (p[:, None] @ c)[:, 0]
            looks.append(p)
        return self.w(u), looks


def lesson(size: float = 1.0) -> Finding:
    training, unseen = (torch.from_numpy(lines(LENGTH, held_out=held_out)) for held_out in (False, True))
    test = ask(unseen.repeat(4, 1))
    kinds = {
        "1 hop": MemoryNetwork(1),
        "2 hops": MemoryNetwork(2),
        "3 hops": MemoryNetwork(3),
        "2 hops, no places": MemoryNetwork(2, places=False),
        "1 hop, keys a note late": MemoryNetwork(1, late=True),
    }

    def draw() -> Asked:
        melodies = training[torch.randint(len(training), (BATCH,))]
        return ask(melodies + torch.randint(-5, 7, (BATCH, 1)))  # in any key

    follows = torch.zeros(PITCHES, PITCHES)
    known = ask(training.repeat(8, 1))
    follows.index_put_((known.note(0), known.note(1)), torch.ones(len(known.notes)), accumulate=True)
    right = {"the commonest next note": share(follows[test.note(0)], test)}
    rows: list[tuple[str, ...]] = [("the commonest next note", f"{right['the commonest next note']:.0%}", "", "")]
    looks: dict[str, list[Tensor]] = {}
    for name, net in kinds.items():

        def loss(net: nn.Module = net) -> Tensor:
            asked = draw()
            return F.cross_entropy(net(asked.notes, asked.note(0))[0], asked.note(1))

        descend(net.parameters(), loss, max(110, int(1000 * size)), lr=0.01)
        with torch.no_grad():
            logits, looks[name] = net(test.notes, test.note(0))
        right[name] = share(logits, test)
        most = [max(look.gather(1, test.place[:, None] + later).mean() for look in looks[name]) for later in (0, 1)]
        rows.append((name, f"{right[name]:.0%}", *(f"{weight:.0%}" for weight in most)))
    return Finding(
        ("what answers", "right", "a hop's weight on the note asked", "on the note after it"),
        rows,
        f"Two hops are right for {right['2 hops']:.0%} of the questions on melodies that they never saw, one hop for "
        f"{right['1 hop']:.0%}. Two hops that know no places, so only which notes there are, are right for "
        f"{right['2 hops, no places']:.0%}. Where keys come one note late, one hop is for "
        f"{right['1 hop, keys a note late']:.0%}.",
        picture(right, test, looks["2 hops"]),
        ("model/recall.py", "model/recurrent.py"),
    )


def share(logits: Tensor, test: Asked) -> float:
    """Of right answers."""
    return float((logits.argmax(-1) == test.note(1)).float().mean())


def picture(right: dict[str, float], test: Asked, looks: list[Tensor]) -> Figure:
    """How often each is right; and where two hops look in one melody."""
    figure = new_figure(10, 4)
    grid = figure.add_gridspec(2, 2, width_ratios=(1, 1.2))
    bars, melody, weights = (figure.add_subplot(part) for part in (grid[:, 0], grid[0, 1], grid[1, 1]))
    drawn = bars.barh(list(right), list(right.values()), color=[FAINT, *[COLOURS[0]] * (len(right) - 1)])
    bars.bar_label(drawn, [f"{each:.0%}" for each in right.values()], padding=3, color=INK)
    bars.invert_yaxis()
    bars.set(
        xlim=(0, 1.2), xticks=(0, 0.5, 1), xlabel="share of right answers", title="Which note came after this one?"
    )
    bars.spines[["top", "right"]].set_visible(False)
    n = int((test.place - LENGTH // 2).abs().argmin())  # a note in the middle
    notes, place = test.notes[n], int(test.place[n])
    melody.step(np.arange(LENGTH + 1) - 0.5, [*notes, notes[-1]], where="post", color=FAINT, lw=2)
    for later, colour, name in ((0, COLOURS[0], "the note asked"), (1, COLOURS[1], "its answer")):
        at = place + later
        melody.hlines(notes[at], at - 0.5, at + 0.5, color=colour, lw=5, label=name)
        weights.bar(
            np.arange(LENGTH) + 0.4 * (later - 0.5), looks[later][n], 0.4, color=colour, label=f"hop {later + 1}"
        )
    melody.set(ylabel="pitch (MIDI)", title="Where two hops look in a melody")
    weights.set(ylabel="weight", xlabel="place in the melody (quarters)", ylim=(0, 1))
    for axes in (melody, weights):
        axes.set_xlim(-1, LENGTH)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    return figure
