"""The rows of the comparison by compute."""

from collections.abc import Iterator
from typing import Any

from pages import Row
from raw_music import Make


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
