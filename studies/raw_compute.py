"""The rows of the comparison by compute, and of what its models keep of a seed."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from pages import Row
from raw_music import Make

KEPT = {
    "seed gain": ("saved", "nats a token"),
    "KV reset": ("reset", "nats a token"),
    "retention": ("motifs that return", ""),
}


def by_compute(found: Any, make: Make) -> Iterator[Row]:
    """Nats a note of each kind after so many minutes, and the way that validation chose for it."""
    command = "OMP_NUM_THREADS=1 python studies/compute.py --minutes " + " ".join(
        f"{minutes:g}" for minutes in sorted({row["minutes"] for row in found.values()})
    )
    for row in found.values():
        corpus, kind, minutes = row["corpus"], row["kind"], f"{row['minutes']:g} min"
        title = f"By compute, {corpus}: nats a note of validation pieces, each kind in its best way"
        for unit, figure in (("note", row["per_note"]), ("token", row["per_token"])):
            claim, column = f"{corpus}, {kind}, {minutes}: nats a {unit}", f"{minutes}, a {unit}"
            yield make(command, "kinds", claim, figure, table=title, line=kind, column=column)
        title = f"By compute, {corpus}: the best ways"
        line = f"{kind}, {minutes}, {row['optimizer']}"
        for column in ("rate", "dropout", "window", "steps"):
            claim = f"{corpus}, {line}: {column}"
            yield make(command, "kinds", claim, [row[column]], table=title, line=line, column=column)


def kept_by_kind(found: Any, make: Make) -> Iterator[Row]:
    """What a seed saves, and how many of its motifs return, in the first and the last part of what comes after it."""
    for row in found.values():
        corpus, minutes = row["corpus"], f"{row['minutes']:g} min"
        command = f"OMP_NUM_THREADS=1 python studies/compute.py --minutes {row['minutes']:g}"
        title = f"What a seed of {row['seed_s']:g} s gives, after {minutes}, {corpus}, {row['pieces']} pieces"
        for (name, (words, unit)), part in product(KEPT.items(), (0, row["parts"] - 1)):
            if row[name][part][0] is not None:
                column = f"{words}, {row['part_s'] * part:g} to {row['part_s'] * (part + 1):g} s later"
                claim, cell = f"{corpus}, {row['kind']}, {minutes}: {column}", {"line": row["kind"], "column": column}
                yield make(command, "kinds", claim, row[name][part], unit, table=title, **cell)
