"""Twenty held-out beginnings continued: do they end, do they fall silent, and what does a roll show?

    python data_prep/maestro.py path=maestro-v3.0.0-midi.zip out=outputs/stores/maestro
    python studies/beginnings.py --store outputs/stores/maestro --draws 3
    python studies/beginnings.py --store outputs/stores/maestro sampler.top_p=null sampler.min_p=0.02
    python studies/beginnings.py --bundle my.safetensors --write sampler.top_p=null sampler.min_p=0.02

The seeds are the five slowest, fastest, sparsest and densest beginnings of the split, by their onsets a second and
notes that sound together. The model continues each one as `musictx generate` does, but may be silent as long as it
likes; its `sampler.` settings may follow. The measures are silences of more than three seconds a minute, notes that
hang, held for more than eight, and continuations that stand still, without a new note for more than five, in its music
and in the composers'. Writes all figures as JSON, and in a folder beside it a page of rolls for each kind, true
continuations next to the model's, and the MIDI files. `--write` draws nothing: it writes these filters into the
bundle's header, where they hold unless a person gives others.
"""

import argparse
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from musictx.analysis.bootstrap import interval
from musictx.analysis.continuations import Beginnings, beginnings, continue_all
from musictx.analysis.statistics import statistics
from musictx.bench.facts import keep
from musictx.config.app import in_one_line, parse_options, settings
from musictx.config.use import GenerateConfig
from musictx.data.store import Store
from musictx.errors import ConfigError, UserError
from musictx.model.bundle import OWN_FILTERS, add_notes, tensors_hash
from musictx.model.shipped import bundle_path
from musictx.model.weights import choose_weights, for_steps
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.playing.opening import open_bundle
from musictx.sampling.settings import AUTO, Sampling, Settings
from musictx.tokenizers.rules import Rules
from musictx.viz.piano_roll import Panel, piano_roll

EACH = 5  # seeds of each kind
SILENT_S, HANGING_S, STILL_S = 3.0, 8.0, 5.0


class Kind(NamedTuple):
    figure: str  # of musictx.analysis.statistics
    most: bool  # the largest figures, not the smallest


KINDS = {
    "slow": Kind("mean_interonset_s", True),
    "fast": Kind("mean_interonset_s", False),
    "sparse": Kind("polyphony", False),
    "dense": Kind("polyphony", True),
}


def choose(seeds: list[Score], each: int = EACH) -> dict[str, list[int]]:
    """Which seeds are the slowest, fastest, sparsest and densest; none of them twice. Raises UserError for too few."""
    if len(seeds) < each * len(KINDS):
        raise UserError(
            f"{len(seeds)} pieces are long enough: {each * len(KINDS)} are needed; "
            "give shorter --seed-seconds and --seconds"
        )
    figures, free = [statistics(seed) for seed in seeds], list(range(len(seeds)))
    out = {}
    for name, kind in KINDS.items():
        values = {i: getattr(figures[i], kind.figure) for i in free}
        known = [i for i in free if values[i] is not None]
        out[name] = sorted(known, key=lambda i: values[i], reverse=kind.most)[:each]
        free = [i for i in free if i not in out[name]]
    return out


def silences(music: Score, length_s: float, longer_s: float = SILENT_S) -> int:
    """How often nothing sounds for longer than this, from time 0 to the end of the length."""
    until = np.maximum.accumulate(np.append(0.0, np.minimum(music.offset_s, length_s)))
    gaps = np.append(music.onset_s, length_s) - until
    return int((gaps > longer_s).sum())


def standstill_s(music: Score, length_s: float) -> float:
    """The longest time without a new note, from time 0 to the end of the length."""
    return float(np.diff(np.concatenate([[0.0], np.sort(music.onset_s), [length_s]])).max())


def joined(seed: Score, music: Score, seed_s: float) -> Score:
    later = replace(music, onset_s=music.onset_s + seed_s, offset_s=music.offset_s + seed_s)
    return Score.merge([seed, later], seed.quarter_s)


def study(args: argparse.Namespace, usual: GenerateConfig) -> None:
    """The whole study. Raises UserError."""
    opened = open_bundle(bundle_path(args.bundle))
    tokenizer = opened.tokenizer
    split = Store(args.store, opened.header.tokenizer).split(args.split)
    found = beginnings(split, tokenizer, len(split), args.seed_seconds, args.seconds)
    kinds = choose(found.seeds, args.each)
    order = [i for chosen in kinds.values() for i in chosen]
    held_out = Beginnings([found.seeds[i] for i in order], [found.true[i] for i in order], found.seed_s, args.seconds)
    sampling = usual.sampler.suited(opened.header.sampling)
    drawing = Settings(sampling, rules=Rules(max_silence_s=args.seconds))  # as long as all of it
    model = for_steps(opened.model, choose_weights("auto", opened.model))
    drawn = [
        continue_all(model, tokenizer, held_out, drawing._replace(random_seed=args.random_seed + k))
        for k in range(args.draws)
    ]
    count = {
        "true": [silences(music, args.seconds) for music in held_out.true],
        "model": [float(np.mean([silences(d.scores[i], args.seconds) for d in drawn])) for i in range(len(order))],
    }
    a_minute = {name: interval(np.array(values) * 60 / args.seconds) for name, values in count.items()}
    music = {"true": held_out.true, "model": drawn[0].scores}
    figures = {name: [statistics(score)._asdict() for score in scores] for name, scores in music.items()}
    seconds = f"{len(order)} beginnings of {args.seed_seconds:g} s, {args.draws} continuations of {args.seconds:g} s"
    print(seconds)
    hanging: dict[str, list[int]] = {}  # notes that hang, all notes, pieces with one that hangs
    for name, each in a_minute.items():
        print(f"silences over {SILENT_S:g} s a minute, {name:5} {each.mean:.2f} ({each.low:.2f} to {each.high:.2f})")
    notes = {"true": held_out.true, "model": [score for each in drawn for score in each.scores]}
    for name, scores in notes.items():
        held = [score.offset_s - score.onset_s > HANGING_S for score in scores]
        pieces = sum(bool(each.any()) for each in held)
        hanging[name] = [int(np.concatenate(held).sum()), sum(map(len, held)), pieces]
        print("notes over {:g} s, {:5} {} of {:,}, in {} of {}".format(HANGING_S, name, *hanging[name], len(held)))
    still = {name: [round(standstill_s(score, args.seconds), 1) for score in scores] for name, scores in notes.items()}
    for name, waits in still.items():
        print(f"no new note for {STILL_S:g} s, {name:5} {sum(x > STILL_S for x in waits)} of {len(waits)}")
    folder, place = args.out.with_suffix(""), 0
    for name, chosen in kinds.items():
        panels: list[Panel] = []
        for k in range(place, place + len(chosen)):
            for who in music:
                whole = joined(held_out.seeds[k], music[who][k], found.seed_s)
                panels.append((f"{name} {k - place + 1}, {who}", whole, found.seed_s))
                write_midi(whole, folder / f"{name}-{k - place + 1}-{who}.mid")
        piano_roll(panels, folder / f"{name}.png", row_s=found.seed_s + args.seconds)
        place += len(chosen)
    found_in = tensors_hash(bundle_path(args.bundle))
    facts = {
        "bundle": Path(args.bundle).name,
        "tensors_sha256": found_in,
        "split": args.split,
        "pieces": kinds,
        "draws": args.draws,
    }
    facts |= {"seed_seconds": found.seed_s, "seconds": args.seconds, "silences": count, "figures": figures}
    facts |= {"hanging": hanging, "still_s": still, "sampler": asdict(sampling)}
    facts |= {"silences_a_minute": {name: list(each) for name, each in a_minute.items()}}
    keep(args.out, json.loads(json.dumps(facts)))
    print(f"{args.out}: all figures; {folder}: the rolls, true and drawn, and their MIDI")


def write(bundle: Path, sampling: Sampling) -> None:
    """Writes the filters into the bundle's header. Raises ConfigError if they are left to the bundle."""
    if sampling.top_p == AUTO:
        raise ConfigError("--write: give the filters, as in sampler.top_p=null sampler.min_p=0.02")
    filters = {name: getattr(sampling, name) for name in OWN_FILTERS}
    add_notes(bundle, sampler=filters)
    print(f"{bundle}: {', '.join(f'{name}={value}' for name, value in filters.items())}")


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("outputs/stores/maestro"))
    parser.add_argument("--bundle", default="piano")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--seed-seconds", type=float, default=15.0)
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each continuation")
    parser.add_argument("--each", type=int, default=EACH, help="seeds of each kind")
    parser.add_argument("--draws", type=int, default=1, help="continuations of each seed")
    parser.add_argument("--random-seed", type=int, default=0, help="random seed of the first draw")
    parser.add_argument("--write", action="store_true", help="write these filters into the bundle's header")
    parser.add_argument("--threads", type=int, help="threads of the processor; default: all")
    parser.add_argument("--out", type=Path, default=Path("outputs/beginnings.json"))
    args, overrides = parse_options(parser, sys.argv[1:])
    if unknown := [word for word in overrides if not word.startswith("sampler.")]:
        raise ConfigError(f"{', '.join(unknown)}: give settings that begin with sampler.; see --help")
    if args.threads is not None:
        torch.set_num_threads(args.threads)
    usual = settings("generate", "seed_midi=null", "out=x", *overrides)
    if args.write:
        write(bundle_path(args.bundle), usual.sampler)
    else:
        study(args, usual)


if __name__ == "__main__":
    in_one_line(run)
