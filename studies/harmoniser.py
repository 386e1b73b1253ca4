"""The harmoniser inside the package, from the store to the bundle. If it was stopped, the same command resumes.

    python data_prep/jsb.py out=outputs/stores/jsb
    python studies/harmoniser.py                          # 70 minutes of a core; a trial: trainer.max_steps=2
    python studies/harmoniser.py --test

Both stages learn the training split, `experiment=harmoniser` and then `harmoniser_whole`, and keep the weights of the
best official validation. The figures are nats a token of Bach's own voices, for each set of voices that may be given.
The test split is read only with `--test`, once for a bundle. Settings of `musictx train` (key=value) are for both
stages. The bundle's weights are float16.
"""

from functools import partial
from pathlib import Path

from bundles import OWN, Figures, chorales, score_all, trained, write_bundle
from shared import asked, options

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.generate.open_bundle import open_bundle
from musictx.model.bundle import load_bundle
from musictx.music.grid import VOICE_SETS
from musictx.objectives.voices import Voices

STAGES = ("harmoniser", "harmoniser_whole")  # conf/experiment
FITTED = "the training split; the official validation chose among the weights of each stage"


def by_given(bundle: Path, store: Store, name: str, out: Path) -> Figures:
    """Nats a token of the other voices, by the voices given."""
    (model, tokenizer, _), split, found = open_bundle(bundle, continues=False), store.split(name), {}
    for given in VOICE_SETS:
        nats = negative_log_likelihood(model, split, tokenizer, None, objective=Voices(tokenizer, given))
        found[given] = interval(nats.nats, nats.tokens_of)
    return {"split": name, "pieces": len(split), "per_token": found["S"], "given": found}


def main() -> None:
    args, overrides = asked(options(__doc__, "store", "out", "test", out=Path("outputs/harmoniser")), *OWN)
    bundle, store = args.out / "harmoniser.safetensors", chorales(args.store)
    model, header = load_bundle(trained(STAGES, store, args.out, None, overrides))
    write_bundle(bundle, model, header, store, made_by="studies/harmoniser.py", fitted=FITTED)
    score_all(bundle, store, args.out, "harmoniser", args.test, partial(by_given, bundle, store))


if __name__ == "__main__":
    with in_one_line():
        main()
