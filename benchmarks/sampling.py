"""How fast musictx draws music, beside our rewrite of the public Music Transformer code and beside Hugging Face.

All take turns in one process, with random weights of one size, after the same short prompt. A figure is the median of
the turns with its range. Ours runs as in `generate`: with the prompt's reading, the masks, and the looks every few
tokens. The uncached loop is timed at only some lengths. Its figure is an estimate, the sum over all lengths of a
parabola through those, and its row says so.
"""

import copy
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from facts import Contestant, Turn, begin, compete, report, timed
from public import NAME, PublicConfig, PublicTransformer, next_id

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
from musictx.model.torch_steps import TorchPlayer
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.model.weights import for_steps
from musictx.music.score import Meter, Score
from musictx.setting import setting
from musictx.system import processor
from musictx.terminal import say
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
    repeats: int = setting(3, "runs of each measurement")
    threads: int | None = setting(None, "threads of the processor; null: all cores")
    out: str | None = setting(None, "a JSON file for the figures; null: none")


TOKENIZER = build_tokenizer("performance")
WARM_UP = 16  # tokens
POINTS = 5  # lengths at which a step of the uncached loop is timed
OURS = "musictx"
BLOCK = 32  # tokens in each turn, with masks and without
PUBLIC = f"{NAME}, uncached (estimate: parabola through {POINTS} lengths)"
HUGGING_FACE = "Hugging Face GPT-2, cached"

Run = Callable[[int], float]  # new tokens in each row -> seconds


def prompt() -> Prompt:
    """A scale of eight notes."""
    onset_s = np.arange(8) / 4
    score = Score(onset_s, onset_s + 0.25, np.array([60, 62, 64, 65, 67, 69, 71, 72]), np.full(8, 80))
    return make_prompt(Primer(score, 2.0, Meter(score.quarter_s)), TOKENIZER, None)


def transformer(config: BenchSamplingConfig) -> Transformer:
    torch.manual_seed(0)
    sizes = {name: getattr(config, name) for name in ("d_model", "n_layers", "n_heads", "d_ff", "max_distance")}
    kind = TransformerConfig(TOKENIZER.vocab.size, dropout=0.0, attention="auto", **sizes)
    return Transformer(kind).to(config.device).eval()


def stream(model: LanguageModel, begin: Prompt, batch: int, masks: bool, room: int, device: str) -> Stream:
    ids, quarter_s = [begin.ids] * batch, [begin.quarter_s] * batch
    grammar = build_grammar(TOKENIZER, Rules(masks=masks), ids, quarter_s)
    rows = [BatchRow(0, (0, k)) for k in range(batch)]
    return begin_stream(TorchPlayer(model, device), [begin.heard], rows, PLAIN, grammar, room, False, [])


def ours(model: LanguageModel, batch: int, device: str, most: int) -> Run:
    """Our engine, from the prompt's ids to the last id drawn, with room for `most`, since a CUDA graph fits one
    room."""

    def draw(given: Prompt, length: int) -> None:
        drawn = stream(model, given, batch, True, len(given.heard) + most, device)
        progress = [
            Progress(Length(tokens=length), given.meter, TOKENIZER, given.ids, given.quarter_s) for _ in range(batch)
        ]
        for _ in Batch(drawn, progress, length):
            pass

    return lambda length: timed(partial(draw, prompt(), length), device)


def public(config: BenchSamplingConfig) -> Run:
    """An estimate of the public code's loop: the sum over all lengths of a parabola through some of them."""
    given = torch.from_numpy(prompt().heard).to(config.device)
    sizes = {name: getattr(config, name) for name in ("d_model", "n_layers", "n_heads", "d_ff")}
    longest = len(given) + max(config.length, WARM_UP)
    kind = PublicConfig(TOKENIZER.vocab.size, max_sequence=longest, **sizes)
    model = PublicTransformer(kind).to(config.device).eval()

    def summed(length: int) -> float:
        lengths = len(given) + np.arange(length)
        some = np.unique(np.linspace(lengths[0], lengths[-1], POINTS).round().astype(int))
        inputs = [given.new_zeros(1, n) for n in some.tolist()]
        seconds = [timed(partial(next_id, model, ids, TOKENIZER.vocab.pad), config.device) for ids in inputs]
        at = np.polyval(np.polyfit(some, seconds, min(2, len(some) - 1)), lengths)
        return float(at.sum())

    return summed


def hugging_face(config: BenchSamplingConfig) -> Run:
    """Hugging Face's `generate` with its own cache; it draws without filters, as the others do."""
    from transformers import GPT2Config, GPT2LMHeadModel
    from transformers.utils import logging

    logging.set_verbosity_error()
    given = torch.from_numpy(prompt().heard)[None].to(config.device)
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
    """(name, rows at once) -> the function that prepares it, which may fail."""
    plain, device = transformer(config), config.device

    def kept(weights: str) -> Transformer:
        return for_steps(copy.deepcopy(plain), weights)

    forms: dict[str, Any] = {OURS: kept("float32")}
    if device == "cuda":
        forms["musictx, bf16 weights"] = bf16 = kept("bfloat16")
        forms["musictx, bf16 weights, CUDA graph"] = StaticSteps(bf16)
    else:
        forms["musictx, int8 linear layers"] = kept("int8")
        if processor().bfloat16:
            forms["musictx, bf16 linear layers"] = kept("bfloat16")
    most = max(config.length, WARM_UP)
    batches = (1, *config.batches)
    found = {(name, n): partial(ours, form, n, device, most) for n in batches for name, form in forms.items()}
    return {**found, (PUBLIC, 1): partial(public, config), (HUGGING_FACE, 1): partial(hugging_face, config)}


def named(name: str, batch: int) -> str:
    return f"{name}, {batch} at once" if batch > 1 else name


def measure(config: BenchSamplingConfig) -> list[Contestant]:
    """All in turn; one that cannot run says why and gets no turn."""

    def prepared(prepare: Callable[[], Run]) -> Turn:
        run = prepare()
        run(min(WARM_UP, config.length))
        return partial(run, config.length)

    rows = {}
    for (name, n), prepare in contestants(config).items():
        rows[Contestant(named(name, n), n * config.length, PUBLIC)] = partial(prepared, prepare)
    return compete(rows, config.repeats)


def masks_cost(config: BenchSamplingConfig, batch: int) -> list[float]:
    """What masks add, in percent of a step without them. One figure for every two blocks in turn, so that other work on
    the machine slows both."""
    model, given = for_steps(transformer(config)), prompt()
    room, block, costs = len(given.heard) + config.length, min(BLOCK, config.length), []
    for _ in range(config.repeats):
        pair = [stream(model, given, batch, masks, room, config.device) for masks in (True, False)]
        for k in range(config.length // block):
            seconds = [0.0, 0.0]
            for i in (0, 1) if k % 2 else (1, 0):
                seconds[i] = timed(partial(list, islice(pair[i], block)), config.device)
            costs.append((seconds[0] / seconds[1] - 1) * 100)
    return costs


def bench_sampling(config: BenchSamplingConfig) -> None:
    where = begin(config, ("length", "repeats"))
    if min(config.batches, default=2) < 2:
        raise ConfigError("batches", got=config.batches, allowed="2 or more each; one stream is always measured")
    size = f"{config.n_layers} layers, width {config.d_model}, {config.n_heads} heads, feed-forward {config.d_ff}"
    say(f"{where}\n{size}; {config.length} new tokens after {len(prompt().heard)}")
    rows = measure(config)
    say(report(rows))
    able = {row.name for row in rows if row.seconds}
    shares = {n: masks_cost(config, n) for n in (1, *config.batches) if named(OURS, n) in able}
    for n, share in shares.items():
        low, middle, high = np.percentile(share, (25, 50, 75))
        part = f"the middle half of the blocks: {low:.1f} … {high:.1f}"
        say(f"masks take {middle:.1f} % of a step at batch {n} ({part})")
    if config.out:
        facts = {"where": where, "config": asdict(config), "rows": [row._asdict() for row in rows]}
        write_json(Path(config.out), facts | {"masks_cost": shares})


COMMAND = Command("bench_sampling", bench_sampling, BenchSamplingConfig)
