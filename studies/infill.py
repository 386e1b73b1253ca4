"""Teaches the chorale models of studies/chorales.py to fill gaps too; stopped, the same command resumes.

    python studies/chorales.py --out outputs/chorales
    python studies/infill.py --chorales outputs/chorales --bundle musictx/bundles/chorale.safetensors

Both models of its best recipe keep learning with `objective=infill`: that of 209 training pieces, whose temperature
comes from the 20 held-out pieces, and that of all 229, which is shipped. First their clock becomes musical time: on a
grid every token takes the same time, so the only change is that a token can have the time at which it sounds. Official
validation chooses nothing; the test split is read only with `--test`.
"""

import argparse
import json
import math
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from chorales import COMMON, TEMPERATURES, load, nll_by_temperature, score, trained, write_bundle

from musictx.config.app import parse_options
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import replacing
from musictx.model.bundle import save_bundle
from musictx.tokenizers import Tokenizer

STEPS, LONG_STEPS = 1500, 200  # steps with windows of 512, then of 1,024
PLAIN = 0.4  # share of windows without a gap
FILL = {"fill_steps": STEPS, "fill_long_steps": LONG_STEPS, "plain_share": PLAIN}
TAUGHT = ["objective=infill", f"objective_settings={{plain: {PLAIN}}}", *COMMON]


def in_time(source: Path, tokenizer: Tokenizer, target: Path) -> Path:
    """The same model with its clock in sixteenths instead of tokens: frequencies per sixteenth, the same angles."""
    if not target.exists():
        model, header = load(source)
        assert tokenizer.pace is not None  # a grid has one
        timed = type(model)(replace(model.config, clock="time"), torch.from_numpy(tokenizer.pace))
        state = {
            name: tensor + math.log(tokenizer.group) if name.endswith("log_frequency") else tensor
            for name, tensor in model.state_dict().items()
        }
        timed.load_state_dict(state | {"pace": timed.pace})
        save_bundle(target, timed, replace(header, model=header.model | {"clock": "time"}))
    return target


def learn(init: Path, store: Store, folder: Path, overrides: list[str]) -> Path:
    """Trains both stages; returns the second one's bundle."""
    bundle = init
    for experiment, steps, warmup, validate_every in (("jsb", STEPS, 50, 250), ("jsb_whole", LONG_STEPS, 10, 100)):
        folder = folder.with_name(f"{folder.name}-{steps}")
        words = [f"experiment={experiment}", *TAUGHT, f"data.path={store.path}", f"out={folder}"]
        words += [f"trainer.max_steps={steps}", f"trainer.warmup_steps={warmup}", f"init_from={bundle}"]
        words += [f"trainer.validate_every={validate_every}", "model.dropout=0.2", *overrides]
        bundle = trained(*words)
    return bundle


def name_of(recipe: dict[str, Any]) -> str:
    return f"dropout-{recipe['dropout']:g}-{recipe['steps']}-{recipe['long_steps']}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("outputs/stores/jsb"))
    parser.add_argument(
        "--chorales", type=Path, default=Path("outputs/chorales"), help="studies/chorales.py's runs and choice"
    )
    parser.add_argument("--out", type=Path, default=Path("outputs/infill"), help="all runs")
    parser.add_argument("--bundle", type=Path, help="default: chorale.safetensors in --out")
    parser.add_argument("--results", type=Path, help="a folder for the figures; default: --out")
    parser.add_argument("--test", action="store_true", help="read the test split after all else")
    args, overrides = parse_options(parser, sys.argv[1:])
    results, bundle = args.results or args.out, args.bundle or args.out / "chorale.safetensors"
    found = args.chorales / "chorale-selection.json"
    if not found.exists():
        raise UserError(f"{found} does not exist: run studies/chorales.py --out {args.chorales} first")
    recipe: dict[str, Any] = json.loads(found.read_text())["recipes"][0]  # the best
    official, selection = Store(args.store, "chorale"), Store(args.chorales / "selection", "chorale")
    taught = {}
    args.out.mkdir(parents=True, exist_ok=True)
    for kind, folder, store in (("selection", "compared", selection), ("final", "final", official)):
        source = args.chorales / folder / name_of(recipe) / "model.safetensors"
        init = in_time(source, official.tokenizer, args.out / f"{kind}.safetensors")
        taught[kind] = learn(init, store, args.out / kind, overrides)
    model, _ = load(taught["selection"])
    nll = nll_by_temperature(model, selection.split("validation"), official.tokenizer)
    best = min(range(len(nll)), key=lambda k: nll[k])
    row = recipe | {"temperature": TEMPERATURES[best], "nll": nll[best], "nll_at_1": nll[TEMPERATURES.index(1.0)]}
    costs = nll[best] - recipe["nll"]
    print(f"on {len(selection.split('validation'))} held-out pieces plain continuation costs {costs:+.4f}")
    results.mkdir(parents=True, exist_ok=True)
    with replacing(results / "infill-selection.json") as partial:
        partial.write_text(json.dumps(row | {"before": recipe["nll"], **FILL}, indent=1), encoding="utf-8")
    write_bundle(taught["final"], row, selection, official, bundle)
    for split in ("validation", "test") if args.test else ("validation",):
        score(bundle, official, split, results / f"chorale-{split}.json")


if __name__ == "__main__":
    with in_one_line():
        main()
