"""metrics.csv: one row each time something is logged."""

import csv
import re
from pathlib import Path
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from musictx.errors import UserError
from musictx.files import replacing

Metrics = dict[str, Any]


class MetricsFile(Logger):
    """Writes row by row. Lightning's CSVLogger deletes the file of a run that it resumes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.from_step = 0  # a resumed run makes the steps from here on again: their old rows go
        self.columns: list[str] = []  # of the file, once we have written it

    @property
    def name(self) -> str:
        return ""

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """They are in config.yaml."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        row = {**metrics, "step": step}
        if row.keys() <= set(self.columns):
            _write(self.path, "a", self.columns, [row])
            return
        rows = read_metrics(self.path)
        rows = [*(rows if self.columns else [r for r in rows if int(r["step"]) < self.from_step]), row]
        self.columns = sorted({name for each in rows for name in each})
        with replacing(self.path) as partial:
            _write(partial, "w", self.columns, rows)


def _write(path: Path, mode: str, columns: list[str], rows: list[Metrics]) -> None:
    with open(path, mode, newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        if mode == "w":
            writer.writeheader()
        writer.writerows(rows)


def read_metrics(path: Path) -> list[Metrics]:
    """The rows, each with its own columns; [] without a file. A row that a power cut left unfinished is skipped. Raises
    UserError for a file that is no table."""
    if not path.is_file():
        return []
    try:
        text = path.read_text(encoding="utf-8")
        rows = [{k: v for k, v in row.items() if k and v} for row in csv.DictReader(text.splitlines())]
        if not text.endswith("\n"):
            rows = rows[:-1]  # its last number may be half of one
        rows = [row for row in rows if STEP.fullmatch(row.get("step", ""))]
        _ = [float(value) for row in rows for value in row.values()]  # raises here if unreadable
    except (csv.Error, ValueError) as error:
        raise UserError(f"{path} is damaged ({error!s:.100})", "put back a copy, or remove it") from None
    return rows


STEP = re.compile("[0-9]{1,18}")
