"""Checks some steps of the demo's training in each precision against the same steps in float32 on the CPU.

Everything goes the way of `musictx train experiment=demo`: the same settings, the same function. The model learns real
music, but not the demo's corpus, which needs the package music21: the chorale inside musictx goes round the circle of
fifths, beginning in each key, ten pieces to learn and two to validate. `store=` names real chorales instead.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from musictx.config.app import settings
from musictx.data.store import Corpus, Piece, write_store
from musictx.model.attention.fused import HAS_TRITON
from musictx.model.shipped import CHORALE, shipped_bundle
from musictx.music.read import read_midi
from musictx.proof.machine import Check, CheckConfig, Outcome, Unable, check_dtype
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.training.fit import fit
from musictx.training.preflight import PRECISIONS
from musictx.training.run_folder import RunFolder

EXPERIMENT = "experiment=demo"
FIFTHS = [0, -5, 2, -3, 4, -1, 6, 1, -4, 3, -2, 5]  # semitones from the chorale's own key

# how far the last losses may lie from float32's, as a share of the fall of float32's. Measured on a CPU: bf16-mixed
# 0.0005, bf16-true 0.007; 16-mixed leaves out its first steps until its scale fits
APART = {"32-true": 0.02, "bf16-mixed": 0.02, "bf16-true": 0.05, "16-mixed": 0.1}
FALLEN = 0.9  # the last losses may be at most this share of the first
FEWEST = 10  # fewer steps do not show a loss fall


class Curve(NamedTuple):
    """The figures that a training logged."""

    losses: list[float]  # of each step
    nll: float  # of the validation at the end
    tokens_per_s: float


def checks(config: CheckConfig) -> Iterator[Check]:
    """Checks every precision; on a GPU the CPU's float32 comes first, and all are compared with it."""
    train = cache(partial(trained, config))
    on_cpu, float32 = (f"train {config.steps} steps, 32-true{place}" for place in (" on the CPU", ""))
    yield Check(on_cpu, "", lambda: falls(train("cpu", "32-true")))
    if config.device != "cpu":
        yield Check(float32, "trainer=cpu", _beside(train, config.device, "32-true"), on_cpu)
    for precision in [each for each in PRECISIONS if each != "32-true"]:
        measure = _beside(train, config.device, precision)
        proof = float32 if config.device != "cpu" else on_cpu
        yield Check(f"train {config.steps} steps, {precision}", "trainer.precision=32-true", measure, proof)


def triton_checks(config: CheckConfig) -> Iterator[Check]:
    """Checks the relative table as attention=triton trains it."""
    train = cache(partial(trained, config))
    for precision in PRECISIONS:
        what = f"train {config.steps} steps, triton, {precision}"
        yield Check(what, "attention=chunked", _beside(train, config.device, precision, triton=True))


def _beside(train: Callable[..., Curve], device: str, precision: str, triton: bool = False) -> Callable[[], Outcome]:
    def measure() -> Outcome:
        check_dtype(device, precision)
        if triton and (device == "cpu" or not HAS_TRITON):  # not in Triton's interpreter either: it would take days
            raise Unable(
                "attention.impl=triton trains on a CUDA GPU, with the package triton: choose attention.impl=chunked"
            )
        if precision == "16-mixed" and device == "cpu":
            raise Unable("trainer.precision=16-mixed needs trainer.accelerator=cuda")
        words = ("model.position=relative",) if triton else ()
        mine = train(device, precision, *words, *(("attention=triton",) if triton else ()))
        return near(mine, train("cpu", "32-true", *words), APART[precision])

    return measure


def falls(curve: Curve) -> Outcome:
    return Outcome(_last(curve), FALLEN * curve.losses[0], note=_told(curve))


def near(curve: Curve, float32: Curve, apart: float) -> Outcome:
    """How near the last losses are. A NaN or infinite loss has already ended the training with its own error."""
    learnt = float32.losses[0] - _last(float32)
    return Outcome(abs(_last(curve) - _last(float32)), apart * learnt, note=_told(curve))


def _last(curve: Curve) -> float:
    """The mean of the last fifth of the losses."""
    return mean(curve.losses[-max(len(curve.losses) // 5, 1) :])


def _told(curve: Curve) -> str:
    return f"loss {curve.losses[0]:.3f} to {_last(curve):.3f}, {curve.tokens_per_s:,.0f} tokens/s"


def trained(config: CheckConfig, device: str, precision: str, *words: str) -> Curve:
    """One training, in a temporary folder."""
    with TemporaryDirectory(prefix="musictx-check-") as place, open(os.devnull, "w") as nowhere:
        store, folder = config.store, Path(place) / "run"
        if store is None:
            store = f"{place}/store"
            write_keys(Path(store))
        given = [f"data.path={store}", f"out={folder}", f"trainer.max_steps={config.steps}"]
        given += [f"trainer.accelerator={device}", f"trainer.precision={precision}"]
        given += ["trainer.log_every=1", "trainer.progress_bar=false"]
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            fit(settings("train", EXPERIMENT, *config.overrides, *given, *words))
        rows = RunFolder(folder).metrics()
    losses, nll, rates = (
        [float(row[name]) for row in rows if name in row] for name in ("train/loss", "val/nll", "train/tokens_per_s")
    )
    return Curve(losses, nll[-1], rates[-1])


def write_keys(out: Path) -> None:
    """Writes the shipped chorale as a store of twelve pieces."""
    tokenizer = ChoraleTokenizer()
    score = read_midi(shipped_bundle(CHORALE).with_suffix(".mid"))
    ids = tokenizer.encode(score)
    pieces = []
    for k in range(len(FIFTHS)):
        keys = [tokenizer.transpose(ids, shift) for shift in FIFTHS[k:] + FIFTHS[:k]]
        pieces.append(Piece(f"from {FIFTHS[k]:+d}", np.concatenate(keys), score.duration_s * len(keys)))
    splits = {"train": pieces[:10], "validation": pieces[10:]}
    write_store(out, tokenizer, Corpus("the chorale inside musictx", "public domain"), splits, [])
