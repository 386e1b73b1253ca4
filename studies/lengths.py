"""What is the price of length? A melody in one vector or under attention; the time of a window; the path of two ids.

    OMP_NUM_THREADS=1 python studies/lengths.py           # resumes; a trial: --fraction 0.01 --out outputs/trial

Two forms of recurrent encoder-decoder learn to harmonise in windows of 16 quarters, with as many steps and one rate.
One has attention to the melody, the other hears a single vector of it (`model.fixed_context`). The figures are nats a
token of the true lower voices, the mean of the random seeds. Validation pieces are cut into inputs of so many quarters.
Differences are paired by piece. Intervals are over pieces, so each random seed's difference is kept beside them.
Settings of `musictx train` (key=value) are for all.

The seconds are CPU time of one window, forward and backward: the median of `REPEATS`, the least and the most. All
models have about a million parameters. Dilated convolutions have as many layers as join the first id to the last. The
longest path is how many steps or layers are between these two.
"""

import json
import statistics
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import timed
import torch
import torch.nn.functional as F
from chorales import COMMON, trained
from shared import asked, options
from torch import Tensor, nn

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.files import replacing
from musictx.generate.open_bundle import open_bundle
from musictx.model.build import build_model, model_config
from musictx.music.grid import N_VOICES, STEPS_PER_QUARTER
from musictx.objectives.conditional import Conditional
from musictx.tokenizers import build_tokenizer
from musictx.viz.curves import COLOURS, MARKERS
from musictx.viz.figure import new_figure, save_figure

STEPS, WINDOW = 350, 16  # of a training; quarters
QUARTER = N_VOICES * STEPS_PER_QUARTER  # ids
RECIPE = ["experiment=jsb", "model=recurrent_encoder_decoder", "objective=conditional", "model.d_model=192"]
RECIPE += [f"data.length={WINDOW * QUARTER}", "trainer.precision=32-true", *COMMON]
ATTENTION, VECTOR = "attention", "one fixed vector"
LESS, SEEDS = f"{VECTOR} less {ATTENTION}", (0, 1)
QUARTERS, IDS, REPEATS = (2, 4, 8, 16, 32, 64), (64, 128, 256, 512, 1024, 2048, 4096), 5
VOCAB = build_tokenizer("chorale").vocab.size
WIDTH: dict[str, Any] = {"d_model": 192, "n_layers": 3, "d_ff": 512, "dropout": 0.0}
CONVOLUTIONS = "dilated convolutions"
KINDS: dict[str, tuple[str, dict[str, Any]] | None] = {
    "LSTM": ("recurrent", {"d_model": 256, "n_layers": 2, "dropout": 0.0}),
    CONVOLUTIONS: None,  # `Dilated`
    "attention, Fourier": ("transformer", WIDTH | {"position": "relative_fourier"}),
    "attention, table": ("transformer", WIDTH | {"position": "relative"}),
}


def path(kind: str, ids: int) -> int:
    """How many steps or layers lead from the first of so many ids to the last."""
    return {"LSTM": ids, CONVOLUTIONS: (ids - 1).bit_length()}.get(kind, 1)


class Dilated(nn.Module):
    """ids (B, T) -> logits (B, T, V): causal convolutions of two ids, twice as far apart in each layer."""

    def __init__(self, layers: int, width: int = 256) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCAB, width)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 2, dilation=2**n) for n in range(layers))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids).transpose(1, 2)  # (B, C, T)
        for n, layer in enumerate(self.layers):
            x = x + F.relu(layer(F.pad(x, (2**n, 0))))
        return F.linear(x.transpose(1, 2), self.embed.weight)


def seconds(kind: str, ids: int) -> dict[str, Any]:
    """CPU seconds of a window forward and backward, after one that warms up."""
    torch.manual_seed(0)
    known, window, found = KINDS[kind], torch.randint(VOCAB, (1, ids + 1)), []
    model: Any = build_model(model_config(*known, vocab_size=VOCAB)) if known else Dilated(path(kind, ids))
    for _ in range(1 + REPEATS):
        began = process_time()
        F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[0, 1:]).backward()
        found.append(process_time() - began)
    return {"s": found[1:], "parameters": sum(p.numel() for p in model.parameters())}


def harmonising(form: str, steps: int, seed: int, store: Store, out: Path, overrides: list[str]) -> dict[str, Any]:
    """Nats and tokens of each validation piece, by the quarters of an input."""
    words = [*RECIPE, f"random_seed={seed}", f"data.path={store.path}", f"out={out / f'{form} {steps} {seed}'}"]
    words += [f"trainer.max_steps={steps}", f"trainer.validate_every={steps}"]
    words += [f"trainer.warmup_steps={max(steps // 20, 1)}"]
    bundle = trained(*words, f"model.fixed_context={str(form == VECTOR).lower()}", *overrides)
    (model, tokenizer, _), split = open_bundle(bundle, continues=False), store.split("validation")
    found: dict[str, Any] = {"parameters": sum(p.numel() for p in model.parameters())}
    for n in QUARTERS:
        of = negative_log_likelihood(model, split, tokenizer, n * QUARTER, objective=Conditional(tokenizer))
        found[str(n)] = {"nats": of.nats.tolist(), "tokens": of.tokens_of.tolist()}
    return found


def compared(forms: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Nats a token of both forms, and what the vector takes more, by length: the mean of the random seeds, and each."""
    found: dict[str, dict[str, Any]] = {form: {"nats": {}, "seeds": {}} for form in (*forms, LESS)}
    for n in map(str, QUARTERS):
        tokens = forms[ATTENTION][0][n]["tokens"]
        nats = {form: np.array([of[n]["nats"] for of in seeds]) for form, seeds in forms.items()}  # (seeds, pieces)
        nats[LESS] = nats[VECTOR] - nats[ATTENTION]
        for form, each in nats.items():
            found[form]["nats"][n] = interval(each.mean(0), tokens)
            found[form]["seeds"][n] = (each.sum(1) / sum(tokens)).tolist()
    return found


def plot(table: dict[str, dict[str, Any]], out: Path) -> None:
    of = {
        "harmonising, nats a token": ("nats", [ATTENTION, VECTOR]),
        f"{LESS}, nats a token": ("nats", [LESS]),
        "a window forward and backward, CPU seconds": ("s", [*KINDS]),
        "the longest path between two ids": ("path", [*KINDS]),
    }
    figure = new_figure(10, 7)
    for axes, (title, (unit, names)) in zip(figure.subplots(2, 2).flat, of.items(), strict=True):
        for name, colour, marker in zip(names, COLOURS, MARKERS, strict=False):
            x = [int(n) for n in table[name][unit]]
            mean, low, high = np.transpose([np.broadcast_to(y, 3) for y in table[name][unit].values()])
            axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
            axes.plot(x, mean, color=colour, marker=marker, ms=5, lw=2, label=name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(x, [f"{n:,}" for n in x])
        axes.set_title(title, loc="left", fontsize=11)
        axes.spines[["top", "right"]].set_visible(False)
        if unit == "nats":
            axes.axvline(WINDOW, color="grey", lw=0.8)
            axes.set_xlabel("quarters; grey: a training window")
        else:
            axes.set(yscale="log", xlabel="ids in a window")
        if len(names) > 1:
            axes.legend(frameon=False, fontsize=9)
        else:
            axes.axhline(0, color="grey", lw=1, ls="--")
            axes.plot(x, [*table[LESS]["seeds"].values()], color=COLOURS[0], lw=0.8)
            axes.set_xlabel(f"{axes.get_xlabel()}; thin: each random seed")
    save_figure(figure, out)


def main() -> None:
    names = ("store", "out", "results", "fraction")
    args, overrides = asked(options(__doc__, *names, out=Path("outputs/lengths")))
    store, runs, results = Store(args.store, "chorale"), timed.Runs(args.out / "runs.json"), args.results or args.out
    steps, forms = max(round(STEPS * args.fraction), 1), dict[str, Any]()
    for form in (ATTENTION, VECTOR):
        make = {seed: partial(harmonising, form, steps, seed, store, args.out, overrides) for seed in SEEDS}
        forms[form] = [runs.get(" ".join([f"{form}, {steps}, {seed}", *overrides]), make[seed]) for seed in SEEDS]
    table = {form: {"steps": steps, **of} for form, of in compared(forms).items()}
    for form, of in forms.items():
        table[form]["parameters"] = of[0]["parameters"]
    for kind in KINDS:
        each = {n: runs.get(f"{kind}, {n} ids", partial(seconds, kind, n)) for n in IDS}
        table[kind] = {"parameters": [each[n]["parameters"] for n in (IDS[0], IDS[-1])]}
        table[kind]["s"] = {n: [f(of["s"]) for f in (statistics.median, min, max)] for n, of in each.items()}
        table[kind]["path"] = {n: path(kind, n) for n in IDS}
    results.mkdir(parents=True, exist_ok=True)
    with replacing(results / "lengths.json") as written:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in table.items())
        written.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    plot(table, args.out / "lengths.png")
    print(f"{results / 'lengths.json'} and {args.out / 'lengths.png'}")


if __name__ == "__main__":
    with in_one_line():
        main()
