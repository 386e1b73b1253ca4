"""musictx runs: list the training runs below a folder, what differs between them, and draw their curves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from musictx.commands import print_table
from musictx.config.command import Command
from musictx.errors import UserError, as_word, counted
from musictx.files import check_new, check_suffix, only_new
from musictx.setting import setting
from musictx.terminal import say
from musictx.training.metrics import Metrics
from musictx.training.run_folder import FREE, RunFolder, find_runs
from musictx.viz.curves import plot_runs
from musictx.viz.figure import FORMATS


@dataclass
class RunsConfig:
    """musictx runs: list the training runs below a folder, the best first: state, steps, NLL, and what differs."""

    folder: str = setting("outputs", "where they are looked for, at any depth", path=True)
    out: str | None = setting(
        None, "a picture, .png .svg .pdf: validation NLL over steps and minutes; null: none", path=True
    )
    overwrite: bool = setting(False, "replace an existing picture")


@dataclass(frozen=True)
class Run:
    folder: str
    name: str
    state: str  # finished, unfinished, failed, damaged
    steps: int
    kept_nll: float | None  # of the validation whose model is kept
    settings: dict[str, Any] = field(default_factory=dict, compare=False)
    metrics: list[Metrics] = field(default_factory=list, compare=False)


def list_runs(root: Path) -> list[Run]:
    """Every run at or below `root`, the best first. Raises UserError when there is none."""
    folders = find_runs(root)
    if not folders:
        raise UserError(f"{root} has no runs", "`musictx train` writes one below outputs/; give folder=")
    return sorted(map(read_run, folders), key=lambda run: (run.kept_nll is None, run.kept_nll))


def read_run(run: RunFolder) -> Run:
    """The row of a run; its state may be damaged."""
    try:
        rows, settings = run.metrics(), run.settings()
        nll = [float(row["val/nll"]) for row in rows if "val/nll" in row]
        steps = max((int(row["step"]) + 1 for row in rows if "train/loss" in row or "val/nll" in row), default=0)
        choice = nll[-1:] if settings.get("trainer.keep") == "last" else nll
        return Run(str(run.path), str(settings["name"]), run.state, steps, min(choice, default=None), settings, rows)
    except (UserError, ValueError, TypeError, KeyError, OSError):
        return Run(str(run.path), "", "damaged", 0, None)


def differences(runs: list[Run]) -> list[str]:
    """The words of each run for the settings in which the readable ones differ."""
    settings = [run.settings for run in runs if run.settings]
    names = sorted({name for each in settings for name in each} - FREE - {"name"})
    names = [name for name in names if len({repr(each.get(name)) for each in settings}) > 1]
    return [" ".join(f"{n}={as_word(run.settings[n])}" for n in names if n in run.settings) for run in runs]


def show(config: RunsConfig) -> None:
    picture = Path(config.out) if config.out is not None else None
    if picture is not None:
        check_suffix("out", picture, FORMATS)
        check_new(config.overwrite, picture)
    runs = list_runs(Path(config.folder))
    headings, rows = ["run", "name", "state", "steps", "kept NLL"], []
    for run, differs in zip(runs, what := differences(runs), strict=True):
        nll = "" if run.kept_nll is None else f"{run.kept_nll:.4f}"
        rows.append((run.folder, run.name, run.state, f"{run.steps:,}", nll, *([differs] if any(what) else [])))
    print_table([*headings, *(["what differs"] if any(what) else [])], rows, right=0 if any(what) else 2)
    if picture is not None:
        curves = {run.folder: curve for run in runs if len((curve := validations(run))[0])}
        if not curves:
            raise UserError(f"{config.folder} has no validation to draw", "train for longer, or give another folder=")
        plot_runs(curves, picture, "validation NLL, nats")
        say(f"{picture}: {counted(len(curves), 'run')}")


def validations(run: Run) -> tuple[list[int], list[float], list[float]]:
    """Step, seconds and NLL of each validation; NaN seconds for runs of older versions."""
    rows = [row for row in run.metrics if "val/nll" in row]
    seconds = [float(row.get("seconds", "nan")) for row in rows]
    return [int(row["step"]) + 1 for row in rows], seconds, [float(row["val/nll"]) for row in rows]


COMMAND = Command("runs", only_new(show), RunsConfig, main="folder")
