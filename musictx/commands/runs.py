"""musictx runs: list the training runs below a folder: state, steps, NLL."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from musictx.config.command import Command
from musictx.errors import UserError
from musictx.files import printable
from musictx.setting import setting
from musictx.training.run_folder import RunFolder, find_runs


@dataclass
class RunsConfig:
    """musictx runs: list the training runs below a folder, the best first: state, steps, NLL."""

    folder: str = setting("outputs", "where they are looked for, at any depth")
    json: bool = setting(False, "everything as JSON, for programs")


@dataclass(frozen=True)
class Run:
    folder: str
    name: str
    state: str  # finished, unfinished, failed, damaged
    steps: int
    kept_nll: float | None  # of the validation whose model is kept


def list_runs(root: Path) -> list[Run]:
    """Every run at or below `root`, the best first. Raises UserError when there is none."""
    folders = find_runs(root)
    if not folders:
        raise UserError(f"{root} has no runs", "`musictx train` writes one below outputs/; give folder=")
    return sorted(map(read_run, folders), key=lambda run: (run.kept_nll is None, run.kept_nll))


def read_run(run: RunFolder) -> Run:
    """A run whose files are damaged is no reason to hide the others."""
    try:
        rows, settings = run.metrics(), run.settings()
        nll = [float(row["val/nll"]) for row in rows if "val/nll" in row]
        steps = max((int(row["step"]) + 1 for row in rows if "train/loss" in row or "val/nll" in row), default=0)
        kept = nll[-1:] if settings.get("trainer.keep") == "last" else nll
        return Run(str(run.path), str(settings["name"]), run.state, steps, min(kept, default=None))
    except (UserError, ValueError, TypeError, KeyError, OSError):
        return Run(str(run.path), "", "damaged", 0, None)


def show(config: RunsConfig) -> None:
    runs = list_runs(Path(config.folder))
    if config.json:
        print(json.dumps([asdict(run) for run in runs], indent=1, ensure_ascii=False))
        return
    table = Table("run", "name", "state", box=None, pad_edge=False)
    for heading in ("steps", "kept NLL"):
        table.add_column(heading, justify="right")
    for run in runs:
        nll = "" if run.kept_nll is None else f"{run.kept_nll:.4f}"
        table.add_row(printable(run.folder), printable(run.name), run.state, f"{run.steps:,}", nll)
    Console(highlight=False, markup=False, soft_wrap=True).print(table)


COMMAND = Command("runs", show, RunsConfig)
