"""Chooses a model's strength of seed guidance, which its bundle's header then names.

    python studies/guidance.py --store outputs/stores/jsb --models chorale
    python studies/guidance.py --store outputs/stores/jsb --models chorale --test
    python studies/guidance.py --store outputs/stores/jsb --models chorale --write
    python studies/guidance.py --store outputs/score_music/store --models score --strengths 0.25 0.5 1 1.5 2

Continues held-out beginnings without guidance and with each strength, several times with other random seeds. Chooses
the largest strength with no objection. Motif retention is not above the composers' 1 by its interval. The longest copy
from the seed and returning bars are not above the composers' by theirs. No statistic's overlap is below plain
sampling's by its own interval. No more continuations than without guidance wait for over 3 s without a new note.
With `--beside` no other store may have one. `--test` then reads the test split with the strength that validation
chose, once; `--write` copies the bundle with the strength in its header, where every command finds it. What was
measured with the same settings is not measured again, draw by draw. Of scores `score_beginnings.py` says what is cut
and heard, and `--strengths 0.25 0.5 1 1.5 2` are worth a trial. Settings of `musictx compare` may follow.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timed
from alive import STILL_S, waits_s
from bundles import with_notes
from score_beginnings import cut_scores
from shared import asked, options

from musictx.analysis.comparison import memory
from musictx.analysis.continuations import Beginnings, beginnings, continue_beginnings
from musictx.analysis.distance import compare_all
from musictx.analysis.statistics import features
from musictx.commands.compare import CompareConfig
from musictx.config.app import settings
from musictx.config.mistakes import in_one_line
from musictx.data.store import Split, Store
from musictx.errors import UserError
from musictx.files import write_json
from musictx.generate.open_player import Playing, open_playing
from musictx.generate.requests import Continue
from musictx.model.header import read_header
from musictx.model.packaged import bundle_path
from musictx.model.tensors import tensors_hash
from musictx.music.score import Score
from musictx.terminal import say
from musictx.tokenizers.score import ScoreTokenizer

# of `musictx compare`: given by options, or not used
OWN = ["runs", "names", "store", "out", "split", "segment", "copying", "random_seed", "device", "overwrite"]
OWN += ["sampler.seed_guidance"]
USUAL = ["pieces=64", "seed_seconds=9.6", "length_seconds=14.4", "span_seconds=4.8"]
OF_SCORES = ["pieces=48", "seed_seconds=16", "length_seconds=16", "span_seconds=4"]  # 8 bars and 8 bars
ROUNDING = 1e-9  # where all music has four voices, overlaps are 1, and their intervals a little less
# each: retained, from_seed and repeated (mean, low, high); overlaps: name -> the same; still: continuations that wait
Draws = list[dict[str, Any]]


def against(draws: Draws, plain: Draws, composers: dict[str, Any]) -> list[str]:
    """The objections to a strength, by its draws; none if it may be the default."""
    found = []
    low = _mean(draws, "retained")[1]
    if not low <= 1:
        found.append(f"motif retention above 1, from {low:.2f} on")
    for name in ("from_seed", "repeated"):
        if composers[name] is None:  # these tokens count no beats
            continue
        mean, most = _mean(draws, name)[0], composers[name][2]
        if not mean <= most:
            found.append(f"{name} {mean:.2f}, the composers at most {most:.2f}")
    for name in draws[0]["overlaps"]:
        most, usual = (np.mean([draw["overlaps"][name] for draw in each], axis=0) for each in (draws, plain))
        if not most[2] >= usual[0] - ROUNDING:
            found.append(f"overlap of {name} at most {most[2]:.3f}, plain {usual[0]:.3f}")
    if "still" in draws[0]:  # the chorale model was measured before this rule
        still, usual = (np.mean([draw["still"] for draw in each]) for each in (draws, plain))
        if still > usual:
            found.append(f"{still:g} continuations a draw wait for over {STILL_S:g} s, plain {usual:g}")
    return found


def choose(*stores: list[dict[str, Any]]) -> float | None:
    """The largest strength without an objection in any store."""
    free = [{row["strength"] for row in rows if not row["against"]} for rows in stores]
    return max((strength for strength in set.intersection(*free) if strength is not None), default=None)


def measured(
    opened: Playing,
    split: Split,
    strengths: list[float],
    draws: int,
    config: CompareConfig,
    keep: Callable[[str, Callable[[], Any]], Any] = lambda name, make: make(),
) -> dict[str, Any]:
    """The plain row first, then one for each strength; beside them the figures of the composers' own continuations.
    `keep` may know a draw by its name already."""
    held_out, continue_all = cut(opened, split, config)
    composers = _kept(held_out.true, held_out, config, opened)
    rows: list[dict[str, Any]] = []
    for strength in (None, *strengths):
        sampler = replace(config.sampler, seed_guidance=strength).suited(opened.header.sampling)

        def figures_of(request: Continue) -> dict[str, Any]:
            drawn = continue_all(request)
            real, made = (features(scores, opened.tokenizer.metrical) for scores in (held_out.true, drawn))
            areas = {name: [*one] for name, one in compare_all(real, made, resamples=200).items()}
            still = sum(bool(waits_s(score, config.length_seconds).max() > STILL_S) for score in drawn)
            return _kept(drawn, held_out, config, opened) | {"overlaps": areas, "still": still}

        requests = [Continue(sampler, random_seed=seed) for seed in range(draws)]
        names = [f"strength {strength}, random seed {seed}" for seed in range(draws)]
        found: Draws = [keep(name, partial(figures_of, each)) for name, each in zip(names, requests, strict=True)]
        plain = rows[0]["draws"] if rows else found
        rows.append({"strength": strength, "draws": found, "against": against(found, plain, composers)})
        kept, low, high = _mean(found, "retained")
        objections = "; ".join(rows[-1]["against"]) or "no objection"
        say(f"g = {strength}: motif retention {kept:.2f} ({low:.2f} to {high:.2f}): {objections}", flush=True)
    return {"pieces": len(held_out.seeds), "composers": composers, "rows": rows}


def cut(opened: Playing, split: Split, config: CompareConfig) -> tuple[Beginnings, Callable[[Continue], list[Score]]]:
    """Beginnings, and what continues them all."""
    how = config.pieces, config.seed_seconds, config.length_seconds
    if isinstance(opened.tokenizer, ScoreTokenizer):
        return cut_scores(opened, split, *how)
    held_out = beginnings(split, opened.tokenizer, *how)
    return held_out, lambda request: continue_beginnings(opened.player, opened.tokenizer, held_out, request).scores


def _kept(scores: list[Score], held_out: Beginnings, config: CompareConfig, opened: Playing) -> dict[str, Any]:
    kept = memory(scores, held_out, None, config.span_seconds, opened.tokenizer.metrical)
    if kept.retained is None:
        raise UserError(kept.unmeasured)
    return {"retained": kept.retained, "from_seed": kept.from_seed, "repeated": kept.repeated}


def _mean(draws: Draws, name: str) -> Any:
    """The mean over the draws of the estimates and of both ends of their intervals."""
    return np.mean([draw[name] for draw in draws], axis=0)


def study(args: Any, overrides: list[str]) -> None:
    """Chooses for each model, reads the test split if that is asked, and writes a copy if that is. Raises UserError if
    there is no strength to do so with."""
    kept, runs = dict[str, Any](), timed.Runs(args.out / "runs.json")
    for name in args.models:
        known, bundle = partial(figures, runs, args, overrides, name), bundle_path(name)
        validation = known(args.store, "validation", args.strengths)
        others = {store.name: known(store, "validation", args.strengths) for store in args.beside}
        chosen = choose(*(found["rows"] for found in (validation, *others.values())))
        kept[name] = {"validation": validation, "chosen": chosen, "tensors_sha256": tensors_hash(bundle)}
        kept[name] |= {"beside": others} if others else {}
        say(f"{name}: seed_guidance={chosen}")
        if chosen is None and (args.test or args.write):
            raise UserError(f"{name}: validation chose no strength", "give other --strengths")
        if args.test and chosen is not None:
            kept[name]["test"] = known(args.store, "test", [chosen])
        write_json(args.out / "chosen.json", kept)
        if args.write:
            with_notes(bundle, args.out / bundle.name, seed_guidance=chosen)
    say(f"{args.out / 'chosen.json'}: all figures")


def figures(
    runs: timed.Runs, args: Any, overrides: list[str], name: str, at: Path, split: str, strengths: list[float]
) -> Any:
    """Those of a model and a split of the store there, unless the same were measured before."""
    is_score = read_header(bundle_path(name)).tokenizer == ScoreTokenizer.name
    words = [f"runs=[{','.join(args.models)}]", f"store={at}", "out=unused", *(OF_SCORES if is_score else USUAL)]
    config = settings("compare", *words, *overrides)
    opened = open_playing(bundle_path(name), attention=config.attention.impl)
    store = Store(at, opened.header.tokenizer)
    how = store.manifest.splits[split].sha256, strengths, args.draws, overrides, opened.header.sampling
    say(f"{name}, {at.name}, {split}, strengths {strengths}", flush=True)
    key = f"{tensors_hash(bundle_path(name))}, {split}, {how}"
    keep = partial(kept_draw, runs, f"{tensors_hash(bundle_path(name))}, {split}, {how[0]}, {how[3:]}")
    return runs.get(key, partial(measured, opened, store.split(split), strengths, args.draws, config, keep))


def kept_draw(runs: timed.Runs, key: str, name: str, make: Callable[[], Any]) -> Any:
    return runs.get(f"{key}: {name}", make)


def main() -> None:
    parser = options(__doc__, "store", "out", "test", out=Path("outputs/guidance"))
    parser.add_argument("--beside", type=Path, nargs="+", default=[], help="stores that may have no objection either")
    parser.add_argument("--models", nargs="+", default=["chorale"], help="run folders, bundles, piano, chorale")
    parser.add_argument("--strengths", type=float, nargs="+", default=[1.0, 1.25, 1.5, 2.0, 3.0])
    parser.add_argument("--draws", type=int, default=3, help="draws of every piece, each with its own random seed")
    parser.add_argument("--write", action="store_true", help="copy the bundles, with the strength in their headers")
    study(*asked(parser, *OWN))


if __name__ == "__main__":
    with in_one_line():
        main()
