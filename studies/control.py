"""Measures what `control.` does: how much of the new music obeys, how much does by chance, and what it costs.

    python studies/control.py --store outputs/stores/jsb --bundle chorale --out outputs/control-jsb
    python studies/control.py --store outputs/stores/maestro --bundle piano --out outputs/control-maestro

Continues held-out beginnings without steering, then with one of `ASKED` at a time, by the defaults of `musictx
generate`. A fixed random generator draws what is asked of each piece, before any music is read. So the composer's own
continuation, and the unsteered one, obey by chance alone.

Obeyed are a key, chords, a register and a loudness by the share of the sounding time that lies in them, or near them.
A density or a polyphony is a hit if the mean of the whole continuation is near it. The cost is paired by piece: steered
less unsteered nats a token, by the model without steering, and notes of the longest run from the seed. Beside it is
how often motifs of the seed return, as `guidance.py` counts them. Intervals are 95 %, over pieces. `--test` then reads
the test split. What was measured with the same settings is not measured again.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timed
from numpy.typing import NDArray
from shared import options

from musictx.analysis.bootstrap import interval
from musictx.analysis.continuations import Beginnings, beginnings, continue_beginnings
from musictx.analysis.motif import held_in, retention
from musictx.analysis.repeats import CorpusIndex
from musictx.analysis.seed_gain import log_p_of_last
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import ConfigError, UserError
from musictx.files import write_json
from musictx.generate.control import Control
from musictx.generate.open_bundle import Opened, open_bundle
from musictx.generate.outcome import outcome
from musictx.generate.primer import Primer, make_prompt
from musictx.generate.requests import Continue
from musictx.generate.steering import check_encoding
from musictx.model.packaged import bundle_path
from musictx.model.tensors import tensors_hash
from musictx.model.torch_steps import TorchPlayer
from musictx.model.weights import choose_weights, for_steps
from musictx.music.harmony import LETTERS, Classes, parse_chord
from musictx.music.score import Meter, Score
from musictx.system import processor
from musictx.terminal import say

SEED_S, LENGTH_S, CHORD_S = 9.6, 14.4, 2.4
NEAR = {"register": 7, "loudness": 16}  # a fifth; one of the eight steps from ppp to fff
FACTOR = 1.25  # a mean is near a number if neither is more than so many times the other
NONE = "unsteered"
PROGRESSION = ((0, ""), (9, "m"), (5, ""), (7, "7"))  # I vi IV V7, above the key's first note


def progression(higher: int) -> str:
    """A usual line of four chords, so many semitones higher than in C."""
    chords = [f"{LETTERS[(root + higher) % 12]}{quality}" for root, quality in PROGRESSION]
    return ", ".join(f"{k * CHORD_S:g} {chord}" for k, chord in enumerate(chords))


ASKED: dict[str, Callable[[np.random.Generator], Any]] = {  # of a piece, each as probable as any other
    "key": lambda chance: f"{chance.choice(LETTERS)} {chance.choice(['major', 'minor'])}",
    "chords": lambda chance: progression(int(chance.integers(12))),
    "density": lambda chance: int(chance.choice([2, 4, 6, 8])),
    "polyphony": lambda chance: int(chance.choice([2, 3, 4, 5])),
    "register": lambda chance: int(chance.choice([48, 54, 60, 66, 72, 78])),
    "loudness": lambda chance: int(chance.choice([40, 55, 70, 85, 100])),
}


def asked_of(pieces: int, name: str) -> list[Any]:
    """What is asked of each piece; of the first pieces it is the same, however many there are."""
    chance = np.random.default_rng(list(name.encode()))
    return [ASKED[name](chance) for _ in range(pieces)]


def obeyed(control: Control, music: Score) -> float:
    """How much of `LENGTH_S` of music, from time 0 on, does the one thing that is asked; 0 of silence."""
    seconds = sounding_s(music, 0.0, LENGTH_S)
    if not seconds.sum():
        return 0.0
    if control.classes is not None:
        return in_classes(music, [(0.0, LENGTH_S, control.classes)])
    if control.line is not None:
        lines_s = control.lines_s(Meter(music.quarter_s), 0.0)[1]
        spans = outcome(control, music, 0.0, LENGTH_S, lines_s)[0]
        return in_classes(music, [(span.from_s, span.to_s, parse_chord(span.name).classes) for span in spans])
    ((name, curve),) = control.curves().items()
    goal = curve.values[0]
    if name in NEAR:
        is_ = {"register": music.pitch, "loudness": music.velocity}[name].astype(float)
        return float(seconds[np.abs(is_ - goal) <= NEAR[name]].sum() / seconds.sum())
    mean = (len(music) if name == "density" else seconds.sum()) / LENGTH_S
    return float(goal / FACTOR <= mean <= goal * FACTOR)


def sounding_s(music: Score, from_s: float, to_s: float) -> NDArray[np.float64]:
    """(N,) how long each note sounds between two moments."""
    seconds: NDArray[np.float64] = (np.minimum(music.offset_s, to_s) - np.maximum(music.onset_s, from_s)).clip(min=0.0)
    return seconds


def in_classes(music: Score, spans: Sequence[tuple[float, float, Classes]]) -> float:
    """The share of the sounding time in the pitch classes of each span, from one moment to another."""
    seconds = [(sounding_s(music, *ends), np.isin(music.pitch % 12, list(classes))) for *ends, classes in spans]
    return float(sum(each[inside].sum() for each, inside in seconds) / sum(each.sum() for each, _ in seconds))


def surprise(opened: Opened, seed: Score, music: Score) -> float | None:
    """Nats a token of `LENGTH_S` of music after a seed, by the model as it is; None for no notes. Notes that sound on
    at the end are not ended by the model: their ends do not count."""
    tokenizer, quarter_s = opened.tokenizer, seed.quarter_s
    prompt = make_prompt(Primer(seed, SEED_S, Meter(quarter_s)), tokenizer, None, opened.model.cycle)
    ids = tokenizer.encode(music)
    n = bisect_left(range(len(ids)), LENGTH_S - 1e-6, key=lambda n: tokenizer.seconds(ids[:n], quarter_s))
    ids = ids[: n + -n % tokenizer.group]
    if not len(ids):
        return None
    whole = np.concatenate([prompt.context, ids])
    return -float(log_p_of_last(opened.model, whole, len(ids), "cpu").mean())


def drawn(opened: Opened, held_out: Beginnings, controls: Sequence[Control]) -> list[Score]:
    """A continuation of each seed, steered by its own control. Seeds of which the same is asked share a batch."""
    found: dict[int, Score] = {}
    for control in dict.fromkeys(controls):
        these = [i for i, each in enumerate(controls) if each == control]
        part = held_out._replace(seeds=[held_out.seeds[i] for i in these], true=[held_out.true[i] for i in these])
        request, own = Continue(control=control), opened.header.sampling
        made = continue_beginnings(TorchPlayer(opened.model), opened.tokenizer, part, request, own=own)
        found.update(zip(these, made.scores, strict=True))
    return [found[i] for i in range(len(controls))]


def measured(
    opened: Opened, held_out: Beginnings, asked: dict[str, list[Control]], make: Callable[[], list[Score]]
) -> dict[str, Any]:
    """The figures of one continuation of each seed: how much obeys each of what is asked, and what it costs."""
    scores, metrical = make(), opened.tokenizer.metrical
    found: dict[str, Any] = {name: list(map(obeyed, controls, scores)) for name, controls in asked.items()}
    pairs = list(zip(held_out.seeds, scores, strict=True))
    found["nats"] = [surprise(opened, seed, music) for seed, music in pairs]
    found["from_seed"] = [CorpusIndex([a]).longest_copy(b).notes if len(a) > 1 else 0 for a, b in pairs]
    try:
        kept = retention(held_out.seeds, scores, held_out.true, held_in(metrical), LENGTH_S, LENGTH_S)
        found["retained"] = [float(each[0]) for each in (kept.mean, kept.low, kept.high)]
    except UserError as error:  # too few pieces for a scale; all else is there
        found["retained"] = str(error)
    return found


def paired(steered: Sequence[float | None], plain: Sequence[float | None]) -> dict[str, Any]:
    """Steered less unsteered, over the pieces that have both."""
    more = np.array(steered, float) - np.array(plain, float)
    there = more[np.isfinite(more)]
    return {"difference": interval(there), "pieces": len(there)}


def summary(name: str, found: dict[str, Any], plain: dict[str, Any], true: dict[str, Any]) -> dict[str, Any]:
    """What a steering does, beside chance and the composers."""
    return {
        "obeyed": {who: interval(of[name]) for who, of in (("steered", found), (NONE, plain), ("composers", true))},
        "more than unsteered": paired(found[name], plain[name]),
        "nats a token": {NONE: interval([x for x in plain["nats"] if x is not None])}
        | paired(found["nats"], plain["nats"]),
        "notes from the seed": {NONE: interval(plain["from_seed"])} | paired(found["from_seed"], plain["from_seed"]),
        "motifs of the seed": {"steered": found["retained"], NONE: plain["retained"]},
    }


def steerings(opened: Opened, pieces: int, strength: float) -> dict[str, list[Control]]:
    """What is asked of each piece, by name. Says what this encoding cannot take."""
    found = {}
    for name in ASKED:
        controls = [Control(**{name: value}, strength=strength) for value in asked_of(pieces, name)]
        try:
            check_encoding(controls[0], opened.tokenizer)
        except ConfigError as error:
            say(f"not measured: {error}")
            continue
        found[name] = controls
    return found


def study(args: Any, split: str) -> None:
    """Measures the composers, the unsteered model and each steering on one split."""
    bundle = bundle_path(args.bundle)
    opened, fast, tensors = open_bundle(bundle), open_bundle(bundle), tensors_hash(bundle)
    fast = fast._replace(model=for_steps(fast.model, choose_weights("auto", fast.model)))  # it draws, the other scores
    store = Store(args.store, opened.header.tokenizer)
    held_out = beginnings(store.split(split), opened.tokenizer, args.pieces, SEED_S, LENGTH_S)
    pieces = len(held_out.seeds)
    asked = steerings(opened, pieces, args.strength)
    runs, at = timed.Runs(args.out / "runs.json"), store.manifest.splits[split].sha256
    how = f"{tensors}, {split} {at}, {pieces} pieces, {SEED_S:g} and {LENGTH_S:g} s, strength {args.strength:g}"

    def known(name: str, make: Callable[[], list[Score]], of: dict[str, list[Control]]) -> dict[str, Any]:
        said = {each: [getattr(control, each) for control in controls] for each, controls in of.items()}
        where = {"processor": str(processor())}
        found: dict[str, Any] = runs.get(f"{how}, {name}: {said}", lambda: measured(opened, held_out, of, make) | where)
        return found

    true = known("composers", lambda: held_out.true, asked)
    plain = known(NONE, partial(drawn, fast, held_out, [Control()] * pieces), asked)
    facts: dict[str, Any] = {"bundle": args.bundle, "tensors_sha256": tensors, "split": split, "pieces": pieces}
    facts |= {"seed_s": SEED_S, "length_s": LENGTH_S, "strength": args.strength, "steerings": {}}
    for name, controls in asked.items():
        found = known(name, partial(drawn, fast, held_out, controls), {name: controls})
        facts["steerings"][name] = summary(name, found, plain, true) | {"processor": found["processor"]}
        say(f"{split}, {name}: {line(facts['steerings'][name])}", flush=True)
        write_json(args.out / f"{split}.json", facts)
    say(f"{args.out / f'{split}.json'}: all figures")


def line(found: dict[str, Any]) -> str:
    """A steering in words."""
    said = ", ".join(
        f"{who} {mean:.2f} ({low:.2f} to {high:.2f})" for who, (mean, low, high) in found["obeyed"].items()
    )
    mean, low, high = found["nats a token"]["difference"]
    return f"obeyed by {said}; {mean:+.3f} ({low:+.3f} to {high:+.3f}) nats a token"


def main() -> None:
    parser = options(__doc__, "store", "out", "test", out=Path("outputs/control"))
    parser.add_argument("--bundle", default="chorale", help="chorale, piano, a file or a run's folder")
    parser.add_argument("--pieces", type=int, default=64, help="the first so many that are long enough")
    parser.add_argument("--strength", type=float, default=Control.strength, help="of all steerings")
    args = parser.parse_args()
    for split in ("validation", *(["test"] if args.test else [])):
        study(args, split)


if __name__ == "__main__":
    with in_one_line():
        main()
