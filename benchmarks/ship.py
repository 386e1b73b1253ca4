"""The model inside the package, made anew from a run of `musictx train experiment=jsb`.

    python data_prep/jsb.py out=outputs/stores/jsb
    musictx train experiment=jsb out=outputs/jsb
    python benchmarks/ship.py outputs/jsb/model.safetensors musictx/bundles/chorale.safetensors

Weights are stored as float16, and the seed beside it is the beginning of a test piece, which no training has seen.
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch

from musictx.data.store import Store
from musictx.model.bundle import load_bundle, save_bundle
from musictx.notes.write import write_midi

SEED_STEPS = 32  # sixteenths: two bars


def main(source: str, target: str, store: str = "outputs/stores/jsb") -> None:
    model, header = load_bundle(Path(source))
    notes = {key: value for key, value in header.notes.items() if key != "name"}
    header = replace(header, notes=notes | {"made_by": "benchmarks/ship.py"})
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    save_bundle(Path(target), model, header, torch.float16)
    opened = Store(Path(store), header.tokenizer)
    first = opened.split("test")[0]
    write_midi(opened.tokenizer.decode(first[: SEED_STEPS * opened.tokenizer.group]), Path(target).with_suffix(".mid"))
    size_mb = Path(target).stat().st_size / 1e6
    print(f"{target}: {size_mb:.1f} MB, validation NLL {header.val_nll:.4f}; its seed is beside it")


if __name__ == "__main__":
    main(*sys.argv[1:])
