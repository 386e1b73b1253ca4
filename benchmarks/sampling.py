"""How fast musictx draws music, beside Hugging Face, our rewrite of the public Music Transformer code, and the limit.

All take turns in one process, Hugging Face by its own `generate`, with models of the size of a bundle of ours, after
prompts of so many ids. Rows share the prompt. Two figures: the time to the first token, and tokens a second from then
on; each is the median of the turns. Ours runs as in `generate`: with the reading of the prompt, the grammar, and the
looks every few tokens. The uncached loop is timed at only some lengths: its figure is an estimate, a parabola through
those. The limit reads weights in 8 bits, the shared prompt's keys and the keys of the rows once a token, as fast as one
thread sums a large array here.
"""

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from facts import Contestant, Turn, begin, compete, timed, wait
from public import NAME, PublicConfig, PublicTransformer, next_id
from torch import nn

from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import write_json
from musictx.generate.batch import Batch, Progress
from musictx.generate.engine import BatchRow, begin_stream
from musictx.generate.open_bundle import open_bundle
from musictx.generate.primer import Primer, Prompt, make_prompt
from musictx.generate.requests import PLAIN, Length
from musictx.model.onnx.player import open_player
from musictx.model.packaged import bundle_path
from musictx.model.static_steps import StaticSteps
from musictx.model.steps import Player
from musictx.model.torch_steps import TorchPlayer
from musictx.model.transformer import Transformer
from musictx.model.weights import for_steps
from musictx.music.score import Meter, Score
from musictx.setting import setting
from musictx.terminal import say
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import Rules


@dataclass
class BenchSamplingConfig:
    """musictx benchmarks/sampling.py: tokens a second of our players, Hugging Face and a rewrite of the public code."""

    device: str = setting("cpu", "cpu or cuda")
    bundle: str = setting("piano", "our model, whose sizes the others have: a bundle or a run's folder", path=True)
    length: int = setting(64, "new tokens in each row")
    keys: list[int] = setting([128, 600, 2048], "ids of the prompt of one row")
    batches: list[int] = setting([4, 16], "rows at once after a prompt of the middle length")
    repeats: int = setting(3, "turns of each")
    threads: int | None = setting(1, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none", path=True)


WARM_UP = 4  # tokens
POINTS = 5  # lengths at which a step of the uncached loop is timed
OURS, PUBLIC, LIMIT = "musictx", f"{NAME}, uncached (estimate: parabola through {POINTS} lengths)", "limit"
HUGGING_FACE = "Hugging Face GPT-2, cached"
LARGE = 2**28  # float32, 1 GiB: more than the largest caches hold
Draw = Callable[[Prompt, int, int], float]  # prompt, rows, new tokens in each -> when the first was drawn, in seconds


class Case(NamedTuple):
    keys: int
    rows: int

    def __str__(self) -> str:
        return f"{self.rows} row{'s' * (self.rows > 1)} after {self.keys:,} ids"


class Bench(NamedTuple):
    """What is asked, our model of PyTorch, its tokenizer, and the sizes of the others, as large in all."""

    config: BenchSamplingConfig
    model: Transformer
    tokenizer: Tokenizer
    d_model: int
    n_layers: int
    n_heads: int
    d_ff: int

    def prompt(self, keys: int) -> Prompt:
        """So many ids of a scale, BOS among them."""
        n = keys // 2
        onset_s = np.arange(n) / 4
        score = Score(onset_s, onset_s + 0.2, 48 + np.arange(n) % 25, np.full(n, 80))
        whole = make_prompt(Primer(score, score.duration_s, Meter(score.quarter_s)), self.tokenizer, None)
        return whole._replace(ids=whole.ids[: keys - 1], context=whole.context[:keys])


def opened(config: BenchSamplingConfig) -> Bench:
    model, tokenizer, _ = open_bundle(bundle_path(config.bundle), config.device)
    if not isinstance(model, Transformer):
        raise ConfigError("bundle", got=config.bundle, why="no Transformer", allowed="one")
    c = model.config
    wide = c.d_ff * 3 // 2 if c.mlp == "swiglu" else c.d_ff  # of two matrices instead of three
    return Bench(config, model, tokenizer, c.d_model, c.n_layers, c.n_heads, wide)


def ours(tokenizer: Tokenizer, player: Player, given: Prompt, rows: int, length: int) -> float:
    """Our engine, from the prompt's ids to the last ids drawn."""
    grammar = build_grammar(tokenizer, Rules(), [given.ids] * rows, [given.quarter_s] * rows)
    of_row = [BatchRow(0, (0, k)) for k in range(rows)]
    room = len(given.context) + length
    stream = begin_stream(player, [given.context], of_row, PLAIN, grammar, room, False)
    progress = Progress(Length(tokens=length), given.meter, tokenizer, given.ids, given.quarter_s)
    seconds = [perf_counter() for _ in Batch(stream, [progress] * rows, length)]
    return seconds[0]


def players(bench: Bench) -> Iterator[tuple[str, Player]]:
    """All that plays our model on this device."""
    config, device = bench.config, bench.config.device
    if device == "cuda":
        half = for_steps(copy.deepcopy(bench.model), "bfloat16")
        yield f"{OURS}, PyTorch, bfloat16", TorchPlayer(half, device)
        yield f"{OURS}, PyTorch, bfloat16, CUDA graph", TorchPlayer(StaticSteps(half), device)
        return
    for weights in ("int8", "float32"):
        yield f"{OURS}, ONNX Runtime, {weights}", open_player(bundle_path(config.bundle), weights, config.threads or 1)
    yield f"{OURS}, PyTorch, float32", TorchPlayer(for_steps(copy.deepcopy(bench.model)), device)


def hugging_face(bench: Bench, int8: bool) -> Draw:
    """Its `generate` with its own cache, without filters; in 8 bits by PyTorch's dynamic quantisation."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.pytorch_utils import Conv1D
    from transformers.utils import logging

    logging.set_verbosity_error()
    config, vocab = bench.config, bench.tokenizer.vocab
    sizes = {"n_embd": bench.d_model, "n_layer": bench.n_layers, "n_head": bench.n_heads, "n_inner": bench.d_ff}
    most = max(config.keys) + config.length
    kind = GPT2Config(vocab_size=vocab.size, n_positions=most, bos_token_id=None, eos_token_id=None, **sizes)
    model: Any = GPT2LMHeadModel(kind).to(config.device).eval()
    if int8:
        for parent, name, layer in [(p, n, m) for p in model.modules() for n, m in p.named_children()]:
            if isinstance(layer, Conv1D):  # a linear layer whose weights lie the other way round
                plain = nn.Linear(*layer.weight.shape)
                plain.weight, plain.bias = nn.Parameter(layer.weight.T.contiguous()), layer.bias
                setattr(parent, name, plain)
        with warnings.catch_warnings(action="ignore"):  # it will leave PyTorch
            model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, torch.qint8)

    def draw(given: Prompt, rows: int, length: int) -> float:
        drawn, ids = Times(), torch.from_numpy(np.tile(given.context, (rows, 1))).to(config.device)
        how = {"do_sample": True, "top_k": 0, "use_cache": True, "pad_token_id": vocab.pad}
        lasts = {"max_new_tokens": length, "min_new_tokens": length}
        model.generate(ids, attention_mask=torch.ones_like(ids), streamer=drawn, **lasts, **how)
        return drawn.seconds[1]  # the prompt comes first

    return draw


class Times:
    """Hears when Hugging Face has drawn each token, as its streamers do."""

    def __init__(self) -> None:
        self.seconds = list[float]()

    def put(self, ids: torch.Tensor) -> None:
        self.seconds.append(perf_counter())

    def end(self) -> None:
        """Nothing is left to do."""


def public(bench: Bench, case: Case) -> float:
    """An estimate of the seconds of the public code's loop: the sum over all lengths of a parabola through some."""
    config, vocab = bench.config, bench.tokenizer.vocab
    sizes = {name: getattr(bench, name) for name in ("d_model", "n_layers", "n_heads", "d_ff")}
    kind = PublicConfig(vocab.size, max_sequence=case.keys + config.length, **sizes)
    model = PublicTransformer(kind).to(config.device).eval()
    lengths = case.keys + np.arange(1, config.length)
    some = np.unique(np.linspace(lengths[0], lengths[-1], POINTS).round().astype(int))
    inputs = [torch.zeros(1, n, dtype=torch.long, device=config.device) for n in some.tolist()]
    seconds = [timed(partial(next_id, model, ids, vocab.pad), config.device) for ids in inputs]
    return float(np.polyval(np.polyfit(some, seconds, min(2, len(some) - 1)), lengths).sum())


def limit(bench: Bench, case: Case) -> float:
    """The seconds in which one thread reads all weights in 8 bits, and all keys and values, once a token."""
    array = np.ones(LARGE, np.float32)
    start = perf_counter()
    array.sum()
    per_byte_s = (perf_counter() - start) / array.nbytes
    weights = sum(p.numel() for p in bench.model.parameters())
    own = case.rows * np.arange(1, bench.config.length)
    keys = (case.keys + own) * 2 * bench.d_model * bench.n_layers * 4
    return float((weights + keys).sum() * per_byte_s)


def contestants(bench: Bench, case: Case, draws: dict[str, Draw], firsts: dict[str, list[float]]) -> Any:
    """Each with the function that prepares its turns: the seconds after the first token."""
    config, given = bench.config, bench.prompt(case.keys)
    tokens = case.rows * (config.length - 1)

    def turn(name: str, draw: Draw) -> float:
        begun_s = perf_counter()
        first_s = draw(given, case.rows, config.length)
        wait(config.device)
        firsts.setdefault(name, []).append(first_s - begun_s)
        return perf_counter() - first_s

    def prepared(name: str, draw: Draw) -> Turn:
        draw(given, case.rows, WARM_UP)
        return partial(turn, name, draw)

    for name, draw in draws.items():
        yield Contestant(f"{name}, {case}", tokens, HUGGING_FACE), partial(prepared, f"{name}, {case}", draw)
    estimated = {LIMIT: limit} | ({PUBLIC: public} if case == Case(config.keys[0], 1) else {})
    for name, estimate in estimated.items():
        of_one = partial(estimate, bench, case)
        yield Contestant(f"{name}, {case}", tokens, HUGGING_FACE), lambda of_one=of_one: of_one


def bench_sampling(config: BenchSamplingConfig) -> None:
    where = begin(config, ("length", "repeats", "keys"))
    if min(config.batches, default=2) < 2:
        raise ConfigError("batches", got=config.batches, allowed="2 or more each; one row is always measured")
    if config.length < 2:
        raise ConfigError("length", got=config.length, allowed="2 or more: the first token has a figure of its own")
    bench = opened(config)
    size = f"{bench.n_layers} layers, width {bench.d_model}, {bench.n_heads} heads, feed-forward {bench.d_ff}"
    say(f"{where}\n{config.bundle}: {size}; {config.length} new tokens")
    draws: dict[str, Draw] = {name: partial(ours, bench.tokenizer, player) for name, player in players(bench)}
    weights = ("float32",) if config.device == "cuda" else ("float32", "int8")
    draws |= {f"{HUGGING_FACE}, {each}": hugging_face(bench, each == "int8") for each in weights}
    cases = [Case(keys, 1) for keys in config.keys]
    cases += [Case(config.keys[len(config.keys) // 2], rows) for rows in config.batches]
    rows = list[dict[str, Any]]()
    for case in cases:
        firsts = dict[str, list[float]]()
        for each in compete(dict(contestants(bench, case, draws, firsts)), config.repeats):
            rows.append(each._asdict() | {"first_s": firsts.get(each.name, [])})
            say(line_of(rows[-1]))
    if config.out:
        write_json(Path(config.out), {"where": where, "config": asdict(config), "rows": rows})


def line_of(row: dict[str, Any]) -> str:
    """One contestant in one case: tokens a second, and the seconds to the first."""
    if row["failed"]:
        return f"{row['name']:<96}   {row['failed']}"
    first = f"first token after {1000 * median(row['first_s']):,.0f} ms" if row["first_s"] else ""
    return f"{row['name']:<96}{row['tokens'] / median(row['seconds']):>10,.1f} tokens/s   {first}"


COMMAND = Command("bench_sampling", bench_sampling, BenchSamplingConfig)
