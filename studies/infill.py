"""The chorale model inside the package: those of studies/chorales.py learn to fill gaps too; the same command resumes.

    python studies/infill.py --test --bundle musictx/bundles/chorale.safetensors   # hours; a trial: --fraction 0.005

First `chorales.py` makes its two models, unless they are there. Both keep learning with `experiment=jsb_fill`. The
first learns 209 training pieces; its temperature comes from the 20 others. The second learns all 229 and is in the
package. Before, their clock becomes musical time. On a grid every token takes the same time, so the only change is that
a token can have the time at which it sounds. Official validation chooses no weights, but the kind of recipe was found
on it. The test split is read only with `--test`.
"""

import math
from dataclasses import replace
from pathlib import Path

import torch
from chorales import COMMON, NAMES, TEMPERATURES, load, made, nll_by_temperature, score_all, trained, write_bundle
from shared import asked, options

from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.files import write_json
from musictx.model.bundle import save_bundle
from musictx.tokenizers import Tokenizer

STAGES = ("jsb_fill", "jsb_fill_whole")  # conf/experiment


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
    for stage in STAGES:
        words = [f"experiment={stage}", *COMMON, f"data.path={store.path}", f"out={folder / stage}"]
        init = trained(*words, f"init_from={init}", *overrides)
    return init


def main() -> None:
    parser = options(__doc__, *NAMES, out=Path("outputs/infill"))
    parser.add_argument("--chorales", type=Path, default=Path("outputs/chorales"), help="the runs of chorales.py")
    args, overrides = asked(parser)
    bundle, official = args.bundle or args.out / "chorale.safetensors", Store(args.store, "chorale")
    recipe, selection, final = made(official, args.chorales, args.fraction, overrides)
    compared = args.chorales / "compared" / final.parent.name / "model.safetensors"
    args.out.mkdir(parents=True, exist_ok=True)
    taught = {}
    for kind, source, store in (("compared", compared, selection), ("final", final, official)):
        init = in_time(source, official.tokenizer, args.out / f"{kind}.safetensors")
        taught[kind] = learn(init, store, args.out / kind, overrides)
    model, _ = load(taught["compared"])
    nll = nll_by_temperature(model, selection.split("validation"), official.tokenizer)
    best = min(range(len(nll)), key=lambda k: nll[k])
    row = recipe | {"temperature": TEMPERATURES[best], "nll": nll[best], "nll_at_1": nll[TEMPERATURES.index(1.0)]}
    more = nll[best] - recipe["nll"]
    print(f"on {len(selection.split('validation'))} held-out pieces plain continuation has {more:+.4f} nats a token")
    write_json(args.out / "infill-selection.json", row | {"before": recipe["nll"]})
    write_bundle(taught["final"], row, selection, official, bundle, "studies/infill.py")
    score_all(bundle, official, args.results or args.out, args.test)


if __name__ == "__main__":
    with in_one_line():
        main()
