"""The three gates of an LSTM as maps over the notes: what the memory takes in, what it lets go, what it shows.

    i, f, o = sigmoid(W x_t + U h_{t-1} + b)      input, forget and output gate, each with weights of its own
    c_t = f c_{t-1} + i tanh(W x_t + U h_{t-1} + b)
    h_t = o tanh(c_t)                             Hochreiter and Schmidhuber 1997; the forget gate: Gers et al. 2000

A gate is a number from 0, shut, to 1, open, for each cell at each note. Here they have something to do: the net reads a
soprano line in which some notes are marked, and some ask. It names each note that it hears; but at a note that asks,
it names the one that was marked last. A gate held at its mean shows what it is for: it no longer hears the music.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from musictx.lessons import Finding
from musictx.lessons.descend import descend
from musictx.lessons.hymns import lines
from musictx.model.recurrent import Recurrent, RecurrentConfig
from musictx.viz.curves import COLOURS
from musictx.viz.figure import new_figure

LENGTH, WIDTH, BATCH, STEPS = 24, 32, 32, 1000
LOW, N_PITCHES = 55, 32  # sopranos, moved by up to 3 semitones
PLAIN, MARKED, ASKING = KINDS = range(3)
GATES = ("input", "forget", "output")
MEMORY = WIDTH // 4  # cells whose forget gate tells marked notes from plain ones most


def mark(pitches: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Pitches (B, T) -> kinds of note, ids of pitch and kind, and the pitches to name, each (B, T)."""
    kind = torch.tensor([6, 1, 2.0]).multinomial(pitches.numel(), replacement=True).view(pitches.shape)  # of 9 each
    kind[:, 0] = MARKED
    last = torch.where(kind == MARKED, torch.arange(pitches.shape[1]), 0).cummax(1).values
    return kind, pitches + N_PITCHES * kind, torch.where(kind == ASKING, pitches.gather(1, last), pitches)


def unroll(
    model: Recurrent, ids: Tensor, change: Callable[[Tensor], Tensor] = lambda gates: gates
) -> tuple[Tensor, ...]:
    """ids (B, T) -> logits (B, T, V) and gates (B, T, 3, C), which `change` may set at each step, (B, 3, C)."""
    x = model.embed(ids)  # (B, T, C)
    w, u, b, b_more = model.cells.parameters()  # (4C, C), (4C, C), (4C,), (4C,)
    h = c = torch.zeros_like(x[:, 0])
    states, every = [], []
    for wx in F.linear(x, w, b + b_more).unbind(1):  # (B, 4C)
        i, f, g, o = (wx + F.linear(h, u)).chunk(4, -1)
        every.append(change(torch.stack([i, f, o], 1).sigmoid()))
        i, f, o = every[-1].unbind(1)
        c = f * c + i * torch.tanh(g)
        h = o * torch.tanh(c)
        states.append(h)
    return F.linear(torch.stack(states, 1), model.embed.weight), torch.stack(every, 1)


def train(steps: int) -> Recurrent:
    """The toolkit's LSTM, trained to name the notes."""
    model = Recurrent(RecurrentConfig(len(KINDS) * N_PITCHES, d_model=WIDTH, n_layers=1, dropout=0.0))
    pitches = torch.from_numpy(lines(LENGTH)) - LOW  # (N, T)

    def loss() -> Tensor:
        moved = pitches[torch.randint(len(pitches), (BATCH,))] + torch.randint(-3, 4, (BATCH, 1))
        _, ids, named = mark(moved)
        return F.cross_entropy(model(ids).flatten(0, 1), named.flatten())

    descend(model.parameters(), loss, steps, lr=1e-2)
    return model


@torch.no_grad()
def lesson(size: float = 1.0) -> Finding:
    with torch.enable_grad():
        model = train(max(400, int(STEPS * size)))
    kind, ids, _ = mark(torch.from_numpy(lines(LENGTH)) - LOW)
    forget = unroll(model, ids)[1][:, :, 1]  # (N, T, C)
    memory = (forget[kind == MARKED].mean(0) - forget[kind == PLAIN].mean(0)).argsort()  # (C,) cells

    kind, ids, named = mark(torch.from_numpy(lines(LENGTH, held_out=True)) - LOW)  # (N, T) each
    asked = kind == ASKING
    logits, gates = unroll(model, ids)
    mean = gates.mean((0, 1))  # (3, C)

    def right(logits: Tensor) -> tuple[float, float]:
        """The share of notes that ask, and of the others, after which the right pitch is the likeliest."""
        found = (logits.argmax(-1) == named).float()
        return float(found[asked].mean()), float(found[~asked].mean())

    most = float(named[asked].bincount().max() / asked.sum())
    free = right(logits)
    rows = [("none held", *[""] * len(KINDS), *(f"{share:.0%}" for share in free))]
    opened, held = [], []
    for n, gate in enumerate(GATES):
        own = torch.arange(len(GATES))[:, None] == n  # (3, 1)

        def hold(now: Tensor, own: Tensor = own) -> Tensor:
            return torch.where(own, mean, now)

        held.append(right(unroll(model, ids, hold)[0]))
        opened.append([float(gates[kind == each][:, n, memory[:MEMORY]].mean()) for each in KINDS])
        rows.append((gate, *(f"{share:.2f}" for share in opened[-1]), *(f"{share:.0%}" for share in held[-1])))

    figure = new_figure(9, 6, 95)
    tune, *maps = figure.subplots(1 + len(GATES), 1, sharex=True, gridspec_kw={"height_ratios": [1.3, 1, 1, 1]})
    line = int(asked.sum(1).argmax())  # the one with most to see
    for each, label, colour in zip(
        KINDS, ("plain", "marked", "asks"), ("#9aa0a6", COLOURS[4], COLOURS[0]), strict=True
    ):
        at = (kind[line] == each).nonzero()[:, 0]
        notes = ids[line, at] % N_PITCHES + LOW
        tune.hlines(notes, at + 0.05, at + 0.95, color=colour, lw=5, label=label)
    tune.set(ylabel="pitch (MIDI)")
    tune.set_title("a soprano line that the net has not seen", loc="left")
    tune.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 0.95), borderaxespad=0)
    for n, (axes, gate) in enumerate(zip(maps, GATES, strict=True)):
        values, box = gates[line, :, n, memory].T, (0, LENGTH, 0, WIDTH)
        image = axes.imshow(values, vmin=0, vmax=1, aspect="auto", origin="lower", extent=box, interpolation="nearest")
        axes.axhline(MEMORY, color="white", lw=2)
        axes.set_yticks([MEMORY / 2, (WIDTH + MEMORY) / 2], ["memory", "others"])
        axes.tick_params(axis="y", length=0)
        axes.set_title(f"{gate} gate", loc="left")
    maps[-1].set_xlabel("beat")
    figure.colorbar(image, ax=maps, label="how open")
    (closed, taken, _), (kept, dropped, _), (_, _, shown) = opened
    return Finding(
        ("gate", "at plain notes", "at marked ones", "at ones that ask", "held: asked right", "held: others right"),
        rows,
        f"The memory is the {MEMORY} cells of {WIDTH} whose forget gates tell marked notes best. At marked notes their "
        f"input gates are open ({taken:.2f}; at plain ones {closed:.2f}), their forget gates shut ({dropped:.2f}; at "
        f"plain ones {kept:.2f}). At notes that ask their output gates are open ({shown:.2f}). Of what is asked, "
        f"{free[0]:.0%} is named right; with all input gates held at their means {held[0][0]:.0%}, with the forget "
        f"gates {held[1][0]:.0%}. With the output gates held, {held[2][1]:.0%} of the other notes are right, else "
        f"{free[1]:.0%}. The pitch that is asked most often is right in {most:.0%}.",
        figure,
        ("model/recurrent.py", "model/cells.py"),
    )
