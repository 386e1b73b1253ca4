"""The tables of `score_measures.py`: figures with 95 % intervals by work, as Markdown."""

from collections.abc import Sequence
from functools import reduce
from itertools import groupby
from typing import Any

from score_nats import Row

from musictx.analysis.bootstrap import Interval, interval

Rows = Sequence[Row]  # of works: the corpus, and under "found" what was measured
Cell = Interval | int | None
Table = tuple[str, dict[str, dict[str, Cell]]]  # what the rows are, and their columns


def markdown(table: Table) -> str:
    first, rows = table
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [[first, *columns], ["---"] * (len(columns) + 1)]
    lines += [[name, *(said(row.get(column)) for column in columns)] for name, row in rows.items()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def said(cell: Cell) -> str:
    if cell is None:
        return "–"
    return f"{cell:,}" if isinstance(cell, int) else f"{cell.mean:.3f} ({cell.low:.3f} to {cell.high:.3f})"


def column(rows: Rows, *path: str) -> list[Any]:
    """One figure of all works."""
    return [reduce(dict.__getitem__, path, row["found"]) for row in rows]


def ratio(values: Sequence[float], weights: Sequence[float] | None = None) -> Interval | None:
    """The ratio of sums over works, or a mean; None where there is nothing to measure by."""
    return interval(values, weights) if len(values) and (weights is None or sum(weights) > 0) else None


def less(a: Sequence[float], b: Sequence[float]) -> list[float]:
    return [x - y for x, y in zip(a, b, strict=True)]


def groups(rows: Rows) -> dict[str, Rows]:
    """All works, and those of each corpus."""
    by_corpus = groupby(sorted(rows, key=lambda row: row["corpus"]), key=lambda row: row["corpus"])
    return {"all": rows} | {name: list(some) for name, some in by_corpus}


def likelihood(rows: Rows) -> list[Table]:
    found: dict[str, dict[str, Cell]] = {}
    for name, some in groups(rows).items():
        notes = column(some, "notes")
        found[name] = {
            "works": len(some),
            "notes": sum(notes),
            "nats a note": ratio(column(some, "nats"), notes),
            "nats a bar": ratio(column(some, "nats"), column(some, "bars")),
            "unigram, nats a note": ratio(column(some, "unigram"), notes),
        }
    return [("corpus", found)]


def continuations(rows: Rows) -> list[Table]:
    """The mean of each figure, and its mean absolute difference from the composers' own after the same seed."""
    means: dict[str, dict[str, Cell]] = {}
    away: dict[str, dict[str, Cell]] = {}
    for name in rows[0]["found"]["composers"] if rows else ():
        full = [row for row in rows if all(each[name] is not None for each in row["found"].values())]
        means[name], away[name] = {"seeds": len(full)}, {"seeds": len(full)}
        for way in rows[0]["found"]:
            values = column(full, way, name)
            means[name][way] = ratio(values)
            if way != "composers":
                away[name][way] = ratio([abs(x) for x in less(values, column(full, "composers", name))])
    return [("mean", means), ("absolute difference from the composers", away)]


def fills(rows: Rows) -> list[Table]:
    found: dict[str, dict[str, Cell]] = {}
    for way in rows[0]["found"] if rows else ():
        notes, leaps = column(rows, way, "notes"), column(rows, way, "leaps")
        more = less(column(rows, way, "nats"), column(rows, "composers", "nats"))
        found[way] = {
            "gaps": len(rows),
            "semitones at a border": ratio(column(rows, way, "semitones"), leaps),
            "parts silent in the gap, a gap": ratio(column(rows, way, "silent parts")),
            "nats a first note after it": ratio(column(rows, way, "nats"), notes),
            "more than after the composers' bars": None if way == "composers" else ratio(more, notes),
        }
    return [("bars in the gap", found)]


def tune(rows: Rows) -> list[Table]:
    """What knowing the tune saves, in nats a note of the other parts."""
    found: dict[str, dict[str, Cell]] = {}
    for name, some in groups(rows).items():
        notes, known = column(some, "notes"), column(some, "tune")
        without, other = column(some, "no melody"), column(some, "other bars' tune")
        found[name] = {
            "songs": len(some),
            "given the tune": ratio(known, notes),
            "no melody": ratio(without, notes),
            "other bars' tune": ratio(other, notes),
            "saved beside no melody": ratio(less(without, known), notes),
            "saved beside other bars' tune": ratio(less(other, known), notes),
        }
    return [("corpus", found)]


WAYS = ("composers", "drawn", "another song's")


def hands(rows: Rows) -> list[Table]:
    """The dissonance of tunes with each kind of hands: of songs with all three, and of tunes without hands of their
    own. A song where no hand of some kind sounds below the tune is left out."""
    tables = list[Table]()
    for head, ways in (("hands, of songs", WAYS), ("hands, of tunes alone", WAYS[1:])):
        some = [row for row in rows if {*row["found"]} == {*ways} and all(x["both"] for x in row["found"].values())]
        shares = {way: [x["dissonant"] / x["both"] for x in column(some, way)] for way in ways}
        found: dict[str, dict[str, Cell]] = {}
        for way in ways:
            both = column(some, way, "both")
            found[way] = {
                "songs": len(some),
                "dissonant": ratio(column(some, way, "dissonant"), both),
                f"more than {ways[0]}, a song": None if way == ways[0] else ratio(less(shares[way], shares[ways[0]])),
                "of the tune with a hand": ratio(both, column(some, way, "tune")),
            }
        tables.append((head, found))
    return tables


def touch(rows: Rows) -> list[Table]:
    found: dict[str, dict[str, Cell]] = {}
    for form in rows[0]["found"] if rows else ():
        each = column(rows, form)
        drawn = [x for x in each if "refused" not in x]
        again, of = ([x["seed's bars again"][k] for x in drawn] for k in (0, 1))
        found[form] = {
            "files": len(each),
            "refused": len(each) - len(drawn),
            "silent": sum(not x["notes"] for x in drawn),
            "stopped early": sum(bool(x["stopped"]) for x in drawn),
            "stuck": sum(x["stuck"] for x in drawn),
            "begin with the last bar again": ratio([float(x["last bar again"]) for x in drawn]),
            "the seed's own bars that come again at once": ratio(again, of),
            "notes a second over the seed's": ratio([x["pace"] for x in drawn]),
            "under half the seed's": ratio([float(x["pace"] < 1 / 2) for x in drawn]),
        }
    return [("continued", found)]
