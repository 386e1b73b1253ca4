"""How fast musictx draws music, beside our rewrite of the public Music Transformer code and beside Hugging Face.

All take turns in one process, with random weights of one size, after the same short prompt. A figure is the median of
the turns with its range. Ours runs as in `generate`: with the prompt's reading, the masks, and the looks every few
tokens. The uncached loop may be timed at only some lengths. Then its figure is an estimate, the sum over all lengths of
a parabola through those, and its row says so.
"""

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from facts import Turn, begin, memory_mb, rates, take_turns, timed
from public import NAME, PublicConfig, PublicTransformer, generate, next_id

from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import write_json
from musictx.generate.batch import Batch, Progress
from musictx.generate.engine import BatchRow, Stream, begin_stream
from musictx.generate.primer import Primer
from musictx.generate.prompt import Prompt, make_prompt
from musictx.generate.requests import PLAIN, Length
from musictx.model.protocol import LanguageModel
from musictx.model.static_steps import StaticSteps
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.model.weights import for_steps
from musictx.music.score import Meter, Score
from musictx.setting import setting
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import Rules


@dataclass
class BenchSamplingConfig:
    """musictx benchmarks/sampling.py: tokens per second of our engine, a rewrite of the public code, Hugging Face."""

    device: str = setting("cpu", "cpu or cuda")
    d_model: int = setting(512, "width of the models")
    n_layers: int = setting(6, "layers of the models")
    n_heads: int = setting(8, "heads of attention")
    d_ff: int = setting(2048, "width inside the feed-forward layers")
    max_distance: int = setting(1024, "longest distance in the relative table; the public model's is its longest input")
    length: int = setting(1024, "new tokens in each row")
    batches: list[int] = setting([16], "rows at once, beside one stream")
    public_points: int = setting(5, "lengths at which a step of the uncached loop is timed; 0: run the whole loop")
    context: int | None = setting(512, "tokens that the rolling cache shows; null: no curve")
    repeats: int = setting(3, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


TOKENIZER = build_tokenizer("performance")
WARM_UP = 16  # tokens
CONTEXTS = 10  # the curve of the rolling cache ends at this many times `context`
OURS = "musictx"
BLOCK = 32  # tokens in each turn, with masks and without
PUBLIC, HUGGING_FACE = f"{NAME}, uncached", "Hugging Face GPT-2, cached"

Run = Callable[[int], float]  # new tokens in each row -> seconds


class Contestant(NamedTuple):
    """One contestant: seconds of each turn, or why it has none."""

    name: str
    batch: int
    seconds: list[float]
    failed: str


class Point(NamedTuple):
    """The rolling cache after this many tokens: the recent time of one, and the memory in use."""

    tokens: int
    ms_per_token: float
    memory_mb: float


def prompt(device: str) -> Prompt:
    """A scale of eight notes."""
    onset_s = np.arange(8) / 4
    score = Score(onset_s, onset_s + 0.25, np.array([60, 62, 64, 65, 67, 69, 71, 72]), np.full(8, 80))
    return make_prompt(Primer(score, 2.0, Meter(score.quarter_s)), TOKENIZER, None, device)


def transformer(config: BenchSamplingConfig) -> Transformer:
    torch.manual_seed(0)
    sizes = {name: getattr(config, name) for name in ("d_model", "n_layers", "n_heads", "d_ff", "max_distance")}
    kind = TransformerConfig(TOKENIZER.vocab.size, dropout=0.0, attention="auto", **sizes)
    return Transformer(kind).to(config.device).eval()


def stream(
    model: LanguageModel, begin: Prompt, batch: int, masks: bool, room: int, rolling: bool, device: str
) -> Stream:
    ids, quarter_s = [begin.ids] * batch, [begin.quarter_s] * batch
    grammar = build_grammar(TOKENIZER, Rules(masks=masks), ids, quarter_s, device)
    rows = [BatchRow(0, (0, k)) for k in range(batch)]
    return begin_stream(model, [begin.heard], rows, PLAIN, grammar, room, rolling, [])


def ours(model: LanguageModel, batch: int, device: str, most: int) -> Run:
    """Our engine, from the prompt's ids to the last id drawn, with room for `most`, since a CUDA graph fits one
    room."""

    def draw(given: Prompt, length: int) -> None:
        drawn = stream(model, given, batch, True, len(given.heard) + most, False, device)
        progress = [
            Progress(Length(tokens=length), given.meter.bar_s, TOKENIZER, given.ids, given.quarter_s)
            for _ in range(batch)
        ]
        for _ in Batch(drawn, progress, length):  # ends with a look, which waits for the device
            pass

    return lambda length: timed(partial(draw, prompt(device), length), device)


def public(config: BenchSamplingConfig) -> Run:
    """The public code's whole loop, or an estimate: the sum over all lengths of a parabola through some of them."""
    given = prompt(config.device).heard
    sizes = {name: getattr(config, name) for name in ("d_model", "n_layers", "n_heads", "d_ff")}
    longest = len(given) + max(config.length, WARM_UP)
    kind = PublicConfig(TOKENIZER.vocab.size, max_sequence=longest, **sizes)
    model = PublicTransformer(kind).to(config.device).eval()

    def whole(length: int) -> float:
        return timed(lambda: generate(model, given, length, TOKENIZER.vocab.pad), config.device)

    def summed(length: int) -> float:
        lengths = len(given) + np.arange(length)
        some = np.unique(np.linspace(lengths[0], lengths[-1], config.public_points).round().astype(int))
        inputs = [given.new_zeros(1, n) for n in some.tolist()]
        seconds = [timed(partial(next_id, model, ids, TOKENIZER.vocab.pad), config.device) for ids in inputs]
        at = np.polyval(np.polyfit(some, seconds, min(2, len(some) - 1)), lengths)
        return float(at.sum())

    return summed if config.public_points else whole


def hugging_face(config: BenchSamplingConfig) -> Run:
    """Hugging Face's `generate` with its own cache; it draws without filters, as the others do."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    given = prompt(config.device).heard[None]
    kind = GPT2Config(
        vocab_size=TOKENIZER.vocab.size,
        n_positions=given.shape[1] + max(config.length, WARM_UP),
        n_embd=config.d_model,
        n_layer=config.n_layers,
        n_head=config.n_heads,
        n_inner=config.d_ff,
        bos_token_id=None,
        eos_token_id=None,
    )
    model: Any = GPT2LMHeadModel(kind).to(config.device).eval()

    draw = partial(model.generate, given, attention_mask=torch.ones_like(given), do_sample=True, top_k=0)
    draw = partial(draw, use_cache=True, pad_token_id=TOKENIZER.vocab.pad)
    return lambda length: timed(partial(draw, max_new_tokens=length), config.device)


def contestants(config: BenchSamplingConfig) -> dict[tuple[str, int], Callable[[], Run]]:
    """(name, batch) -> the function that prepares it, which may fail."""
    plain, device = transformer(config), config.device
    model, bf16 = (for_steps(copy.deepcopy(plain), weights) for weights in ("float32", "bfloat16"))
    int8 = for_steps(copy.deepcopy(plain), "int8") if device == "cpu" else model
    most = max(config.length, WARM_UP)
    found: dict[tuple[str, int], Callable[[], Run]] = {}
    for n in (1, *config.batches):
        found[OURS, n] = partial(ours, model, n, device, most)
        if device == "cpu":
            found["musictx, bf16 linear layers", n] = partial(ours, bf16, n, device, most)
            found["musictx, int8 linear layers", n] = partial(ours, int8, n, device, most)
        else:
            found["musictx, bf16 weights", n] = partial(ours, bf16, n, device, most)
            found["musictx, bf16 weights, CUDA graph", n] = partial(ours, StaticSteps(bf16), n, device, most)
    points = config.public_points
    how = f" (estimate: parabola through {points} lengths)" if points else ""
    return {**found, (PUBLIC + how, 1): partial(public, config), (HUGGING_FACE, 1): partial(hugging_face, config)}


def measure(config: BenchSamplingConfig) -> list[Contestant]:
    """All in turn; one that cannot run says why and gets no turn."""

    def prepared(prepare: Callable[[], Run]) -> Turn:
        run = prepare()
        run(min(WARM_UP, config.length))
        return partial(run, config.length)

    turns = {key: partial(prepared, prepare) for key, prepare in contestants(config).items()}
    seconds, failed = take_turns(turns, config.repeats)
    return [Contestant(*key, seconds.get(key, []), failed.get(key, "")) for key in turns]


def spent(drawn: Stream, tokens: int, device: str) -> float:
    """Seconds of so many tokens of a stream."""
    return timed(lambda: [next(drawn) for _ in range(tokens)], device)


def masks_cost(config: BenchSamplingConfig, batch: int) -> list[float]:
    """What masks add, in percent of a step without them. One figure for every two blocks in turn, so that other work on
    the machine slows both."""
    model, given = for_steps(transformer(config)), prompt(config.device)
    room, block, costs = len(given.heard) + config.length, min(BLOCK, config.length), []
    for _ in range(config.repeats):
        pair = [stream(model, given, batch, masks, room, False, config.device) for masks in (True, False)]
        for k in range(config.length // block):
            seconds = [0.0, 0.0]
            for i in (0, 1) if k % 2 else (1, 0):
                seconds[i] = spent(pair[i], block, config.device)
            costs.append((seconds[0] / seconds[1] - 1) * 100)
    return costs


def report_masks(costs: list[float], batch: int) -> str:
    low, middle, high = np.percentile(costs, (25, 50, 75))
    return (
        f"masks take {middle:.1f} % of a step at batch {batch} (the middle half of the blocks: {low:.1f} … {high:.1f})"
    )


def rolling(config: BenchSamplingConfig, context: int) -> list[list[Point]]:
    """One stream that draws more tokens than its cache shows: a list of points for every repeat."""
    model, given, curves = for_steps(transformer(config)), prompt(config.device), []
    for _ in range(config.repeats):
        endless = stream(model, given, 1, True, context, True, config.device)
        curve = []
        for k in range(1, CONTEXTS + 1):
            seconds = spent(endless, context, config.device)
            curve.append(Point(k * context, seconds / context * 1000, memory_mb(config.device)))
        curves.append(curve)
    return curves


def report(rows: list[Contestant], length: int) -> str:
    """One line a contestant, then their ratios."""
    done = {(row.name, row.batch): row for row in rows if row.seconds}
    rate = {key: rates(row.batch * length, row.seconds) for key, row in done.items()}
    base = next((rate[key][0] for key in done if key[0].startswith(PUBLIC)), None)
    lines = [f"{'':<80}{'batch':>6}{'tokens/s':>12}{'x rewrite':>11}   slowest … fastest"]
    for row in rows:
        if row.failed:
            lines.append(f"{row.name:<80}{row.batch:>6}   {row.failed}")
            continue
        per_s, spread = rate[row.name, row.batch]
        lines.append(
            f"{row.name:<80}{row.batch:>6}{per_s:>12,.1f}{f'{per_s / base:.1f}' if base else '-':>11}   {spread}"
        )
    for name, batch in done:
        if name == OURS and batch > 1:
            lines.append(f"batch {batch}: {rate[OURS, batch][0] / rate[OURS, 1][0]:.1f} times one stream")
    if (HUGGING_FACE, 1) in done:
        lines.append(f"one stream: {rate[OURS, 1][0] / rate[HUGGING_FACE, 1][0]:.1f} times Hugging Face")
    return "\n".join(lines)


def report_curve(curves: list[list[Point]], context: int) -> str:
    lines = [f"a rolling cache of {context} tokens, one stream", f"{'tokens':>9}{'ms a token':>12}{'MB in use':>12}"]
    for points in zip(*curves, strict=True):
        ms, mb = (median(p[i] for p in points) for i in (1, 2))
        lines.append(f"{points[0].tokens:>9,}{ms:>12.2f}{mb:>12,.1f}")
    return "\n".join(lines)


def bench_sampling(config: BenchSamplingConfig) -> None:
    where = begin(config, ("length", "repeats"))
    if min(config.batches, default=2) < 2:
        raise ConfigError("batches", got=config.batches, allowed="2 or more each; one stream is always measured")
    for name, low in (("public_points", 0), ("context", 8)):
        if (value := getattr(config, name)) is not None and value < low:
            raise ConfigError(name, got=value, allowed=f"{low} or more")
    size = f"{config.n_layers} layers, width {config.d_model}, {config.n_heads} heads, feed-forward {config.d_ff}"
    print(f"{where}\n{size}; {config.length} new tokens after {len(prompt('cpu').heard)}")
    rows = measure(config)
    print(report(rows, config.length))
    costs = {row.batch: masks_cost(config, row.batch) for row in rows if row.name == OURS and row.seconds}
    for n, cost in costs.items():
        print(report_masks(cost, n))
    curves = rolling(config, config.context) if config.context else []
    if config.context:
        print(report_curve(curves, config.context))
    if config.out:
        facts = {"where": where, "config": asdict(config), "rows": [row._asdict() for row in rows], "masks_cost": costs}
        write_json(Path(config.out), facts | {"rolling": [[p._asdict() for p in curve] for curve in curves]})


COMMAND = Command("bench_sampling", bench_sampling, BenchSamplingConfig)
