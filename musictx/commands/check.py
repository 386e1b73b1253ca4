"""musictx check: prove kernels, training and sampling on your machine, device=cpu or cuda: a report to paste."""

import json
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from time import perf_counter

import torch

from musictx.bench.facts import begin
from musictx.config.app import settings
from musictx.config.command import Command
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.files import replacing
from musictx.proof import generation, kernels, steps, training
from musictx.proof.machine import FAILED, HEAD, NOT_HERE, OK, Check, CheckConfig, Row, advice, facts, run

# the parts most likely to hang a GPU come last
PARTS: dict[str, list[Callable[[CheckConfig], Iterable[Check]]]] = {
    "kernels": [kernels.checks],
    "training": [training.checks],
    "steps": [steps.checks],
    "generation": [generation.checks],
    "triton": [kernels.triton_checks, training.triton_checks],
}


def check(config: CheckConfig) -> None:
    """Runs all checks; exits with status 1 if any has failed. Raises ConfigError, StoreError."""
    refuse(config)
    start, report = perf_counter(), Report(config.out)
    report.say(" ".join(["musictx check", *told(config)]), *facts(config.device), HEAD)
    rows: list[Row] = []
    for each in chain.from_iterable(make(config) for part in PARTS if part in config.parts for make in PARTS[part]):
        silent = bool(rows) and rows[-1].state != OK and not answers(config.device)
        rows.append(Row(each, NOT_HERE, 0.0, text=SILENT) if silent else run(each))
        report.say(str(rows[-1]))
    count = Counter(row.state for row in rows)
    report.say(", ".join(f"{count[s]} {s}" for s in (OK, FAILED, NOT_HERE)) + f"; {perf_counter() - start:.0f} s")
    report.say(*advice(rows))
    if count[FAILED]:
        sys.exit(1)


SILENT = "the GPU has not answered since the row that FAILED: parts=[…] runs only others"


def answers(device: str) -> bool:
    """Whether the GPU still computes: some errors end it for the whole process."""
    if device == "cpu":
        return True
    try:
        torch.cuda.synchronize()
        return bool(torch.ones(1, device=device).item() == 1)
    except RuntimeError:
        return False


def refuse(config: CheckConfig) -> None:
    """Raises ConfigError, StoreError for impossible settings, before minutes are spent."""
    begin(config, ("longest", "timed_length", "tokens", "variations"))
    if not config.parts or (unknown := sorted({*config.parts} - {*PARTS})):
        raise ConfigError(f"parts={unknown[0] if config.parts else '[]'}: choose among {', '.join(PARTS)}")
    if config.steps < training.FEWEST:
        raise ConfigError(f"steps={config.steps}: give {training.FEWEST} or more, fewer show no loss that falls")
    settings("train", training.EXPERIMENT, *config.overrides)
    if config.store is not None:
        Store(Path(config.store), "chorale")
    if config.out is not None and Path(config.out).is_dir():
        raise ConfigError(f"out={config.out} is a folder: give a text file for the report")


def told(config: CheckConfig) -> list[str]:
    """The device, and all settings that are not at their default, as a shell reads them."""
    usual = asdict(CheckConfig(device=""))
    given = {name: value for name, value in asdict(config).items() if name != "out" and value != usual[name]}
    lists = {name: json.dumps(value, separators=(",", ":")) for name, value in given.items() if isinstance(value, list)}
    return [shlex.quote(f"{name}={value}") for name, value in {**given, **lists}.items()]


class Report:
    """Prints line by line, and writes the file anew each time: if the process dies, the report so far stays."""

    def __init__(self, out: str | None) -> None:
        self.path, self.text = Path(out) if out is not None else None, ""
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)

    def say(self, *lines: str) -> None:
        for line in lines:
            print(line, flush=True)
            self.text += f"{line}\n"
        if self.path is not None:
            with replacing(self.path) as partial:
                partial.write_text(self.text, encoding="utf-8")


COMMAND = Command("check", check, CheckConfig)
