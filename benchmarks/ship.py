"""The model inside the package, made anew from a run of `musictx train experiment=jsb_whole`.

    python data_prep/jsb.py out=outputs/stores/jsb
    musictx train experiment=jsb out=outputs/jsb
    musictx train experiment=jsb_whole init_from=outputs/jsb/model.safetensors out=outputs/jsb_whole
    python benchmarks/ship.py outputs/jsb_whole/model.safetensors musictx/bundles/chorale.safetensors

Weights are stored as float16, and the seed beside it is the beginning of a test piece, which no training has seen.
A model that is trained past its best is too sure of itself: its logits are divided by the one temperature that
validation likes best, once and for all (Guo et al. 2017, On Calibration of Modern Neural Networks, section 4.2).
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F

from musictx.app import guarded
from musictx.data.dataset import batch_segments, scoring_segments
from musictx.data.store import Store
from musictx.errors import BundleError
from musictx.evaluation.likelihood import negative_log_likelihood
from musictx.model.bundle import load_bundle, save_bundle
from musictx.model.transformer import Transformer
from musictx.notes.write import write_midi

SEED_STEPS = 32  # sixteenths: two bars
LOOK_BACK = 512  # tokens: with the 1,024 of its last training endless music came to rest (docs/log.md)
TEMPERATURES = [1 + k / 100 for k in range(-10, 31)]


@torch.inference_mode()
def calibrate(model: Transformer, store: Store) -> float:
    """Divides the model's logits by the temperature with the lowest NLL on validation, and returns it."""
    vocab = store.tokenizer.vocab
    nats = torch.zeros(len(TEMPERATURES), dtype=torch.float64)
    segments = scoring_segments(store.split("validation"), store.tokenizer, None, model.cycle)
    for ids in batch_segments(segments, vocab.pad, 4096):
        logits, targets = model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
        for k, temperature in enumerate(TEMPERATURES):
            nats[k] += F.cross_entropy(logits / temperature, targets, ignore_index=vocab.pad, reduction="sum").double()
    best = TEMPERATURES[int(nats.argmin())]
    if best in (TEMPERATURES[0], TEMPERATURES[-1]):
        print(f"warning: {best} is the last temperature that was tried: this model is far from calibrated")
    model.norm.weight /= best  # the head that follows has no bias, so this is the same for every logit
    model.norm.bias /= best
    return best


def main(source: str, target: str, store: str = "outputs/stores/jsb") -> None:
    model, header = load_bundle(Path(source))
    if not isinstance(model, Transformer):
        raise BundleError(f"{source} is no Transformer: the bundle of experiment=jsb_whole is wanted here")
    opened = Store(Path(store), header.tokenizer)
    temperature = calibrate(model, opened)
    model.load_state_dict({name: x.half().float() for name, x in model.state_dict().items()})  # as it will be read
    likelihood = negative_log_likelihood(model, opened.split("validation"), opened.tokenizer, None)
    notes = {key: value for key, value in header.notes.items() if key != "name"}
    notes |= {"made_by": "benchmarks/ship.py", "calibrated": temperature}
    settings = header.model | {"trained_length": min(LOOK_BACK, model.window)}
    header = replace(header, model=settings, val_nll=likelihood.nll, notes=notes)
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    save_bundle(Path(target), model, header, torch.float16)
    first = opened.split("test")[0]
    write_midi(opened.tokenizer.decode(first[: SEED_STEPS * opened.tokenizer.group]), Path(target).with_suffix(".mid"))
    size_mb = Path(target).stat().st_size / 1e6
    print(f"{target}: {size_mb:.1f} MB, logits divided by {temperature:.2f}, validation NLL {likelihood.nll:.4f}")
    print(f"its seed is beside it: {Path(target).with_suffix('.mid')}")


if __name__ == "__main__":
    guarded(lambda: main(*sys.argv[1:]))
