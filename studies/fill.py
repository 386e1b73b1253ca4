"""What a model that fills gaps knows about both sides, and how its fills meet them: the tables of docs/models.md.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/fill.py --store outputs/stores/jsb --bundle chorale --plain outputs/plain.safetensors
    python studies/fill.py --store outputs/stores/maestro --bundle piano \\
        --gaps 1 --scored 32 --pieces 16 --weights bfloat16 --out outputs/fill-piano.json

Gaps are at random moments of held-out pieces. The model scores their true middles after both sides and after the left
side only. Then one gap a piece is filled; the true middles are beside it. A model that cannot fill (`--plain`)
scores true middles after the left side too, and fills by continuing the left side, cut at the border. Prints a table,
writes all figures as JSON, and a picture of what the right side is worth over time.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from fill_measures import TrueGap, border, fill_gain, summary, true_gaps
from shared import options

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.repeats import CorpusIndex
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.files import write_json
from musictx.generate.draw import Drawing
from musictx.generate.filling import hears
from musictx.generate.gap import fill, music_of
from musictx.generate.open_bundle import Opened, open_bundle
from musictx.generate.primer import Primer
from musictx.generate.requests import Continue, Length
from musictx.model.packaged import bundle_path
from musictx.model.weights import WEIGHTS, for_steps
from musictx.music.score import Score
from musictx.tokenizers import Ids, Tokenizer
from musictx.viz.curves import plot_curves

TRUE, BOTH, LEFT = "true middles", "both sides", "left side, plain model"
QUARTER_S, PART_S = 0.6, 0.5  # parts of a gap: a quarter note of the chorales; in music without beats


def drawn(opened: Opened, found: list[TrueGap], window: int | None, by_both: bool) -> list[Ids]:
    """What a model puts into each gap, given both sides, or continuing the left side."""
    model, tokenizer = opened.model, opened.tokenizer
    seconds = found[0].gap.seconds
    own = {**opened.header.sampling, "seed_guidance": None}  # which would follow the left side alone
    request = Continue(length=Length(seconds=seconds), window=window, random_seed=0)
    primers: list[Any] = [each.gap for each in found]
    if not by_both:
        primers = [
            Primer(tokenizer.decode(each.gap.before, each.gap.given.quarter_s), each.gap.from_s, each.gap.meter)
            for each in found
        ]
    drawing = Drawing(primers, model, tokenizer, request, own=own)
    for _ in drawing:
        pass
    return [music_of(take.ids, tokenizer) for _, _, take in drawing.takes]


def wholes(found: list[TrueGap], middles: list[Ids], opened: Opened, drawn: bool) -> list[Score]:
    """The pieces with these middles in their gaps; notes that were drawn may ring over the second border."""
    pairs = zip(found, middles, strict=True)
    return [fill(each.gap, ids, opened.tokenizer, None, ringing=drawn)[0] for each, ids in pairs]


def parts(found: list[TrueGap], pieces: list[Score]) -> list[Score]:
    """The music in the gaps, timed from their beginning."""
    out = []
    for (_, gap, _), score in zip(found, pieces, strict=True):
        inside = score.select((score.offset_s > gap.from_s + 1e-6) & (score.onset_s < gap.to_s - 1e-6))
        onset = np.maximum(inside.onset_s, gap.from_s) - gap.from_s
        offset = np.minimum(inside.offset_s, gap.to_s) - gap.from_s
        out.append(replace(inside, onset_s=onset, offset_s=offset))
    return out


def row_of(found: list[TrueGap], pieces: list[Score], index: CorpusIndex) -> dict[str, Any]:
    """Borders and copying, with intervals over pieces."""
    borders = [[border(score, each.gap.from_s, each.gap.to_s)] for each, score in zip(found, pieces, strict=True)]
    copied = [index.longest_copy(score).notes for score in parts(found, pieces)]
    return {"borders": summary(borders), "copied": interval(copied)}


def open_with(bundle: str, weights: str) -> Opened:
    """A model by its name or file, its weights in so many bits."""
    found = open_bundle(bundle_path(bundle))
    return found._replace(model=for_steps(found.model, weights))


def known_of(args: argparse.Namespace, seconds: float, model: Opened, plain: Opened | None, store: Store) -> Any:
    """The nats of the true middles of one length."""
    tokenizer, window = model.tokenizer, hears(model.header, model.model)
    gaps = spread(true_gaps(store.split(args.split), tokenizer, seconds, args.gaps), args.scored)
    return fill_gain(model.model, tokenizer, gaps, window, part_of(tokenizer), plain and plain.model)._asdict()


def filled_of(
    args: argparse.Namespace, seconds: float, model: Opened, plain: Opened | None, store: Store, index: CorpusIndex
) -> dict[str, Any]:
    """What is drawn into gaps of one length, beside their true middles."""
    gaps = true_gaps(store.split(args.split), model.tokenizer, seconds, 1, random_seed=1)
    gaps = [each for each in gaps if each.gap.given.onset_s.max() > each.gap.to_s]  # or nothing begins after the border
    found, window = spread(gaps, args.pieces), hears(model.header, model.model)
    middles = {TRUE: [each.middle for each in found], BOTH: drawn(model, found, window, True)}
    if plain is not None:
        middles[LEFT] = drawn(plain, found, window, False)
    pieces = {name: wholes(found, ids, model, name != TRUE) for name, ids in middles.items()}
    return {"filled": {name: row_of(found, each, index) for name, each in pieces.items()}, "pieces": len(found)}


def part_of(tokenizer: Tokenizer) -> float:
    """The seconds of a part of a gap, in which the gain is drawn."""
    return QUARTER_S if tokenizer.metrical else PART_S


def spread(found: list[TrueGap], at_most: int | None) -> list[TrueGap]:
    """The gaps of at most so many pieces, evenly spread over the split: neighbours may be by one composer."""
    pieces = sorted({each.piece for each in found})
    n = len(pieces) if at_most is None else min(at_most, len(pieces))
    chosen = {pieces[i] for i in np.linspace(0, len(pieces) - 1, n).round().astype(int)}
    return [each for each in found if each.piece in chosen]


def shown(value: Interval | None) -> str:
    return "" if value is None else f"{value.mean:.3f} ({value.low:.3f} to {value.high:.3f})"


def table(found: dict[float, dict[str, Any]]) -> str:
    lines = ["| gap | both sides | left, same model | left, plain model | gain |", "|---" * 5 + "|"]
    for seconds, each in found.items():
        columns = [each["known"][key] for key in ("both", "left", "plain", "gain")]
        lines.append(f"| {seconds:g} s | {' | '.join(map(shown, columns))} |")
    lines += ["", "| gap | filled by | border met | cut note | silence | notes that end there | longest copy |"]
    lines += ["|---" * 7 + "|"]
    for seconds, each in found.items():
        for name, row in each["filled"].items():
            columns = [*(row["borders"][key] for key in ("met", "cut", "silent", "ending_notes")), row["copied"]]
            lines.append(f"| {seconds:g} s | {name} | {' | '.join(map(shown, columns))} |")
    return "\n".join(lines)


def plainly(value: Any) -> Any:
    """Intervals and arrays as plain values for JSON."""
    if isinstance(value, dict):
        return {str(key): plainly(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plainly(each) for each in value]
    return round(float(value), 5) if isinstance(value, float) else value


def run() -> None:
    parser = options(__doc__, "store", "split", "out", out=Path("outputs/fill.json"))
    parser.add_argument("--bundle", default="chorale")
    parser.add_argument("--plain", help="a bundle that was not trained to fill, but is otherwise equal; default: none")
    parser.add_argument("--seconds", type=float, nargs="+", default=[2.0, 5.0, 10.0])
    parser.add_argument("--gaps", type=int, default=4, help="gaps in each piece whose true middles are scored")
    parser.add_argument("--scored", type=int, help="pieces whose true middles are scored; default: all")
    parser.add_argument("--pieces", type=int, default=64, help="pieces in which one gap is filled")
    parser.add_argument("--weights", default="float32", choices=WEIGHTS, help="bfloat16 is faster on a CPU that has it")
    args = parser.parse_args()
    model, plain = open_with(args.bundle, args.weights), open_with(args.plain, args.weights) if args.plain else None
    store = Store(args.store, model.header.tokenizer)
    index = CorpusIndex([store.tokenizer.decode(ids) for ids in store.split("train")])
    made_of = {"bundle": Path(args.bundle).name, "split": args.split, "weights": args.weights}
    found: dict[float, dict[str, Any]] = {seconds: {} for seconds in args.seconds}
    for seconds, each in found.items():
        each["known"] = known_of(args, seconds, model, plain, store)
        print(f"{seconds:g} s: both sides save {shown(each['known']['gain'])} nats of true middles", flush=True)
        write_json(args.out, plainly(found) | made_of)  # what is known so far
    for seconds, each in found.items():
        each.update(filled_of(args, seconds, model, plain, store, index))
        print(f"{seconds:g} s: {each['pieces']} gaps filled", flush=True)
        write_json(args.out, plainly(found) | made_of)
    print(table(found))
    curves = {}
    for seconds, each in found.items():
        known = each["known"]
        columns = np.array(known["gain_to_end"]).T  # (mean, low and high, parts)
        curves[f"gap of {seconds:g} s"] = (-(known["to_end_s"] - part_of(model.tokenizer) / 2), *columns)
    picture = args.out.with_suffix(".png")
    plot_curves(curves, picture, "seconds to the second border", "gain in nats a token from the music after the gap")
    print(f"{args.out}, {picture}: all figures, and the gain over time")


if __name__ == "__main__":
    with in_one_line():
        run()
