"""Pictures of attention: arcs over a piano roll, heat maps of heads, of tokens and of positions."""

from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Curve
from numpy.typing import NDArray

from musictx.music.score import Score
from musictx.viz.figure import FAINT, GREY, INK, new_figure, save_figure
from musictx.viz.piano_roll import boxes, key_range, plot_keys, plot_time, shades

MOTIF_COLOUR = "#009E73"
HEAD_COLOURS = ("#D55E00", "#0072B2", "#CC79A7", "#E69F00", "#56B4E9", "#7B4FA3", "#A6761D", "#1B7837")
LEAST, MOST_ARCS, MOST_MOTIFS = 0.005, 16, 3  # least weight of an arc; most arcs a head; most marked motifs
LIFT = 0.9  # of the keyboard: how far the longest arc is pulled up; it rises half as far
AHEAD = 0.06  # of the width: music after the note


class Head(NamedTuple):
    """One set of arcs: a head, or the mean of several."""

    name: str
    weight: NDArray[Any]  # (N,) on each note


def head_names(layer: int | None, head: int | None = None) -> str:
    """The choice of heads in words."""
    if layer is None:
        return "mean of all heads"
    return f"layer {layer}" if head is None else f"layer {layer} head {head}"


def choose_heads(weight: NDArray[Any], layer: int | None, head: int | None = None) -> tuple[list[Head], str]:
    """The heads to draw out of (L, H, N), and their name."""
    name = head_names(layer, head)
    if layer is None:
        return [Head(name, weight.mean((0, 1)))], name
    if head is not None:
        return [Head(f"head {head}", weight[layer, head])], name
    return [Head(f"head {h}", each) for h, each in enumerate(weight[layer])], name


def plot_arcs(
    title: str, score: Score, note: int, heads: Sequence[Head], motif: Sequence[NDArray[Any]], path: Path
) -> None:
    """Writes arcs from `note` to the notes that the heads look at, wider and darker by weight.

    `motif`: occurrences of a motif to mark, oldest first, the one that leads to the note last. Raises ConfigError for
    another suffix.
    """
    now_s, motif = float(score.onset_s[note]), motif[-MOST_MOTIFS:]
    has_arc = np.any([head.weight >= LEAST for head in heads], axis=0)
    motif_notes = np.concatenate([np.zeros(0, np.int64), *motif])
    start_s = min([now_s, *score.onset_s[has_arc].tolist(), *score.onset_s[motif_notes].tolist()])
    end_s = max([now_s, *score.onset_s[has_arc].tolist()])  # a melody is read whole, so heads may look ahead in it
    width_s = max((end_s - start_s) / (1 - 2 * AHEAD), 4.0)
    span_s = max(end_s - (1 - AHEAD) * width_s, 0.0), end_s + AHEAD * width_s
    is_visible = (score.onset_s < span_s[1]) & (score.offset_s >= span_s[0])
    low, high = key_range([score.select(is_visible)])
    heaviest = max(float(head.weight.max(initial=0)) for head in heads)
    arcs = [
        (hue, head.weight[n] / heaviest, _arc(score, int(n), note, width_s, LIFT * (1 + 0.1 * k) * (high - low)))
        for k, (head, hue) in enumerate(zip(heads, cycle(HEAD_COLOURS), strict=False))
        for n in np.argsort(head.weight)[-MOST_ARCS:]
        if head.weight[n] >= LEAST and n != note
    ]
    top = max([high + 3.0 * bool(motif), *(float(arc.get_extents().y1) + 2 for _, _, arc in arcs)])

    figure = new_figure(12, 0.05 * (top - low) + 1.2)
    axes = figure.subplots()
    plot_keys(axes, low, high, title)
    axes.set_ylim(low - 0.5, top)
    plot_time(axes, span_s, span_s[1], label=True)
    corners = boxes(score, width_s)
    colour = np.full(len(score), GREY, object)
    colour[motif_notes] = MOTIF_COLOUR
    colour[note] = INK
    for each in (GREY, MOTIF_COLOUR, INK):
        is_shown = is_visible & (colour == each)
        faces = shades(score.velocity[is_shown], each) if each == GREY else each
        axes.add_collection(PolyCollection(list(corners[is_shown]), facecolors=faces, lw=0, zorder=2), autolim=False)
    for k, notes in enumerate(reversed(motif)):
        x = float(score.onset_s[notes[:-1]].min()), float(score.offset_s[notes[:-1]].max())
        axes.plot(x, (high + 0.5, high + 0.5), color=MOTIF_COLOUR, lw=2, solid_capstyle="butt", zorder=1.5)
        name = "before" if k else "the motif"
        axes.text(x[0], high + 1.0, name, color=MOTIF_COLOUR, parse_math=False, fontsize=7.5, va="bottom", zorder=1.5)
    for hue, strength, arc in arcs:
        style = {"edgecolor": hue, "lw": 0.6 + 4.4 * strength, "alpha": 0.3 + 0.55 * strength}
        axes.add_patch(PathPatch(arc, facecolor="none", capstyle="round", zorder=3, **style))
    if not arcs:
        remark = f"no note has {LEAST:.1%} of the weight: it is spread over many tokens"
        axes.text(0.5, 0.5, remark, transform=axes.transAxes, ha="center", color=INK, fontsize=10, zorder=3)
    handles: list[Any] = [
        Line2D([], [], color=hue, lw=3, label=f"{head.name}, heaviest {head.weight.max(initial=0):.1%}")
        for head, hue in zip(heads, cycle(HEAD_COLOURS), strict=False)
    ]
    if motif:
        handles.append(Patch(color=MOTIF_COLOUR, label="the motif, and where it was before"))
    figure.legend(handles=handles, loc="outside lower left", ncols=4, frameon=False, fontsize=8.5, labelcolor=INK)
    save_figure(figure, path)


def _arc(score: Score, past: int, note: int, width_s: float, lift: float) -> Curve:
    """An arc between the beginnings of two notes; longer arcs rise higher."""
    x, y = score.onset_s[[past, note]], score.pitch[[past, note]].astype(float)
    pull = y.max() + lift * np.sqrt(abs(x[1] - x[0]) / width_s)
    return Curve([(x[0], y[0]), (x.mean(), pull), (x[1], y[1])], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])


def plot_heads(maps: Sequence[tuple[str, NDArray[Any], str]], path: Path) -> None:
    """Writes a heat map for each (title, values (L, H), format). Raises ConfigError for another suffix."""
    n_layers, n_heads = maps[0][1].shape
    figure = new_figure((0.62 * n_heads + 0.9) * len(maps) + 0.6, 0.42 * n_layers + 1.1)
    for axes, (title, values, how) in zip(figure.subplots(1, len(maps), squeeze=False)[0], maps, strict=True):
        low, high = np.nanmin(values), np.nanmax(values)
        axes.imshow(values, cmap="Blues", aspect="auto", vmin=min(low, 0), vmax=high * 1.25 or 1)
        for (layer, head), value in np.ndenumerate(values):
            dark = value > 0.8 * high
            axes.text(head, layer, format(value, how), ha="center", va="center", fontsize=8, color="w" if dark else INK)
        axes.set_title(title, fontsize=9, color=INK, loc="left", parse_math=False)
        axes.set_xticks(range(n_heads), [f"head {h}" if h == 0 else str(h) for h in range(n_heads)])
        axes.set_yticks(range(n_layers), [f"layer {n}" if n == 0 else str(n) for n in range(n_layers)])
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelsize=8, labelcolor=FAINT)
    save_figure(figure, path)


def plot_positions(title: str, vectors: NDArray[Any], last: float, xlabel: str, path: Path) -> None:
    """Writes vectors (H, N, W) of distances or places 0 … `last` as heat maps of one scale. Raises ConfigError for
    another suffix."""
    heads, _, width = vectors.shape
    columns = min(heads, 3)
    figure = new_figure(2.6 * columns + 1.4, 2.3 * -(-heads // columns) + 0.7)
    grid = figure.subplots(-(-heads // columns), columns, squeeze=False, sharex=True, sharey=True)
    most = float(np.abs(vectors).max()) or 1.0
    for head, axes in enumerate(grid.flat):
        axes.set_visible(head < heads)
        if head < heads:
            style: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -most, "vmax": most, "aspect": "auto"}
            image = axes.imshow(vectors[head].T, extent=(0, last, width - 0.5, -0.5), interpolation="nearest", **style)
            axes.set_title(f"head {head}" if heads > 1 else "", fontsize=9)
    figure.colorbar(image, ax=grid, shrink=0.8)
    figure.suptitle(title, fontsize=9, color=INK)
    figure.supxlabel(xlabel, fontsize=9)
    figure.supylabel("number of the vector", fontsize=9)
    save_figure(figure, path)


def plot_map(title: str, weight: NDArray[Any], first: int, path: Path) -> None:
    """Writes the weights (Q, Q) of tokens from number `first` on; each row is made after its column. Raises
    ConfigError."""
    figure = new_figure(7.4, 6.2)
    axes = figure.subplots()
    visible_weight = np.ma.masked_equal(weight, 0)  # 0 is ahead
    left, right = first - 0.5, first + len(weight) - 0.5
    scale = LogNorm(float(weight.max()) / 1000, float(weight.max()))
    image = axes.imshow(visible_weight, cmap="viridis", norm=scale, extent=(left, right, right + 1, left + 1))
    figure.colorbar(image, label="share of the weight", extend="min")
    axes.set_title(title, fontsize=9, color=INK, loc="left", parse_math=False)
    axes.set(xlabel="token that is looked at" + "; -1: the beginning" * (first < 0), ylabel="token that is made")
    save_figure(figure, path)
