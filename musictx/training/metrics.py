"""metrics.csv: a row for each step that logs figures, with the seconds of training."""

import csv
import re
from io import StringIO
from math import isnan
from pathlib import Path
from time import perf_counter
from typing import Any

from lightning.pytorch.loggers import Logger
from lightning.pytorch.utilities import rank_zero_only

from musictx.errors import UserError
from musictx.files import replacing

Metrics = dict[str, Any]


class MetricsFile(Logger):
    """A CSV file that a resumed run goes on with, unlike that of Lightning's CSVLogger."""

    def __init__(self, path: Path, from_step: int = 0) -> None:
        """Drops the rows from `from_step` on, which a resumed run makes again."""
        super().__init__()
        self.path, self.from_step = path, from_step
        self.columns: list[str] = []  # of the file, once we have written it
        self.row: Metrics = {}  # the last one; its bytes; their place in the file
        self.line, self.line_start = b"", 0
        self.start, self.before_s = perf_counter(), 0.0  # seconds of the training that is resumed; NaN: not known

    @property
    def name(self) -> str:
        return ""

    @property
    def version(self) -> str:
        return ""

    @rank_zero_only
    def log_hyperparams(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: config.yaml has them."""

    @rank_zero_only
    def log_metrics(self, metrics: dict[str, float], step: int | None = None) -> None:
        if not self.columns:
            self._begin()
        same_step = self.row.get("step") == step
        seconds = self.before_s + perf_counter() - self.start
        time = {} if isnan(seconds) else {"seconds": f"{seconds:.2f}"}
        self.row = {**(self.row if same_step else {}), **metrics, "step": step, **time}
        line = _lines(self.columns, [self.row]) if self.row.keys() <= set(self.columns) else b""
        # a line that is written again must cover the old one, wherever a process is killed
        if not line or (same_step and len(line) < len(self.line)) or not self.path.is_file():
            rows = read_metrics(self.path)
            self._write([*(rows[:-1] if same_step else rows), self.row])
            return
        with open(self.path, "r+b", buffering=0) as file:
            self.line, self.line_start = line, file.seek(self.line_start if same_step else 0, 0 if same_step else 2)
            file.write(line)

    def _begin(self) -> None:
        """Keeps the rows of a resumed run that stay valid."""
        rows = [row for row in read_metrics(self.path) if int(row["step"]) < self.from_step]
        self.before_s = float(rows[-1].get("seconds", "nan")) if rows else 0.0
        self._write(rows)

    def _write(self, rows: list[Metrics]) -> None:
        self.columns = sorted({"step", "seconds", *(name for each in rows for name in each)})
        head = ",".join(self.columns).encode() + b"\r\n"
        before, self.line = (_lines(self.columns, some) for some in (rows[:-1], rows[-1:]))
        self.line_start = len(head) + len(before)
        with replacing(self.path) as partial:
            partial.write_bytes(head + before + self.line)


def _lines(columns: list[str], rows: list[Metrics]) -> bytes:
    text = StringIO(newline="")
    csv.DictWriter(text, columns).writerows(rows)
    return text.getvalue().encode()


def read_metrics(path: Path) -> list[Metrics]:
    """The complete rows, each with its own columns; [] without a file. Raises UserError for a damaged file."""
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
