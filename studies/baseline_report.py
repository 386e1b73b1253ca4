"""The table of `baselines.py`: figures of all runs with intervals over works and random seeds, and Holm's p."""

from typing import Any

import numpy as np
from baseline_runs import PARTS
from numpy.typing import NDArray

from musictx.analysis.bootstrap import Interval, percentiles


def ratio(top: NDArray[Any], bottom: NDArray[Any], works: list[str], less: NDArray[Any] | None = None) -> Any:
    """The ratio of sums of (S, P), random seeds by pieces, with an interval over seeds and works, and its two-sided p.
    With `less` (S, P), of the difference from a second model, whose seeds are drawn apart."""
    _, owner = np.unique(works, return_inverse=True)
    groups = np.eye(owner.max() + 1)[owner]  # (P, works)
    rng, rounds = np.random.default_rng(0), 2000
    weight = rng.multinomial(groups.shape[1], np.full(groups.shape[1], 1 / groups.shape[1]), rounds)

    def drawn(values: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        by_work, tokens = values @ groups, bottom @ groups  # (S, works)
        seeds = rng.multinomial(len(values), np.full(len(values), 1 / len(values)), rounds)  # (R, S)
        tops, bottoms = (np.einsum("rs,sw,rw->r", seeds, of, weight) for of in (by_work, tokens))
        return float(values.sum() / bottom.sum()), tops / bottoms

    mean, draws = drawn(top)
    if less is not None:
        other, others = drawn(less)
        mean, draws = mean - other, draws - others
    p = 2 * min((draws <= 0).sum() + 1, (draws >= 0).sum() + 1) / (rounds + 1)
    return percentiles(mean, draws), min(float(p), 1.0)


def holm(p: dict[str, float]) -> dict[str, float]:
    """Holm's adjusted p of each comparison (Holm 1979)."""
    adjusted, highest = {}, 0.0
    for i, (name, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        highest = max(highest, min(value * (len(p) - i), 1.0))
        adjusted[name] = highest
    return adjusted


def report(rows: dict[str, Any], works: list[str], seeds: list[str]) -> dict[str, Any]:
    """Each row: its choices, figures with intervals, and differences from the table of the same window with Holm's p.
    `works` are those of all pieces, `seeds` those of the pieces of seed gain."""
    said: dict[str, Any] = {}
    found: dict[str, dict[str, float]] = {}
    for name, row in rows.items():
        runs, like = row["runs"], rows.get(f"table {row['cell'].window}")
        said[name] = {**row["how"], "steps": [run["steps"] for run in runs], "parameters": runs[0]["parameters"]}
        others = figures(like["runs"]) if like and like is not row else {}
        for label, (top, bottom) in figures(runs).items():
            of = seeds if "gain" in label else works
            said[name][label] = rounded(ratio(top, bottom, of)[0])
            if label in others and label.rpartition(" ")[2] in ("whole", "fresh", "1", str(PARTS)):
                interval, p = ratio(top, bottom, of, less=others[label][0])
                said[name][f"{label}, less the table"] = rounded(interval)
                found.setdefault(label, {})[name] = p
    for label, p_of in found.items():
        for name, p in holm(p_of).items():
            said[name][f"{label}, less the table"].append(round(p, 4))
    return said


def figures(runs: list[dict[str, Any]]) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    """Of every figure that all runs have: nats and tokens (S, P), random seeds by pieces."""
    found = {}
    for label in ("whole", "fresh"):
        if None not in (each := [run[label] for run in runs]):
            found[label] = np.array([of["nats"] for of in each]), np.array([of["tokens"] for of in each])
    if None not in (each := [run["gains"] for run in runs]):
        tokens = np.array([of["tokens"] for of in each])  # (S, P, W)
        for against in each[0].keys() - {"tokens"}:
            nats = np.array([of[against] for of in each])
            for k in range(nats.shape[2]):
                found[f"gain against {against}, part {k + 1}"] = nats[..., k], tokens[..., k]
    return found


def rounded(interval: Interval) -> list[float]:
    return [round(x, 5) for x in interval]
