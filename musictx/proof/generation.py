"""Checks a continuation by the model inside musictx: its logits, and the music that it draws.

With and without steps of one shape (`graph=true` on a GPU, the same steps without a graph on a CPU) a seed and a
random seed give the same music in float32; in bfloat16, where a rounding may decide between two tokens, the check
compares the logits along one piece of music with float64, as in `steps`.
"""

import copy
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import torch

from musictx.generate.draw import Continuation, continue_primers
from musictx.generate.opening import Opened, open_bundle
from musictx.generate.primer import Primer
from musictx.generate.requests import Continue, Length
from musictx.model.build import Model
from musictx.model.protocol import LanguageModel
from musictx.model.shipped import CHORALE, shipped_bundle
from musictx.model.static_steps import StaticSteps
from musictx.model.weights import for_steps
from musictx.music.read import read_midi
from musictx.music.score import Meter
from musictx.proof.machine import Check, CheckConfig, Outcome, check_dtype, near_exact
from musictx.proof.steps import DTYPES, along


def checks(config: CheckConfig) -> Iterator[Check]:
    on_gpu = config.device == "cuda"
    graph, on_cpu = ("graph", "device=cpu") if on_gpu else ("one shape", "")
    float32, bfloat16 = (f"generate, {weights}: logits" for weights in DTYPES)
    yield Check(float32, on_cpu, lambda: logits(config, "float32", static=False))
    yield Check(f"{float32}, {graph}", "graph=false", lambda: logits(config, "float32", static=True), float32)
    yield Check(f"generate, float32: same music, {graph}", "graph=false", lambda: same_music(config), float32)
    yield Check(bfloat16, "weights=float32", lambda: logits(config, "bfloat16", static=False), float32)
    yield Check(f"{bfloat16}, {graph}", "graph=false", lambda: logits(config, "bfloat16", static=True), bfloat16)


def opened() -> tuple[Opened, Path]:
    """The shipped model on the CPU, and its seed."""
    bundle = shipped_bundle(CHORALE)
    return open_bundle(bundle), bundle.with_suffix(".mid")


def fast(model: Model, device: str, weights: str, static: bool) -> LanguageModel:
    """The model as `musictx generate` steps it, without and with graph=true."""
    own = for_steps(copy.deepcopy(model).to(device), weights)
    return StaticSteps(own) if static else own  # type: ignore[arg-type] # the shipped ones have static steps


def same_music(config: CheckConfig) -> Outcome:
    """How many continuations differ in any note."""
    (model, tokenizer, _), seed = opened()
    drawn, rates = [], []
    score = read_midi(seed)
    for static in (False, True):
        each = fast(model, config.device, "float32", static)
        asked = Continue(length=Length(tokens=config.tokens), variations=config.variations)
        primer = Primer(score, score.duration_s, Meter(score.quarter_s))
        if config.device == "cuda":  # capturing the graph of this shape takes time
            continue_primers([primer], each, tokenizer, asked, device=config.device)
        start = perf_counter()
        drawn.append(continue_primers([primer], each, tokenizer, asked, device=config.device)[0])
        rates.append(config.variations * config.tokens / (perf_counter() - start))
    differ = sum(not alike(a, b) for a, b in zip(*drawn, strict=True))
    return Outcome(differ, 0, "continuations that differ", f"{rates[0]:,.0f} tokens/s, of one shape {rates[1]:,.0f}")


def alike(a: Continuation, b: Continuation) -> bool:
    names = "onset_s", "offset_s", "pitch"
    return all(np.array_equal(getattr(a.score, name), getattr(b.score, name)) for name in names)


def logits(config: CheckConfig, weights: str, static: bool) -> Outcome:
    """The error of the logits along the seed itself, in rows that begin at different places in it."""
    check_dtype(config.device, weights)
    (model, tokenizer, _), seed = opened()
    ids = torch.from_numpy(tokenizer.encode(read_midi(seed)).astype(np.int64))
    half = len(ids) // 2
    prompts = [ids[: half - k % half] for k in range(config.variations)]
    then = torch.stack([ids[len(p) : len(p) + min(half, config.tokens)] for p in prompts])  # (B, T)
    exact = along(copy.deepcopy(model).double(), prompts, then, len(ids), False)
    plain = along(copy.deepcopy(model).to(DTYPES[weights]), prompts, then, len(ids), False)
    mine = fast(model, config.device, weights, static)
    there = [p.to(config.device) for p in prompts], then.to(config.device), len(ids), False
    if config.device == "cuda":  # capturing the graph takes time
        along(mine, *there)
    start = perf_counter()
    got = along(mine, *there).cpu()
    found = near_exact("", got.to(plain.dtype), exact, plain)
    return replace(found, note=f"{then.numel() / (perf_counter() - start):,.0f} tokens/s")
