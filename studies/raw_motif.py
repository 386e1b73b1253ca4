"""The rows of the planted motif."""

import statistics
from collections.abc import Iterator
from itertools import product
from typing import Any

from pages import Row
from raw_music import Make

LENGTHS = {"trained lengths": ["9", "33", "99", "192", "300", "447"]}
LENGTHS["lengths between"] = ["21", "51", "111", "201", "291", "441"]


def found_again(found: Any, make: Make) -> Iterator[Row]:
    """How many pitches of a planted motif each kind has right where it returns, and how far."""
    command = "OMP_NUM_THREADS=1 python studies/planted_motif.py --out outputs/planted"
    for task, (line, rows) in product(("as it was", "transposed"), found.items()):
        each = rows[task]
        title = f"The motif returns {task}: right pitches, mean and extremes of {len(each['steps'])} random seeds"
        cells = {column: shares(each["length"], lengths) for column, lengths in LENGTHS.items()}
        cells |= {f"after {int(n):,}": shares(each["length"], [n]) for n in ("1023", "4095", "16380")}
        cells["begins at 300"] = shares(each["offset"], ["300"])
        if longer := each.get("longer"):
            cells["four times the time"] = [statistics.mean(longer["length"][n][0] for n in LENGTHS["trained lengths"])]
        cells["another motif came first"] = shares({"": each["chance"]}, [""])
        for column, figure in cells.items():
            claim = f"planted motif, {task}, {line}: {column}"
            if figure:
                yield make(command, "motif", claim, figure, table=title, line=line, column=column)
        title = f"Trainings of 120 s, the motif returns {task}"
        steps = [statistics.median(each["steps"]), min(each["steps"]), max(each["steps"])]
        ended = [len(passed) for passed in each["stages passed at"]]
        about = {"rate": [each["rate"]], "steps": steps, "parameters": [each["parameters"]]}
        about["stages ended, of 12"] = [statistics.median(ended), min(ended), max(ended)]
        for column, figure in about.items():
            label = f"{line}, {each['optimizer']}"
            claim = f"planted motif, {task}, {label}: {column}"
            yield make(command, "motif", claim, figure, table=title, line=label, column=column)


def shares(of: dict[str, list[Any]], keys: list[str]) -> list[float]:
    """Mean, lowest and highest of the random seeds; [] where a seed was not measured, since it broke before."""
    if any(None in of.get(key, [None]) for key in keys):
        return []
    each = [statistics.mean(pair[0] for pair in seed) for seed in zip(*(of[key] for key in keys), strict=True)]
    return [statistics.mean(each), min(each), max(each)]
