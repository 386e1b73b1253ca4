"""The chorale model inside the package, from the store to the bundle. If it was stopped, the same command resumes.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/infill.py                                           # hours; a trial: trainer.max_steps=2
    python studies/infill.py --test

Four stages: windows of 512 ids, then of 1,024, then both again with gaps. All four run twice, and each keeps its last
weights. First they learn 209 of the 229 training pieces, and the 20 others choose the one temperature that fits them
best (Guo et al. 2017, On Calibration of Modern Neural Networks, section 4.2). Then they learn all 229: these weights,
with that temperature, are the model. The official validation is read at the end and chooses no weights; the kind of
recipe was found on it. Steps and dropout were the best of six on the 20 (`git show b07c1d7:studies/chorales.py`). The
test split is read only with `--test`, once for a bundle. Settings of `musictx train` (key=value) are for all stages.

Before the gaps, the clock becomes musical time. On a grid every token takes the same time, so the only change is that
a token can have the time at which it sounds. The bundle has float16. Its seed is beside it: the beginning of a test
piece, which no training has seen. A person copies both, and the figures, to their places.
"""

import math
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from bundles import OWN, chorales, evaluated, score_all, trained, write_bundle
from shared import asked, options, selection_store

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import BundleError
from musictx.model.build import build_model, kind_of
from musictx.model.bundle import load_bundle, save_bundle
from musictx.music.write import write_midi
from musictx.terminal import say
from musictx.tokenizers import Tokenizer

PLAIN, GAPS = ("jsb", "jsb_whole"), ("jsb_fill", "jsb_fill_whole")  # conf/experiment
TEMPERATURES = [round(1 + k / 100, 2) for k in range(-10, 31)]
SEED_STEPS = 32  # sixteenths: two bars
LOOK_BACK = 512  # tokens: with the 1,024 of its last training, endless music came to rest


def in_time(source: Path, tokenizer: Tokenizer, target: Path) -> Path:
    """The same model with its clock in sixteenths instead of tokens: frequencies per sixteenth, the same angles. Raises
    BundleError for a model without what that and the temperature need."""
    if not target.exists():
        model, header = load_bundle(source)
        config: Any = model.config
        if kind_of(model) != "transformer" or config.position != "relative_fourier" or config.norm == "post":
            raise BundleError(f"{source} is not a Transformer with Fourier positions and a last norm: leave model= out")
        assert tokenizer.pace is not None  # a grid has one
        timed: Any = build_model(replace(config, clock="time"), torch.from_numpy(tokenizer.pace))
        state = {
            name: tensor + math.log(tokenizer.group) if name.endswith("log_frequency") else tensor
            for name, tensor in model.state_dict().items()
        }
        timed.load_state_dict(state | {"pace": timed.pace})
        save_bundle(target, timed, replace(header, model=header.model | {"clock": "time"}))
    return target


def learn(store: Store, folder: Path, overrides: list[str]) -> Path:
    """All four stages; returns the last one's bundle."""
    plain = trained(PLAIN, store, folder, None, overrides)
    timed = in_time(plain, store.tokenizer, folder / "in-time.safetensors")
    return trained(GAPS, store, folder, timed, overrides)


@torch.no_grad()
def divide_logits(model: Any, temperature: float) -> Any:
    """The model with its logits divided, in the weights: the head after the last norm has no bias."""
    divided = deepcopy(model)
    divided.norm.weight /= temperature
    divided.norm.bias /= temperature
    return divided


def nll_of(model: Any, store: Store) -> float:
    return negative_log_likelihood(model, store.split("validation"), store.tokenizer, None).nll


def best_temperature(model: Any, store: Store) -> float:
    """The one of `TEMPERATURES` with the lowest nats a token of whole validation pieces."""
    return min(TEMPERATURES, key=lambda temperature: nll_of(divide_logits(model, temperature), store))


def main() -> None:
    args, overrides = asked(options(__doc__, "store", "out", "test", out=Path("outputs/infill")), *OWN)
    bundle, official = args.out / "chorale.safetensors", chorales(args.store)
    selection = selection_store(official, args.out / "selection")
    compared, _ = load_bundle(learn(selection, args.out / "compared", overrides))
    temperature = best_temperature(compared, selection)
    model, header = load_bundle(learn(official, args.out / "final", overrides))
    notes: dict[str, Any] = {"made_by": "studies/infill.py", "calibrated": temperature}
    held_out = selection.split("validation").names
    where = f"{len(held_out)} training pieces, and then trained on too; the official splits chose no weights"
    notes |= {"fitted": f"temperature on {where}", "held_out": held_out}
    notes |= {"val_nll_uncalibrated": nll_of(model, official)}
    say(f"temperature {temperature:.2f}; official validation {notes['val_nll_uncalibrated']:.4f} without it")
    header = replace(header, model=header.model | {"trained_length": LOOK_BACK})
    write_bundle(bundle, divide_logits(model, temperature), header, official, **notes)
    tokenizer, first = official.tokenizer, official.split("test")[0]
    write_midi(tokenizer.decode(first[: SEED_STEPS * tokenizer.group]), bundle.with_suffix(".mid"))
    measure = partial(evaluated, bundle, official, None)
    score_all(bundle, official, args.out, "chorale", args.test, measure)


if __name__ == "__main__":
    with in_one_line():
        main()
