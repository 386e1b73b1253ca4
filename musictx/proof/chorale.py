"""The chorale model's steps on a device beside one full pass in float64, and a short training in each precision."""

import os
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from copy import deepcopy
from functools import partial
from itertools import product
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.overrides import TorchFunctionMode

from musictx.config.app import settings
from musictx.data.store import Corpus, Piece, write_store
from musictx.generate.engine import prefill
from musictx.generate.load import load
from musictx.generate.open_bundle import fast_model, open_bundle
from musictx.model.onnx.graph import BLOCK
from musictx.model.packaged import CHORALE, packaged_bundle, seed_path
from musictx.model.settings import WEIGHTS
from musictx.model.static_steps import StaticSteps
from musictx.model.steps import Player
from musictx.model.torch_steps import TorchPlayer
from musictx.music.read import read_midi
from musictx.proof.kernels import Check, Outcome, check_able, near_exact
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.training.fit import fit
from musictx.training.precision import PRECISIONS
from musictx.training.run_folder import RunFolder

ROWS, STEPS = (64, 63, 57), 48  # tokens of each row's prompt, the beginning of the seed; steps after it


ONNX, STATIC = "ONNX Runtime", {"cuda": "CUDA graph", "cpu": "one shape"}


def steps(device: str) -> Iterator[Check]:
    for weights, way in product(WEIGHTS, ("PyTorch", STATIC[device])):
        yield f"steps, {weights} weights, {way}", partial(logits, device, weights, way)
    for weights in ("float32", "int8") if device == "cpu" else ():
        yield f"steps, {weights} weights, {ONNX}", partial(logits, device, weights, ONNX)


def player(device: str, weights: str, way: str) -> tuple[Player, torch.dtype]:
    """The chorale model as `musictx generate` opens it, in one way; and the type of its logits."""
    if way == ONNX:
        return load(CHORALE, weights=weights).player, torch.float32
    model: Any = fast_model(open_bundle(packaged_bundle(CHORALE), device).model, weights)
    return TorchPlayer(model if way == "PyTorch" else StaticSteps(model), device), next(model.parameters()).dtype


@torch.inference_mode()
def logits(device: str, weights: str, way: str) -> Outcome:
    """Logits (T, B, V) along the chorale seed, in rows of different age."""
    check_able(device, weights)
    ids = ChoraleTokenizer().encode(read_midi(seed_path(CHORALE))).astype(np.int64)  # (T,)
    next_ids = np.stack([ids[n : n + STEPS] for n in ROWS], 1)  # (T, B)
    device_player, dtype = player(device, weights, way)
    for _ in range(2):  # the second time in the memory, and by the graph, of the first
        _, rows = prefill(device_player, [ids[:n] for n in ROWS], range(len(ROWS)), len(ids), False)
        got = torch.from_numpy(np.stack([rows.step(each).copy() for each in next_ids])).to(dtype)
    model = open_bundle(packaged_bundle(CHORALE)).model
    whole = torch.from_numpy(ids)[None]
    if way == ONNX and weights == "int8":
        with InBlocks(inputs=False):
            exact = deepcopy(model).double()(whole)[0]
        with InBlocks(inputs=True):  # its kernel rounds what it reads as well
            plain = model(whole)[0]
    else:
        for layer in model.modules():
            if weights == "int8" and type(layer) is nn.Linear:
                layer.weight.copy_(round_to_steps(layer.weight, layer.in_features, torch.bfloat16))
        exact = deepcopy(model).double()(whole)[0]
        with torch.autocast("cpu", torch.bfloat16, enabled=weights != "float32" and got.dtype == torch.float32):
            plain = model.to(got.dtype)(whole)[0].to(got.dtype)  # on a CPU only linear layers have fewer bits
    return near_exact("", got, *(torch.stack([full[n : n + STEPS] for n in ROWS], 1) for full in (exact, plain)))


def round_to_steps(x: Tensor, n: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """The definition of 8 bits: of each `n` of the last axis the largest is 127 steps. `dtype` is the step's."""
    parts = x.reshape(*x.shape[:-1], -1, n)
    step = parts.abs().amax(-1, keepdim=True) / 127
    return ((parts / step.clamp(min=1e-12)).round() * step.to(dtype).to(x.dtype)).flatten(-2)


class InBlocks(TorchFunctionMode):
    """All linear maps in ONNX Runtime's 8 bits, in blocks of 32."""

    def __init__(self, inputs: bool) -> None:
        super().__init__()
        self.inputs = inputs

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is linear:
            x, weight, *rest = args
            args = (round_to_steps(x, BLOCK) if self.inputs else x, round_to_steps(weight, BLOCK), *rest)
        return func(*args, **(kwargs or {}))


TRAINED = 50  # optimizer steps; fewer than 10 do not show a loss fall
DEMO = ["experiment=demo", "data.length=64", "trainer.log_every=1", "trainer.progress_bar=false"]


def training(device: str) -> Iterator[Check]:
    for precision in PRECISIONS:
        yield f"training, {precision}", partial(training_outcome, device, precision)


def training_outcome(device: str, precision: str) -> Outcome:
    """The loss must fall by a tenth: the mean of the last fifth of steps on the seed in ten keys; two more validate."""
    check_able(device, precision)
    tokenizer, seed = ChoraleTokenizer(), read_midi(seed_path(CHORALE))
    keys = [tokenizer.transpose(tokenizer.encode(seed), shift) for shift in range(-5, 7)]
    pieces = [Piece(f"key {k}", ids, seed.duration_s) for k, ids in enumerate(keys)]
    splits, corpus = {"train": pieces[2:], "validation": pieces[:2]}, Corpus("the chorale of musictx", "public domain")
    with TemporaryDirectory(prefix="musictx-check-") as place, open(os.devnull, "w") as nowhere:
        words = [f"data.path={place}/store", f"out={place}/run", f"trainer.max_steps={TRAINED}"]
        words += [f"trainer.accelerator={device}", f"trainer.precision={precision}"]
        write_store(Path(place, "store"), tokenizer, corpus, splits, [])
        with redirect_stdout(nowhere), redirect_stderr(nowhere):
            fit(settings("train", *DEMO, *words))
        losses = [float(row["train/loss"]) for row in RunFolder(Path(place, "run")).metrics() if "train/loss" in row]
    first, last = losses[0], mean(losses[-(TRAINED // 5) :])
    return Outcome(last, 0.9 * first, f"loss {first:.3f} to {last:.3f}")
