"""The report of `musictx compare`: a page of Markdown with its pictures."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from musictx.analysis.bootstrap import Interval
from musictx.analysis.continuations import Beginnings
from musictx.analysis.frechet import Frechet
from musictx.analysis.likelihood import Evaluation
from musictx.analysis.motif import RetentionCurve
from musictx.analysis.seed_gain import SeedGain
from musictx.data.store import Store
from musictx.errors import counted
from musictx.files import replacing
from musictx.music.score import Score
from musictx.viz.curves import plot_curves, plot_intervals
from musictx.viz.piano_roll import piano_roll

EXPLAINED = """\
- **NLL**: negative log-likelihood of the held-out pieces, nats per token; lower is better. In brackets: 95 % interval,
  by resampling the pieces.
- **motif retention**: how many of the seed's motifs return in the continuation. 0: as many as return by chance from
  seeds of other pieces; 1: as many as return in the composers' own continuations. Near 1 is best; far above is
  repetition.
- **seed gain**: nats a token that the seed saves on the composers' own continuation, against the same model that knows
  only the seed's last 17 tokens; in the first span and in the last. 0 means forgotten.
- **from the seed**: notes of the longest run that a continuation shares with its seed. **bars again**: the share of its
  bars that repeat an earlier one note for note, of the continuation or of the seed.
- **longest copy**: notes of the longest run that a continuation shares with the training set in any key, mean over
  the continuations. Well above the composer's own figure means known by heart.
- **Fréchet**: how far the continuations are from the composers', as a model hears their passages; lower is better. p:
  the share of shuffles between the two that are as far apart. Fewer pieces always seem farther apart. So "halves" is
  the distance of half the pieces, to compare with the noise floor, that of random halves of the composers' own pieces.
  Figures by another model's ears, or of other numbers of pieces, do not compare.
- **overlap**: how similar the continuations and the composers' are in a statistic of music, 0 to 1 (Yang and Lerch
  2018).
"""


class Memory(NamedTuple):
    """Retention of seeds, as a curve and as one figure, and runs shared with the training set."""

    retention: RetentionCurve | None
    retained: Interval | None
    copied: Interval | None
    unmeasured: str = ""  # why there is no retention
    from_seed: Interval | None = None  # notes of the longest run shared with the seed
    repeated: Interval | None = None  # share of repeated bars; None for music without beats


class Knowledge(NamedTuple):
    """The seed gain of a model; `window` is its context in training, in tokens."""

    gain: SeedGain | None = None
    window: int | None = None
    unmeasured: str = ""  # why there is no gain


@dataclass
class ModelReport:
    """One model, or the composers, who have no likelihood."""

    name: str
    memory: Memory
    nll: Evaluation | None = None
    parameters: int | None = None
    generate_tokens_per_s: float | None = None
    distances: dict[str, Interval] = field(default_factory=dict)
    knows: Knowledge = field(default_factory=Knowledge)
    frechet: Frechet | str | None = None  # or why there is none

    def plain(self) -> dict[str, Any]:
        """The row for JSON, with null for NaN and infinity."""
        return _plain(vars(self) | {"nll": asdict(self.nll) if self.nll else None})  # type: ignore[no-any-return]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {key: _plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple)):
        return _plain(value._asdict()) if hasattr(value, "_asdict") else [_plain(x) for x in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _number(value: float | None) -> str:
    return f"{value:,.0f}" if value else ""


def _with_interval(figure: tuple[float, float, float] | None, digits: int) -> str:
    return "{:.{d}f} ({:.{d}f} – {:.{d}f})".format(*figure, d=digits) if figure else ""


def _first_and_last(gain: SeedGain | None) -> str:
    return ", ".join(_with_interval((gain.mean[k], gain.low[k], gain.high[k]), 3) for k in (0, -1)) if gain else ""


def _frechet(row: ModelReport) -> str:
    if not isinstance(distance := row.frechet, Frechet):
        return ""
    halves = f"halves {distance.halved:.2f}, noise floor {distance.floor:.2f}"
    return f"{_with_interval(distance[:3], 2)}, p {distance.p:.3f}; {halves}"


COLUMNS: dict[str, Callable[[ModelReport], str]] = {
    "model": lambda r: r.name,
    "NLL": lambda r: _with_interval(r.nll.per_token if r.nll else None, 3),
    "parameters": lambda r: _number(r.parameters),
    "generate tokens/s": lambda r: _number(r.generate_tokens_per_s),
    "motif retention": lambda r: _with_interval(r.memory.retained, 2),
    "Fréchet": _frechet,
    "longest copy": lambda r: _with_interval(r.memory.copied, 1),
    "seed gain": lambda r: _first_and_last(r.knows.gain),
    "from the seed": lambda r: _with_interval(r.memory.from_seed, 1),
    "bars again": lambda r: _with_interval(r.memory.repeated, 2),
}


def table(rows: list[ModelReport]) -> str:
    """The table of all models, in Markdown."""
    return _markdown(COLUMNS, [[cell(row) for cell in COLUMNS.values()] for row in rows])


def overlaps(rows: list[ModelReport]) -> str:
    """Overlap areas of every statistic, in Markdown."""
    models = [row for row in rows if row.distances]
    lines = []
    for name in models[0].distances if models else ():
        cells = [_with_interval(r.distances[name], 2) if name in r.distances else "" for r in models]
        lines.append([name.replace("_", " "), *cells])
    return _markdown(["statistic", *(row.name for row in models)], lines)


def _markdown(head: Collection[str], rows: Sequence[Iterable[str]]) -> str:
    first, *others = ("| " + " | ".join(cells) + " |" for cells in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others])


FILES = "report.md", "report.json", "retention.png", "gain.png", "intervals.png", "rolls.png"
REPORT, JSON, RETENTION, GAIN, INTERVALS, ROLLS = FILES
MOST_ROLLS = 2  # pieces
PANELS: dict[str, Callable[[ModelReport], Interval | None]] = {  # of the picture, with their units and best values
    "nats a token, lower is better": lambda r: r.nll.per_token if r.nll else None,
    "motif retention, near 1 is best": lambda r: r.memory.retained,
    "notes in a row from the seed, as the composer": lambda r: r.memory.from_seed,
    "notes in a row from training, as the composer": lambda r: r.memory.copied,
}


def splice(seed: Score, continuation: Score, seed_s: float) -> Score:
    """The seed, then its continuation."""
    later = replace(continuation, onset_s=continuation.onset_s + seed_s, offset_s=continuation.offset_s + seed_s)
    return Score.merge([seed, later], seed.quarter_s)


def write_report(
    folder: Path,
    rows: list[ModelReport],
    held_out: Beginnings,
    config: Any,
    store: Store,
    continuations: Mapping[str, Sequence[Score]],
) -> None:
    """Writes report.md and its PNGs; `continuations` follow the order of the beginnings."""
    models = [row for row in rows if row.nll]
    panels = {title: {row.name: interval for row in rows if (interval := of(row))} for title, of in PANELS.items()}
    plot_intervals({title: panel for title, panel in panels.items() if panel}, folder / INTERVALS)
    pictures = [(INTERVALS, "The models beside each other, with 95 % intervals")]
    pieces = [
        (k, name, scores[k])
        for k in range(min(MOST_ROLLS, len(held_out.seeds)))
        for name, scores in continuations.items()
    ]
    rolls = [
        (f"piece {k + 1}: {name}", splice(held_out.seeds[k], score, held_out.seed_s), held_out.seed_s)
        for k, name, score in pieces
    ]
    piano_roll(rolls, folder / ROLLS)
    pictures.append((ROLLS, "The music after the first seeds: the composer's own, and the models'"))
    retention = {r.name: r.memory.retention[:4] for r in models if r.memory.retention}
    if retention:
        plot_curves(
            retention,
            folder / RETENTION,
            "seconds after the seed",
            "motif retention",
            references=[(1.0, "the composers' own continuations"), (0.0, "seeds of other pieces")],
        )
        pictures.append((RETENTION, "Motifs of the seed that return over time"))
    gains = {r.name: (r.knows.gain, r.knows.window) for r in models if r.knows.gain}
    if gains:
        plot_curves(
            {name: gain[:4] for name, (gain, _) in gains.items()},
            folder / GAIN,
            "seconds after the seed; dashed: farther than the model was trained to look",
            "seed gain, nats a token",
            references=[(0.0, "forgotten")],
            solid={name: int((gain.tokens <= (w or np.inf)).sum()) for name, (gain, w) in gains.items()},
        )
        pictures.append((GAIN, "The seed's worth on the true continuation"))
    inputs = "; or of ".join(dict.fromkeys(row.nll.inputs for row in models if row.nll))
    text = [
        f"# {counted(len(models), 'model')} on {store.manifest.corpus.name}",
        f"{config.split} split, likelihood of {inputs}; continuations of the first {held_out.seed_s:g} s of "
        f"{counted(len(held_out.seeds), 'piece')} by {held_out.length_s:g} s, random seed {config.random_seed}.",
        table(rows),
        *{f"Motif retention could not be measured: {r.memory.unmeasured}" for r in rows if r.memory.unmeasured},
        *(f"{r.name}: {r.knows.unmeasured}" for r in rows if r.knows.unmeasured),
        *(f"{r.name}: Fréchet distance could not be measured: {r.frechet}" for r in rows if isinstance(r.frechet, str)),
        EXPLAINED,
        *(f"## {title}\n\n![{title}]({name})" for name, title in pictures),
        "## Statistics of the music: overlap with the composers' continuations",
        overlaps(rows),
    ]
    with replacing(folder / REPORT) as partial:
        partial.write_text("\n\n".join(text) + "\n", encoding="utf-8")
