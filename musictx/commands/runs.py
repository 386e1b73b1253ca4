"""musictx runs: the runs below a folder, how far each has come, and how good it is."""

import json
from argparse import ArgumentParser
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from musictx.config.app import in_one_line
from musictx.errors import UserError
from musictx.training.failure import FAILED
from musictx.training.metrics import read_metrics
from musictx.training.run_folder import BUNDLE, CONFIG, METRICS, RECORD, last_checkpoint, read_settings


@dataclass(frozen=True)
class Run:
    folder: str
    name: str
    state: str  # finished, unfinished, failed
    steps: int
    kept_nll: float | None  # of the validation whose model is kept


def find_runs(root: Path) -> list[Run]:
    """Every run folder at or below `root`, the best first. Raises UserError when there is none."""
    folders = sorted(record.parent for record in root.rglob(RECORD) if (record.parent / CONFIG).is_file())
    if not folders:
        raise UserError(f"{root} holds no runs: `musictx train` writes one below outputs/; give their folder")
    runs = [read_run(folder) for folder in folders]
    return sorted(runs, key=lambda run: (run.kept_nll is None, run.kept_nll))


def read_run(folder: Path) -> Run:
    rows = read_metrics(folder / METRICS)
    nll = [float(row["val/nll"]) for row in rows if "val/nll" in row]
    steps = max((int(row["step"]) + 1 for row in rows if "train/loss" in row or "val/nll" in row), default=0)
    settings = read_settings(folder)
    kept = nll[-1:] if settings.get("trainer.keep") == "last" else nll
    return Run(str(folder), settings["name"], state(folder), steps, min(kept, default=None))


def state(folder: Path) -> str:
    if (folder / FAILED).exists():
        return "failed"
    done = (folder / BUNDLE).is_file() and not last_checkpoint(folder).is_file()
    return "finished" if done else "unfinished"


def main() -> None:
    parser = ArgumentParser("musictx runs", description="the runs below a folder, the best first")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("outputs"), help="default: outputs")
    parser.add_argument("--json", action="store_true", help="everything as JSON, for programs")
    args = parser.parse_args()

    def show() -> None:
        runs = find_runs(args.folder)
        if args.json:
            print(json.dumps([asdict(run) for run in runs], indent=1, ensure_ascii=False))
            return
        table = Table("run", "name", "state", box=None, pad_edge=False)
        for heading in ("steps", "kept NLL"):
            table.add_column(heading, justify="right")
        for run in runs:
            nll = "" if run.kept_nll is None else f"{run.kept_nll:.4f}"
            table.add_row(run.folder, run.name, run.state, f"{run.steps:,}", nll)
        Console(highlight=False, markup=False, soft_wrap=True).print(table)

    in_one_line(show)


if __name__ == "__main__":
    main()
