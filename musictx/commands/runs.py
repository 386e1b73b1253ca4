"""musictx runs: list the training runs below a folder: state, steps, NLL."""

from dataclasses import dataclass
from pathlib import Path

from musictx.commands import print_table
from musictx.config.command import Command
from musictx.errors import UserError
from musictx.setting import setting
from musictx.training.run_folder import RunFolder, find_runs


@dataclass
class RunsConfig:
    """musictx runs: list the training runs below a folder, the best first: state, steps, NLL."""

    folder: str = setting("outputs", "where they are looked for, at any depth")


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
    rows = [
        (run.folder, run.name, run.state, f"{run.steps:,}", "" if run.kept_nll is None else f"{run.kept_nll:.4f}")
        for run in list_runs(Path(config.folder))
    ]
    print_table(["run", "name", "state", "steps", "kept NLL"], rows, right=2)


COMMAND = Command("runs", show, RunsConfig, main="folder")
