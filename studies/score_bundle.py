"""The model of scores, from a store to the bundle. If it was stopped, the same command resumes.

    python studies/score_bundle.py --store outputs/score_music/store
    python studies/score_bundle.py --store outputs/score_music/store --out outputs/trial trainer.max_steps=2

`score_music.py` makes the store. The model learns windows of 1,024 ids in all keys, a quarter of them with a gap, at a
constant rate, and in the second stage at one that falls to zero. The bundle has the last weights as float16. The test
split is read only with `--test`, once for the same tensors.
"""

from functools import partial
from pathlib import Path

from bundles import OWN, evaluated, score_all, trained, write_bundle
from shared import asked, options

from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.model.bundle import load_bundle
from musictx.tokenizers.score import ScoreTokenizer

STAGES = ("score", "score_falling")  # conf/experiment
SEGMENT = 1024  # ids in an input that is scored


def main() -> None:
    args, overrides = asked(options(__doc__, "store", "out", "test", out=Path("outputs/score_bundle")), *OWN)
    store, bundle = Store(args.store, ScoreTokenizer.name), args.out / "score.safetensors"
    model, header = load_bundle(trained(STAGES, store, args.out, None, overrides))
    citation = store.manifest.corpus.citation
    write_bundle(bundle, model, header, store, made_by="studies/score_bundle.py", citation=citation)
    score_all(bundle, store, args.out, "score", args.test, partial(evaluated, bundle, store, SEGMENT))


if __name__ == "__main__":
    with in_one_line():
        main()
