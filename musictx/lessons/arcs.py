"""Arcs to the first chorus: when a chorus comes again, heads of a trained Transformer look at its first time.

A song is a verse, a chorus, another verse, and the chorus again, each of eight quarters. When note t is made, head h
gives each earlier note s the weight w(t, s) = softmax_s(q_t · k_s / sqrt(d) + what position adds). An arc is such a
weight. In the second chorus, the note so many quarters back is the same note; in the verse before it is another one,
though as far away. A head that finds what came next in a like place is an induction head (Olsson et al. 2022). To
silence a head shows whether the model needs it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor

from musictx.analysis.heads import attention_to_past
from musictx.generate.open_bundle import open_bundle
from musictx.lessons import Finding
from musictx.lessons.hymns import hymns
from musictx.model.packaged import CHORALE, packaged_bundle
from musictx.model.position.form import Form
from musictx.model.readout import read_attention
from musictx.music.grid import Grid, grid_to_score
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.viz.curves import COLOURS
from musictx.viz.figure import FAINT, INK, new_figure
from musictx.viz.piano_roll import key_range, plot_keys, plot_notes, plot_time

STEPS, VOICES, QUARTER = 32, 4, 4  # sixteenths of a section; ids of a sixteenth; sixteenths of a quarter
SECTIONS = ("verse", "chorus", "another verse", "the chorus again")
BACK = 2 * STEPS * VOICES  # ids from the second chorus to the first, and from a verse to the other
LEAST = 0.05  # weight of an arc
Head = tuple[int, int]  # its layer, and its number there


def songs(n: int, held_out: bool = True) -> list[Grid]:
    """(4 · STEPS, 4) each: verse, chorus, another verse, the chorus again: the beginnings of three hymns."""
    parts = [grid[:STEPS] for grid in hymns(held_out) if (grid[:STEPS] >= 0).all()]
    return [np.concatenate([parts[(k + turn) % len(parts)] for turn in (0, 1, 2, 1)]) for k in range(n)]


def weight_back(model: Any, ids: Tensor) -> NDArray[Any]:
    """(L, H, T / 2): when each id of the second half is made, the weight on the id that lies BACK ids before it."""
    made = torch.arange(BACK, 2 * BACK)  # id t is made at place t, where BOS and t ids have been read
    found: list[Tensor] = []

    def visit(layer: int, rows: Tensor) -> None:  # (1, H, T / 2, T)
        found.append(rows[0].gather(2, (made - BACK + 1).expand(rows.shape[1], -1)[..., None])[..., 0])

    read_attention(model, ids[None, :-1], made, visit)
    return torch.stack(found).numpy()


@contextmanager
def silent(model: Any, heads: Sequence[Head]) -> Iterator[None]:
    """Within it, these heads add nothing to what their layers say."""

    def silence(head: int) -> Any:
        return lambda form, given, out: out * (torch.arange(out.shape[1]) != head)[:, None, None]  # (B, H, T, D)

    forms = [module for module in model.modules() if isinstance(module, Form)]
    hooks = [forms[layer].register_forward_hook(silence(head)) for layer, head in heads]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


@torch.inference_mode()
def nats(model: Any, ids: Tensor, heads: Sequence[Head] = ()) -> NDArray[Any]:
    """(T,) -ln p of each id, with these heads silent."""
    with silent(model, heads):
        return F.cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="none").numpy()


def mean(values: NDArray[Any], begins: NDArray[np.bool_], part: int, parts: int) -> NDArray[Any]:
    """The mean over the notes that begin in one of so many equal parts: (…, N, T), (N, T) -> (…)."""
    where = np.array_split(np.arange(begins.shape[1]), parts)[part]
    found: NDArray[Any] = values[..., where][..., begins[:, where]].mean(-1)
    return found


class Heard(NamedTuple):
    """Songs as the model reads them."""

    ids: list[Tensor]  # (T + 1,) each, after BOS
    begins: NDArray[np.bool_]  # (N, T) where notes begin
    back: NDArray[Any]  # (L, H, N, T / 2)


def hear(model: Any, music: Sequence[Grid]) -> Heard:
    tokenizer = ChoraleTokenizer()
    ids = [torch.from_numpy(np.append(tokenizer.vocab.bos, tokenizer.encode_grid(song)).astype(int)) for song in music]
    begins = np.stack([np.diff(song, axis=0, prepend=-1).reshape(-1) != 0 for song in music])
    return Heard(ids, begins, np.stack([weight_back(model, x) for x in ids], 2))


def lesson(size: float = 1.0) -> Finding:
    model, tokenizer = open_bundle(packaged_bundle(CHORALE)).model, ChoraleTokenizer()
    n = max(2, int(24 * size))
    _, begins, back = hear(model, songs(n, held_out=False))  # heads are chosen on other songs than they are measured on
    looks = mean(back, begins[:, BACK:], 1, 2)  # (L, H)
    first, second = sorted(np.ndindex(looks.shape), key=lambda head: -looks[head])[:2]
    music = songs(n)
    ids, begins, back = hear(model, music)
    verse, chorus = (mean(back, begins[:, BACK:], part, 2) for part in (0, 1))  # (L, H)
    beside = [(layer, (head + 1) % chorus.shape[1]) for layer, head in (first, second)]
    groups: dict[str, Sequence[Head]] = {f"layer {head[0]}, head {head[1]}": [head] for head in (first, second)}
    groups |= {"both": [first, second], "two beside them": beside, "no head": []}
    rows, costs = [], {}
    for name, heads in groups.items():
        cost = np.stack([nats(model, x, heads) for x in ids])  # (N, T)
        costs[name] = [mean(cost, begins, section, 4) for section in (2, 3)]
        shares = [f"{np.mean([of[head] for head in heads]):.1%}" if heads else "" for of in (chorus, verse)]
        rows.append((name, *shares, *(f"{each:.2f}" for each in reversed(costs[name]))))
    (v, c), (v_both, c_both), (_, c_beside) = costs["no head"], costs["both"], costs["two beside them"]
    return Finding(
        ("heads", "weight, chorus", "weight, verse", "nats if silent, chorus", "nats if silent, verse"),
        rows,
        f"For a note of the second chorus, head {first[1]} of layer {first[0]} has {chorus[first]:.0%} of its weight "
        f"on that note in the first. In the verse it has {verse[first]:.0%} on the place as far back. A note of the "
        f"second chorus costs {c:.2f} nats, {c_both:.2f} where the two heads of the table are silent, and "
        f"{c_beside:.2f} where two beside them are. A note of the verse costs {v:.2f}, {v_both:.2f} without the two.",
        picture(model, tokenizer, music[0], {first: back[first], second: back[second]}, begins[:, BACK:]),
        ("analysis/heads.py", "viz/arcs.py", "commands/attend.py"),
    )


def picture(
    model: Any, tokenizer: ChoraleTokenizer, song: Grid, back: dict[Head, NDArray[Any]], begins: NDArray[np.bool_]
) -> Figure:
    """The arcs from one note of the second chorus; and how the weight moves to the first chorus, quarter by quarter."""
    ids, score = tokenizer.encode_grid(song), grid_to_score(song)
    traced, quarters = tokenizer.trace(ids, score.quarter_s), STEPS // QUARTER
    note = int(traced.note[VOICES * (3 * STEPS + 5 * QUARTER)])  # the soprano's, five quarters into the chorus
    figure, end_s, (low, high) = new_figure(9.5, 4.8, dpi=80), score.duration_s, key_range([score])
    roll, curve = figure.subplots(2, height_ratios=(1.6, 1))
    plot_keys(roll, low, high, "Arcs from one note of the second chorus to the notes that two heads look at")
    plot_notes(roll, score, np.inf, (0, end_s))
    plot_time(roll, (0, end_s), end_s, label=True)
    roll.set_ylim(low, high + 22)
    for (head, weights), colour in zip(back.items(), (COLOURS[4], COLOURS[2]), strict=True):
        looked = attention_to_past(model, tokenizer, ids, traced, note).weight[head]  # (N,) on each note
        for past in np.flatnonzero(looked > LEAST):
            ends = [(score.onset_s[n], score.pitch[n]) for n in (note, past)]
            arc = {"arrowstyle": "-", "connectionstyle": f"arc3,rad={-0.16 if colour == COLOURS[4] else -0.22}"}
            roll.annotate("", *ends, arrowprops=arc | {"color": colour, "lw": 0.8 + 3 * looked[past], "alpha": 0.8})
        by_quarter = [mean(weights, begins, n, 2 * quarters) for n in range(2 * quarters)]
        at = 2 * quarters + np.arange(2 * quarters) + 0.5
        curve.plot(at, by_quarter, "o-", color=colour, label=f"layer {head[0]}, head {head[1]}")
    for n, name in enumerate(SECTIONS):
        roll.text((n + 0.5) * end_s / 4, high + 20, name, ha="center", color=INK)
        roll.axvline(n * end_s / 4, color=FAINT, lw=0.8, ls="--")
    curve.axvline(3 * quarters, color=FAINT, lw=0.8, ls="--")
    curve.set(
        xlim=(2 * quarters, 4 * quarters), ylim=(0, 1), xlabel="quarter of the song", ylabel="share of the weight"
    )
    title = f"Weight on the note {2 * quarters} quarters back: another verse, then the chorus again"
    curve.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK)
    curve.legend(frameon=False, loc="upper left")
    return figure
