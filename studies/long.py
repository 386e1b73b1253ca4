"""A trained model continues for ten of its windows: what a token costs, and whether it stays music.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/long.py --store outputs/stores/jsb --threads 1
    python studies/long.py --store outputs/stores/jsb --out outputs/near.json window=512 sampler.top_p=1
    python studies/long.py --store outputs/stores/maestro --out outputs/piano.json bundle=piano seed_midi=elise

It continues a seed in several rows as `musictx generate` does; settings of that command may follow. The bundle names
the strength of guidance and the filters; `sampler.seed_guidance=null sampler.top_p=0.98` does without. It measures
each part of so many tokens, and the same parts of held-out pieces, which show what is usual. Prints a table, writes all
figures as JSON, a picture beside them and the first row as MIDI.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import torch
from hydra import compose, initialize_config_dir
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from musictx.analysis.motif import held_in, returns
from musictx.analysis.statistics import statistics
from musictx.bench.facts import begin, keep, memory_mb
from musictx.config import register_schemas
from musictx.config.app import conf_dir, typed
from musictx.config.use import GenerateConfig
from musictx.data.store import Split, Store
from musictx.errors import ConfigError, UserError
from musictx.files import replacing
from musictx.model.shipped import CHORALE, bundle_path, seed_path, shipped_bundle
from musictx.model.weights import choose_weights, for_steps
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.playing.continuing import part, plan
from musictx.playing.opening import Opened, check_device, open_bundle
from musictx.playing.seeds import fit_voices, read_seed
from musictx.sampling.batch import LOOK_EVERY, Batch, caught
from musictx.sampling.engine import Row, begin_stream
from musictx.sampling.guidance import bare_prompt
from musictx.sampling.primer import choose_primer
from musictx.sampling.prompt import Prompt, make_prompt
from musictx.sampling.settings import Progress, Settings
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.viz.curves import COLOURS

LINES = 10  # lines of the table, about
ALIKE, LATELY = 64, 2048  # ids: a bar of a chorale, two chorales
PERCENTILES = (5, 95)  # percentiles of the held-out parts


class Cost(NamedTuple):
    """The cost of one step of all rows, and the memory of the process, at the end of a part."""

    tokens: int
    ms_per_step: float
    memory_mb: float


class Music(NamedTuple):
    """The figures of a part; NaN where there is nothing to measure."""

    notes_per_s: float
    entropy_bits: float  # entropy of pitch classes
    note_s: float
    nll: float  # nats a token, under the model without guidance
    looping: float  # share of checks at which the repetition guard would call it a loop
    heard: float  # share of ids that end a recently repeated bar
    kept: float  # share of the seed's motifs in this part; in held-out pieces only by chance


PANELS = {  # figure: its name in the picture
    "ms_per_step": "ms a token of all rows",
    "notes_per_s": "notes a second",
    "entropy_bits": "pitch-class entropy, bits",
    "memory_mb": "MB in use",
    "note_s": "mean note, s",
    "nll": "nats a token",
}


def parts(
    tokenizer: Tokenizer, ids: np.ndarray, log_p: np.ndarray, quarter_s: float, every: int, seed: Score
) -> list[Music]:
    """The figures of the last ids (T,), those with a log-probability, `every` ids at a time; a shorter rest is left
    out."""
    score, again, out = tokenizer.decode(ids, quarter_s), heard_before(ids), []
    start = len(ids) - len(log_p)
    for first in range(start, len(ids) - every + 1, every):
        last = first + every
        begin_s, end_s = (tokenizer.seconds(ids[:n], quarter_s) for n in (first, last))
        part = score.clip(begin_s, end_s)
        figures, kept = statistics(part), returns(seed, part, [0, end_s - begin_s], held_in(tokenizer.metrical))[0]
        loops = [caught(ids[None, :n])[0] for n in range(last, first, -LOOK_EVERY)]
        music = (figures.note_density, figures.pitch_class_entropy, figures.mean_duration_s)
        nll = -log_p[first - start : last - start].mean()
        notes_per_s, entropy_bits, note_s = (np.nan if x is None else x for x in music)
        out.append(Music(notes_per_s, entropy_bits, note_s, nll, np.mean(loops), again[first:last].mean(), kept))
    return out


def heard_before(ids: np.ndarray) -> np.ndarray:
    """(T,) True where the last `ALIKE` ids occurred before, at most `LATELY` ids ago."""
    newest: dict[bytes, int] = {}
    out = np.zeros(len(ids), dtype=bool)
    for n in range(ALIKE, len(ids) + 1):
        bar = ids[n - ALIKE : n].tobytes()
        out[n - 1] = n - newest.get(bar, -LATELY) <= LATELY
        newest[bar] = n
    return out


def play(opened: Opened, prompt: Prompt, settings: Settings, rows: int, every: int) -> tuple[list[Cost], Batch]:
    """Draws all rows as `musictx generate` does, and reads the clock after each part. The window and the length in
    tokens are settled."""
    assert settings.window is not None
    assert settings.length.tokens is not None
    model, tokenizer, each = opened.model, opened.tokenizer, [prompt] * rows
    ids, quarter_s = [p.ids for p in each], [p.quarter_s for p in each]
    grammar = build_grammar(tokenizer, settings.rules, ids, quarter_s, settings.device)
    keys = [Row(0, (settings.random_seed, k)) for k in range(rows)]
    sampling, eos, period = settings.sampling, tokenizer.vocab.eos, max(model.cycle, tokenizer.group)
    bare = [] if sampling.strength is None else [bare_prompt(prompt.heard, sampling, period)]
    stream = begin_stream(model, [prompt.heard], keys, sampling, grammar, eos, settings.window, True, bare)
    progress = [Progress(settings.length, p.bar_s, tokenizer, p.ids, p.quarter_s) for p in each]
    batch, costs = Batch(stream, progress, sampling, 1.0, 0), []
    for end in range(every, settings.length.tokens + 1, every):
        batch.limit, start = end, perf_counter()
        batch.run()  # ends with a check, which waits for the device
        if batch.stopped:
            raise UserError(batch.stopped)
        costs.append(Cost(end, (perf_counter() - start) / every * 1000, memory_mb(settings.device)))
        print(f"{end:,} of {settings.length.tokens:,} tokens", end="\r", file=sys.stderr)
    return costs, batch


@torch.inference_mode()
def held_out(
    opened: Opened, split: Split, quarter_s: float, reach: int, device: str, every: int, seed: Score
) -> list[Music]:
    """The figures of the parts in the first `reach` tokens of every piece."""
    out, tokenizer = [], opened.tokenizer
    for piece in split:
        ids = np.asarray(piece[:reach])
        full = torch.tensor([tokenizer.vocab.bos, *ids.tolist()], device=device)
        log_p = opened.model(full[None, :-1])[0].float().log_softmax(-1).gather(1, full[1:, None])[:, 0]
        out += parts(tokenizer, ids, log_p.cpu().double().numpy(), quarter_s, every, seed)
    if not out:
        raise UserError(f"no held-out piece has {every} tokens: give another --store, or --every with fewer")
    return out


def report(costs: list[Cost], drawn: np.ndarray, real: np.ndarray) -> str:
    """About ten lines, means over some parts and all rows; then the held-out parts, mean and percentiles, and the share
    of all drawn parts within those percentiles."""
    some = -(-len(costs) // LINES)
    names = ("ms", "MB", "notes/s", "entropy", "note_s", "nats", "loops", "heard", "kept")
    lines = [f"{'tokens':>12}" + "".join(f"{name:>9}" for name in names)]
    formats = ("9.2f", "9.1f", "9.2f", *["9.3f"] * 6)
    for k in range(0, len(costs), some):
        values = [*np.mean(costs[k : k + some], 0)[1:], *np.nanmean(drawn[:, k : k + some], (0, 1))]
        words = "".join(format(v, f) for v, f in zip(values, formats, strict=True))
        lines.append(f"{costs[k : k + some][-1].tokens:>12,}{words}")
    held = {"held-out": np.nanmean(real, 0)}
    held |= {f"held-out {p}%": np.nanpercentile(real, p, axis=0) for p in PERCENTILES}
    low, high = np.nanpercentile(real, PERCENTILES, axis=0)
    held |= {"drawn inside": ((drawn >= low) & (drawn <= high)).mean((0, 1))}
    for name, values in held.items():
        words = "".join(format(v, f) for v, f in zip(values, formats[2:], strict=True))
        lines.append(f"{name:>12}{'':>18}{words}")
    return "\n".join(lines)


def draw(costs: list[Cost], drawn: np.ndarray, real: np.ndarray, title: str, path: Path) -> None:
    """Draws six small panels over tokens: each row thin, their mean bold, the range of held-out parts shaded."""
    figure = Figure(figsize=(11, 5.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    tokens = np.array([cost.tokens for cost in costs])
    for axes, (name, label) in zip(figure.subplots(2, 3, sharex=True).flat, PANELS.items(), strict=True):
        axes.set_title(label, loc="left", fontsize=10)
        if name in Cost._fields:
            axes.plot(tokens, [getattr(cost, name) for cost in costs], color=COLOURS[0], lw=2)
        else:
            i = Music._fields.index(name)
            low, middle, high = np.nanpercentile(real[:, i], (PERCENTILES[0], 50, PERCENTILES[1]))
            axes.axhspan(low, high, color="#dddddd", lw=0, zorder=0, label="held-out, {} to {} %".format(*PERCENTILES))
            axes.axhline(middle, color="#888888", lw=1, ls="--", zorder=1, label="held-out, median")
            for k, row in enumerate(drawn[:, :, i]):
                axes.plot(tokens, row, color=COLOURS[0], lw=0.7, alpha=0.4, label="a row" if k == 0 else None)
            axes.plot(tokens, np.nanmean(drawn[:, :, i], 0), color=COLOURS[0], lw=2, label="mean of the rows")
        axes.set_ylim(0, axes.get_ylim()[1] * 1.05)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(length=3, labelsize=9)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    for axes in figure.axes[3:]:
        axes.set_xlabel("tokens drawn in each row", fontsize=9)
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    handles, labels = figure.axes[1].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    with replacing(path) as partial:
        figure.savefig(partial, format="png")


def long(args: argparse.Namespace, config: GenerateConfig) -> None:
    """The whole study. Raises UserError."""
    args.device = check_device(config.device)
    where, source = begin(args, ("contexts", "every")), seed_path(str(config.seed_midi))
    opened = open_bundle(bundle_path(str(config.bundle)), config.device, config.attention.impl)
    weights = choose_weights(config.weights, opened.model)
    opened = opened._replace(model=for_steps(opened.model, weights))
    tokenizer, reach = opened.tokenizer, config.window or opened.model.window
    if reach is None:
        raise ConfigError("this model's memory is unlimited: give window=, the tokens to count as one window")
    config.length_tokens = args.contexts * reach
    if args.every % tokenizer.group or args.every > reach:
        raise ConfigError(f"--every {args.every}: give a multiple of {tokenizer.group}, {reach} at most")
    settings = plan(config)._replace(window=reach)
    settings = settings._replace(sampling=settings.sampling.suited(opened.header.sampling))
    seed = read_seed(source, tokenizer, drums=config.drums, out_of_range=config.out_of_range)
    primer = choose_primer(*seed, part(config, tokenizer.voices > 0))
    primer = fit_voices(primer, tokenizer, source, config.out_of_range)
    prompt = make_prompt(primer, tokenizer, settings.window, config.device, opened.model.cycle)
    seed_score = tokenizer.decode(prompt.ids, prompt.quarter_s)
    split = Store(Path(args.store), opened.header.tokenizer).split(args.split)
    held = held_out(opened, split, prompt.quarter_s, reach, config.device, args.every, seed_score)
    costs, batch = play(opened, prompt, settings, config.variations, args.every)
    rows = [np.concatenate([prompt.ids, take.ids]) for take in batch.takes()]
    music = [
        parts(tokenizer, ids, take.log_p, prompt.quarter_s, args.every, seed_score)
        for ids, take in zip(rows, batch.takes(), strict=True)
    ]
    drawn, real = np.array(music), np.array(held)
    title = f"{len(rows)} continuations of {source.name}, a rolling cache of {settings.window:,} tokens"
    print(f"{title}; {where}\n{report(costs, drawn, real)}")
    facts: dict[str, Any] = {"title": title, "where": where, "model": opened.header.notes | opened.header.model}
    facts |= {"window": reach, "every": args.every}
    facts |= {"sampler": asdict(settings.sampling)}
    facts |= {"costs": [cost._asdict() for cost in costs], "held_out": [x._asdict() for x in held]}
    keep(Path(args.out), facts | {"rows": [[x._asdict() for x in row] for row in music]})
    draw(costs, drawn, real, title, Path(args.out).with_suffix(".png"))
    midi = Path(config.out) / f"{source.stem}-1.mid"
    write_midi(tokenizer.decode(rows[0], prompt.quarter_s), midi, primer.meter.signature)
    print(f"{args.out}, its picture beside it; {midi}: the first row")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", default="outputs/stores/jsb", help="held-out pieces to compare with")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--contexts", type=int, default=10, help="windows to draw")
    parser.add_argument("--every", type=int, default=512, help="tokens in a part")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", default="outputs/long.json")
    parser.add_argument("overrides", nargs="*", help="settings of musictx generate; default: the chorale model's own")
    args = parser.parse_intermixed_args()
    shipped = shipped_bundle(CHORALE)
    words = [f"bundle={shipped}", f"seed_midi={shipped.with_suffix('.mid')}", "out=outputs/long", "variations=4"]
    register_schemas()
    try:
        with initialize_config_dir(str(conf_dir()), version_base="1.3"):
            config = typed(compose("generate", [*words, *args.overrides]), GenerateConfig)
        long(args, config)
    except UserError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
