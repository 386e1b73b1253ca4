"""Piano rolls: the seed in one colour and new music in another, a melody and its voices, or notes by a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import LinearSegmentedColormap, Normalize, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path as Outline
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from musictx.music.score import Bars, Filled, Score
from musictx.viz.figure import FAINT, GREY, INK, new_figure, save_figure

SEED_COLOUR, NEW_COLOUR = "#0072B2", "#E69F00"  # distinct for colour-blind eyes too (Okabe and Ito 2008)
CHORD_COLOUR, BAR_COLOUR = "#009E73", "#d3d7dc"
BLACK_KEYS = {1, 3, 6, 8, 10}
WIDTH_IN, KEY_IN, LEAST_IN = 12.0, 0.034, 1.9  # a row's width, a semitone's height in it, its least height
ROW_S = 60.0  # longer music continues in a row below
MOST_ROWS = 40
MOST_BARS, LETTERS_IN = 80, 0.3  # in a row, of more only some have lines; the least width of a number
STRIKE = 0.0022  # of a row's width: the darker beginning of a note
STRIKE_SHADE = 0.62  # of its brightness
PALEST = 0.15  # share of its colour that the softest note has
HUES = LinearSegmentedColormap.from_list("attribution", ["#D55E00", "#e8e6e3", "#0072B2"])  # for colour-blind eyes too
PLAIN = "#d5d8dc"  # of notes that have no figure
STRIP_IN, LETTER_IN = 0.24, 0.083  # the height of a strip of chords, the width of a letter in it

# the second from which notes are new, the fill of a gap, or which notes (N,) are the voices of a melody
New = float | Filled | NDArray[np.bool_]
Panel = tuple[str, Score, New]  # title, score, its new part
Chord = tuple[str, float, float, float | None]  # name, from and to in seconds, share of the sound that belongs to it


def piano_roll(
    panels: Sequence[Panel],
    path: Path,
    *,
    bars: Bars | None = None,
    chords: Sequence[Sequence[Chord]] = (),
) -> None:
    """Writes a PNG, SVG or PDF: the panels below each other, with one time axis. Raises ConfigError for another suffix.

    `bars` adds bar lines with their numbers; `chords` of each panel come above its notes.
    """
    save_figure(plot_rolls(panels, bars, chords=chords), path)


def plot_rolls(
    panels: Sequence[Panel],
    bars: Bars | None = None,
    row_s: float | None = None,
    chords: Sequence[Sequence[Chord]] = (),
    width_in: float = WIDTH_IN,
) -> Figure:
    """Plots as `piano_roll` does, in rows of `row_s` (None: about a minute)."""
    low, high = key_range([score for _, score, _ in panels])
    end_s = max(max(score.duration_s for _, score, _ in panels), 1.0)
    n_rows, width_s = rows_of(end_s, row_s)
    strip_in = STRIP_IN if any(chords) else 0.0
    ruler_in = 0.5 if bars is None else 0.64
    figure = new_figure(width_in, (roll_in(low, high) + strip_in + ruler_in) * len(panels) * n_rows + 0.5)
    grid = figure.subplots(len(panels) * n_rows, squeeze=False)[:, 0].reshape(len(panels), n_rows)
    for (title, score, new), panel_chords, rows in zip(panels, chords or [()] * len(panels), grid, strict=True):
        for k, axes in enumerate(rows):
            plot_keys(axes, low, high, "" if k else title)
            span_s = k * width_s, (k + 1) * width_s
            plot_notes(axes, score, new, span_s)
            if strip_in:
                plot_chords(axes, panel_chords, span_s, strip_in / roll_in(low, high), width_in)
            plot_time(axes, span_s, end_s, bars, label=axes is grid[-1, -1])
    two_colours = [new for _, score, new in panels if 0 < new_notes(score, new).sum() < len(score)]
    if two_colours:
        plot_legend(grid[0, 0], two_colours[0], any(chords), narrow=width_in < WIDTH_IN)
    return figure


def rows_of(end_s: float, row_s: float | None = None) -> tuple[int, float]:
    """How many rows music has, and the seconds in each: whole ones, or `row_s`."""
    n_rows = int(min(max(np.ceil(end_s / (row_s or ROW_S) - 1e-9), 1), MOST_ROWS))
    return n_rows, end_s if n_rows == 1 else max(row_s or 0, np.ceil(end_s / n_rows))


def roll_in(low: int, high: int) -> float:
    """The height of a row of these keys, in inches."""
    return max(KEY_IN * (high - low), LEAST_IN)


def plot_legend(axes: Axes, new: New, chords: bool = False, narrow: bool = False) -> None:
    """Explains the colours above the upper right corner, or above the title of a narrow picture."""
    if isinstance(new, Filled):
        words = "kept", "new"
    else:
        words = ("seed", "continuation") if isinstance(new, float | int) else ("melody", "voices")
    entries = dict(zip(words, (SEED_COLOUR, NEW_COLOUR), strict=True))
    entries |= {"chord asked for, and its share of the sound": CHORD_COLOUR} if chords else {}
    where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1)}
    (axes.figure if narrow else axes).legend(
        handles=[Patch(color=colour, label=word) for word, colour in entries.items()],
        **({"loc": "outside upper left"} if narrow else where),
        borderaxespad=0.2,
        ncols=3,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
        handlelength=0.9,
        columnspacing=1.2,
        handleheight=0.9,
    )


def key_range(scores: Sequence[Score]) -> tuple[int, int]:
    """The lowest and the highest key to plot: slightly beyond the notes."""
    sounding = [score.pitch for score in scores if len(score)]
    low = min((int(pitch.min()) for pitch in sounding), default=60) - 2
    high = max((int(pitch.max()) for pitch in sounding), default=72) + 2
    return low, max(high, low + 24)


def plot_keys(axes: Axes, low: int, high: int, title: str = "") -> None:
    """Plots the keyboard as a background: black keys shaded, a line and a name at every C; and the title."""
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold", color=INK, parse_math=False)
    black = np.array([pitch for pitch in range(low, high + 1) if pitch % 12 in BLACK_KEYS])
    bands = black[:, None, None] * [0, 1] + np.array([[0, -0.5], [1, -0.5], [1, 0.5], [0, 0.5]])  # (N, 4, 2)
    keys = Outline.make_compound_path_from_polys(bands)  # one patch takes a tenth of the time of one for each key
    axes.add_patch(PathPatch(keys, transform=axes.get_yaxis_transform("grid"), color="#f4f5f6", lw=0, zorder=0))
    octaves = [pitch for pitch in range(low, high + 1) if pitch % 12 == 0]
    for pitch in octaves:
        axes.axhline(pitch - 0.5, color="#dfe1e5", lw=0.7, zorder=0.5)
    axes.set_yticks(octaves, [f"C{pitch // 12 - 1}" for pitch in octaves])
    axes.set_ylim(low - 0.5, high + 0.5)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize=8.5, labelcolor=INK)


def new_notes(score: Score, new: New) -> NDArray[np.bool_]:
    """(N,) which notes are new."""
    if isinstance(new, Filled):
        return new.is_new
    return score.onset_s >= new - 1e-6 if isinstance(new, float | int) else new


def borders_s(new: New) -> tuple[float, ...]:
    """The borders of new music in seconds; a plain mask has none."""
    if isinstance(new, Filled):
        return new.from_s, new.to_s
    return (new,) if isinstance(new, float | int) else ()


def plot_notes(axes: Axes, score: Score, new: New, span_s: tuple[float, float]) -> None:
    """Plots the notes of a row as boxes, new ones in the second colour, with a dashed line at their borders."""
    is_visible = (score.onset_s < span_s[1]) & (score.offset_s >= span_s[0])
    is_new = new_notes(score, new)
    for colour, is_colour in ((SEED_COLOUR, ~is_new), (NEW_COLOUR, is_new)):
        part = score.select(is_colour & is_visible)
        corners = boxes(part, span_s[1] - span_s[0])
        # a darker beginning shows each onset among long notes that the pedal sustains
        onsets = corners.copy()
        onsets[:, 1:3, 0] = np.minimum(onsets[:, 1:3, 0], onsets[:, :1, 0] + STRIKE * (span_s[1] - span_s[0]))
        for outlines, shade in ((corners, 1.0), (onsets, STRIKE_SHADE)):
            plot_boxes(axes, outlines, part.velocity, colour, shade)
    for border_s in borders_s(new):
        if 0 < border_s < score.duration_s:
            axes.axvline(border_s, color=FAINT, lw=1, ls=(0, (4, 3)), zorder=0.8)


def plot_boxes(axes: Axes, corners: NDArray[Any], velocity: NDArray[Any], colour: str, shade: float) -> None:
    """Plots boxes (N, 4, 2), so bright as their notes are loud."""
    # all notes of one loudness are one outline: thousands of outlines take seconds
    loudness = np.unique(velocity)
    outlines = [Outline.make_compound_path_from_polys(corners[velocity == each]) for each in loudness]
    faces = shade * shades(loudness, colour)
    axes.add_collection(PathCollection(outlines, facecolors=faces, lw=0, transform=axes.transData), autolim=False)


def plot_chords(
    axes: Axes, chords: Sequence[Chord], span_s: tuple[float, float], height: float, width_in: float
) -> None:
    """Plots a strip of chord names above the notes, deeper in colour by their shares; `height` is a share of the
    notes'."""
    low, high = axes.get_ylim()
    top = high + height * (high - low)
    axes.set_ylim(low, top)
    spans = [(name, max(begin, span_s[0]), min(end, span_s[1]), share) for name, begin, end, share in chords]
    spans = [chord for chord in spans if chord[1] < chord[2]]
    faces = [(*to_rgb(CHORD_COLOUR), 0.05 + 0.4 * (share or 0)) for *_, share in spans]
    axes.broken_barh([(begin, end - begin) for _, begin, end, _ in spans], (high, top - high), facecolors=faces, lw=0)
    axes.vlines([begin for _, begin, _, _ in spans], low, top, color=CHORD_COLOUR, alpha=0.5, lw=0.8)
    for name, from_s, to_s, share in spans:
        letters = (to_s - from_s) / (span_s[1] - span_s[0]) * (width_in - 0.5) / LETTER_IN
        words = (name if share is None else f"{name} {share:.0%}", name)
        style: dict[str, Any] = {"fontsize": 8.5, "color": INK, "va": "center", "parse_math": False}
        for text in [each for each in words if len(each) < letters][:1]:
            axes.annotate(text, (from_s, (high + top) / 2), (4, 0), textcoords="offset points", **style)


def boxes(score: Score, width_s: float) -> NDArray[Any]:
    """(N, 4, 2) corners. A small gap at each end keeps repeated notes apart; no box is too thin to see."""
    pixel_s = width_s / 1200
    length = np.maximum(score.offset_s - score.onset_s, pixel_s)
    length = np.maximum(length - 1.5 * pixel_s, 0.7 * length)
    x, y = score.onset_s, score.pitch.astype(float)
    corners = ((x, y - 0.42), (x + length, y - 0.42), (x + length, y + 0.42), (x, y + 0.42))
    return np.moveaxis(np.array(corners), 2, 0)


def shades(velocity: NDArray[Any], colour: str) -> NDArray[Any]:
    """(N, 3) the colour itself for velocity 127, paler for softer notes; opaque."""
    strength = PALEST + (1 - PALEST) * (velocity[:, None].astype(float) - 1) / 126
    rgb: NDArray[Any] = 1 - strength * (1 - np.array(to_rgb(colour)))
    return rgb


def plot_time(
    axes: Axes, span_s: tuple[float, float], end_s: float, bars: Bars | None = None, label: bool = False
) -> None:
    """Plots round seconds (minutes if `end_s` is late), or bar lines with seconds below. `label` names the units."""
    axes.set_xlim(span_s[0], span_s[1] + 0.004 * (span_s[1] - span_s[0]))
    seconds: Any = axes.xaxis
    locate, say = seconds.set_major_locator, seconds.set_major_formatter
    if bars is None:
        axes.grid(axis="x", color="#eceef0", lw=0.7)
    else:
        plot_bars(axes, span_s, bars)
        locate, say, seconds.remove_overlapping_locs = seconds.set_minor_locator, seconds.set_minor_formatter, False
        axes.tick_params(axis="x", which="minor", length=0, labelsize=7.5, labelcolor=GREY, pad=15)
    locate(MaxNLocator(12, steps=[1, 2, 5, 10]))
    say(FuncFormatter(in_minutes if end_s >= 90 else in_seconds))
    axes.set_axisbelow(True)
    if label:
        axes.set_xlabel("seconds" if bars is None else "bars, and seconds", color=INK, fontsize=9)


def plot_bars(axes: Axes, span_s: tuple[float, float], bars: Bars) -> None:
    """Plots the bar lines of a row, with their numbers where there is room."""
    is_visible = (bars.lines_s > span_s[0] - 1e-6) & (bars.lines_s < span_s[1] + 1e-6)
    lines_s, numbers = bars.lines_s[is_visible], bars.numbers[is_visible]
    most = max((axes.figure.get_figwidth() - 0.5) / LETTERS_IN, 1)  # type: ignore[union-attr]
    every = next((n for n in (1, 2, 4, 8, 16, 32) if len(numbers) <= most * n), 64)
    has_number = (numbers > 0) & ((numbers - 1) % every == 0)
    visible_s = lines_s if len(lines_s) <= MOST_BARS else lines_s[has_number]
    axes.vlines(visible_s, 0, 1, transform=axes.get_xaxis_transform("grid"), color=BAR_COLOUR, lw=0.7, zorder=0.6)
    axes.set_xticks(lines_s[has_number].tolist(), [str(number) for number in numbers[has_number]])


def in_seconds(seconds: float, _: object = None) -> str:
    return f"{seconds:g}"


def in_minutes(seconds: float, _: object = None) -> str:
    return f"{int(seconds // 60)}:{seconds % 60:04.1f}".removesuffix(".0")


def plot_attribution(
    title: str,
    score: Score,
    attribution: NDArray[Any],
    frames: Sequence[int],
    path: Path,
    label: str,
    least: float,
) -> None:
    """Writes a roll coloured by `attribution` (N,), whose NaN are without colour, with frames around the notes
    `frames`.

    The strongest colours are at `least` so far from 0. Raises ConfigError for another suffix.
    """
    low, high = key_range([score])
    end_s = max(score.duration_s, 1.0)
    n_rows, width_s = rows_of(end_s)
    most = max(float(np.nanmax(np.abs(attribution), initial=0.0)), least)
    hue, corners, plain = ScalarMappable(Normalize(-most, most), HUES), boxes(score, width_s), np.isnan(attribution)
    looks: list[tuple[Any, dict[str, Any]]] = [
        (plain, {"facecolors": PLAIN, "lw": 0}),
        (~plain, {"facecolors": hue.to_rgba(attribution[~plain]), "edgecolors": FAINT, "lw": 0.4}),
        (list(frames), {"facecolors": "none", "edgecolors": INK, "lw": 1.5}),
    ]
    figure = new_figure(WIDTH_IN, (roll_in(low, high) + 0.5) * n_rows + 0.2)
    rows = figure.subplots(n_rows, squeeze=False)[:, 0]
    for k, axes in enumerate(rows):
        plot_keys(axes, low, high, "" if k else title)
        plot_time(axes, (k * width_s, (k + 1) * width_s), end_s, label=k == n_rows - 1)
        for notes, look in looks:
            axes.add_collection(PolyCollection(list(corners[notes]), zorder=2, **look), autolim=False)
    scale = figure.colorbar(hue, ax=list(rows), pad=0.01, shrink=1 / n_rows, anchor=(0.0, 1.0))
    scale.set_label(label, fontsize=8, color=INK, parse_math=False)
    save_figure(figure, path)
