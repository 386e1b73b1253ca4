"""The piano model inside the package, from the archives to the bundle. If it was stopped, the same command resumes.

    python studies/piano.py --archive maestro-v3.0.0-midi.zip --asap asap.zip --pop pop909.zip
    python studies/piano.py --archive … --asap … --pop … --out outputs/trial trainer.max_steps=2    # a trial

A model learns MAESTRO, ASAP and POP909 together, in windows of 2,048 ids, a quarter of them with a gap. It takes nine
minutes of an H100, 338 million ids. The rate is constant in the first stage and falls to zero in the last, which got as
many steps as fitted into a lent time. The bundle has the last weights as float16. Means with the weights before were
no better on an hour of MAESTRO's validation (`git show b07c1d7:studies/piano_bundle.py`). The test split is read only
with `--test`, once for the same tensors. Settings of `musictx train` (key=value) are for both stages, so
`trainer.accelerator=cpu trainer.compile=false` make a trial without a GPU.

Afterwards `alive.py` and `guidance.py` choose filter and guidance and write them into the header of a copy. A person
copies that into the package, and `evidence.py` makes all figures and pictures.
"""

from functools import partial
from pathlib import Path

from bundles import OWN, evaluated, score_all, trained, write_bundle
from piano_music import all_three, stores
from shared import asked, options

from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.model.bundle import load_bundle

STAGES = ("piano_gpu", "piano_gpu_falling")  # conf/experiment
SEGMENT = 2048  # ids in an input that is scored


def score_piano(bundle: Path, maestro: Store, results: Path, test: bool) -> None:
    score_all(bundle, maestro, results, "piano", test, partial(evaluated, bundle, maestro, SEGMENT))


def main() -> None:
    names = ("archive", "asap", "pop", "out", "test")
    args, overrides = asked(options(__doc__, *names, out=Path("outputs/piano")), *OWN)
    of = stores({"maestro": args.archive, "asap": args.asap, "pop": args.pop}, args.out / "stores")
    every = all_three(**of, path=args.out / "stores/all")
    bundle, citation = args.out / "piano.safetensors", every.manifest.corpus.citation
    model, header = load_bundle(trained(STAGES, every, args.out, None, overrides))
    write_bundle(bundle, model, header, every, made_by="studies/piano.py", citation=citation)
    score_piano(bundle, of["maestro"], args.out, args.test)


if __name__ == "__main__":
    with in_one_line():
        main()
