"""Which form of position learns chorales best, at one size, schedule and data order.

Each form trains with each random seed. Validation NLL at equal steps comes from whole pieces, several times longer than
the training window. At the end it also comes from inputs as long as the window. For NLL at equal time, each curve is
read at the moment when the fastest form has finished. The time of a step is measured separately, all forms in turn, so
that other work on the machine slows all equally.
"""

import csv
import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, median, stdev
from time import perf_counter

import numpy as np
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.app import settings
from musictx.config.command import Command
from musictx.config.train import TrainConfig
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.files import replacing
from musictx.generate.open_bundle import open_bundle
from musictx.setting import setting
from musictx.training.fit import fit
from musictx.training.start import new_model


@dataclass
class BenchPositionsConfig:
    """musictx benchmarks/positions.py: forms of position compared by training."""

    store: str = setting("outputs/stores/chorales", "chorales, from `musictx prepare chorales`")
    experiment: str = setting("demo", "the experiment of `musictx train` whose settings all forms share")
    overrides: list[str] = setting([], "further settings of `musictx train`, for all forms")
    steps: int = setting(500, "optimizer steps of each run")
    random_seeds: int = setting(3, "runs of each form, each with its own random seed")
    validations: int = setting(4, "validations in each run; whole pieces take long")
    work: str = setting("outputs/positions", "the folder for the runs")
    out: str = setting("outputs/positions.json", "a JSON file for the figures; the plot goes beside it")


STEPS_TIMED = 9  # the first is not counted
FORMS = {
    "learned table": ["model.position=relative"],
    "Fourier (index)": ["model.position=relative_fourier"],
    "Fourier (time)": ["model.position=relative_fourier", "model.clock=time"],
    "RoPE": ["model.position=rope"],
    "sinusoidal": ["model.position=sinusoidal"],
}


@dataclass(frozen=True)
class Run:
    """One training: validation NLL of whole pieces by step, and of inputs inside the window at the end."""

    form: str
    random_seed: int
    steps: list[int]
    whole_pieces: list[float]
    inside_window: float
    step_s: float


def settings_of(form: str, random_seed: int, config: BenchPositionsConfig) -> TrainConfig:
    """The settings of `musictx train` for one form with one random seed."""
    folder = Path(config.work) / f"{re.sub('[^A-Za-z]+', '-', form).strip('-')}-{random_seed}"
    every = max(config.steps // config.validations, 1)
    overrides = [
        f"experiment={config.experiment}",
        f"data.path={config.store}",
        f"out={folder}",
        f"random_seed={random_seed}",
    ]
    overrides += [f"trainer.max_steps={config.steps}", f"trainer.validate_every={every}", "trainer.progress_bar=false"]
    asked: TrainConfig = settings("train", *overrides, *FORMS[form], *config.overrides)
    return asked


def step_seconds(config: BenchPositionsConfig) -> dict[str, float]:
    """Median seconds of forward and backward on a batch for each form, all in turn."""
    tokenizer = Store(Path(config.store)).tokenizer
    asked = {form: settings_of(form, 0, config) for form in FORMS}
    models = {form: new_model(s, tokenizer) for form, s in asked.items()}
    seconds: dict[str, list[float]] = {form: [] for form in FORMS}
    for _ in range(STEPS_TIMED):
        for form, model in models.items():
            shape = asked[form].trainer.batch_size, asked[form].data.length
            ids = torch.randint(tokenizer.vocab.n_events, shape)  # (B, T)
            start = perf_counter()
            model(ids).logsumexp(-1).sum().backward()
            seconds[form].append(perf_counter() - start)
    return {form: median(times[1:]) for form, times in seconds.items()}


def train(form: str, random_seed: int, step_s: float, config: BenchPositionsConfig) -> Run:
    """Trains one form with one random seed, by the same function as `musictx train`."""
    settings = settings_of(form, random_seed, config)
    folder = Path(settings.out)
    shutil.rmtree(folder, ignore_errors=True)
    bundle = fit(settings)
    with open(folder / "metrics.csv", encoding="utf-8") as file:
        curve = [(int(row["step"]) + 1, float(row["val/nll"])) for row in csv.DictReader(file) if row["val/nll"]]
    model, tokenizer, _ = open_bundle(bundle, "cpu", "auto")
    split = Store(Path(config.store), tokenizer.name).split("validation")
    inside = negative_log_likelihood(model, split, tokenizer, settings.data.length, 4096, "cpu").nll
    steps, nll = zip(*curve, strict=True)
    return Run(form, random_seed, list(steps), list(nll), round(inside, 4), step_s)


def report(runs: list[Run]) -> str:
    """NLL as mean ± standard deviation over random seeds."""
    lines = [
        f"{'form':<18}{'seeds':>6}{'steps':>7}{'whole pieces':>18}{'inside window':>18}{'equal time':>18}{'step ms':>9}"
    ]
    forms = list(dict.fromkeys(run.form for run in runs))
    fastest = min(run.step_s for run in runs)
    for form in forms:
        mine = [r for r in runs if r.form == form]
        until = mine[0].steps[-1] * fastest / mine[0].step_s
        at_time = [float(np.interp(until, r.steps, r.whole_pieces)) for r in mine]
        columns = [[r.whole_pieces[-1] for r in mine], [r.inside_window for r in mine], at_time]
        figures = "".join(f"{f'{mean(c):.3f} ± {stdev(c) if len(c) > 1 else 0:.3f}':>18}" for c in columns)
        lines.append(f"{form:<18}{len(mine):>6}{mine[0].steps[-1]:>7}{figures}{1000 * mine[0].step_s:>9.0f}")
    return "\n".join(lines)


def plot(runs: list[Run], path: Path) -> None:
    """Plots validation NLL of whole pieces by step: the mean over random seeds, and their range."""
    figure = Figure(figsize=(7, 5), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for form in dict.fromkeys(run.form for run in runs):
        mine = [r for r in runs if r.form == form]
        nll = np.array([r.whole_pieces for r in mine])  # (seeds, validations)
        (line,) = axes.plot(mine[0].steps, nll.mean(0), marker="o", label=form)
        axes.fill_between(mine[0].steps, nll.min(0), nll.max(0), color=line.get_color(), alpha=0.2, lw=0)
    axes.set(xlabel="steps", ylabel="validation NLL of whole pieces, nats a token", yscale="log")
    axes.legend()
    with replacing(path) as partial:
        figure.savefig(partial, format="png")


def bench_positions(config: BenchPositionsConfig) -> None:
    for name in ("steps", "random_seeds", "validations"):
        if getattr(config, name) < 1:
            raise ConfigError(name, got=getattr(config, name), allowed="1 or more")
    Store(Path(config.store))
    out, runs = Path(config.out), []
    out.parent.mkdir(parents=True, exist_ok=True)
    step_s = step_seconds(config)
    for seed in range(config.random_seeds):
        for form in FORMS:
            runs.append(train(form, seed, step_s[form], config))
            print(runs[-1])
            with replacing(out) as partial:  # after every run: a study takes long
                partial.write_text(json.dumps([asdict(run) for run in runs], indent=1), encoding="utf-8")
    print(report(runs))
    plot(runs, out.with_suffix(".png"))


COMMAND = Command("bench_positions", bench_positions, BenchPositionsConfig)
