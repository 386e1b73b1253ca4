"""The piano model inside the package, from the archives to the bundle. If it was stopped, the same command resumes.

    python studies/piano.py --archive maestro-v3.0.0-midi.zip --asap asap.zip --pop pop909.zip --device cuda
    python studies/piano.py --archive … --asap … --pop … --fraction 0.001 --out outputs/trial    # a trial of minutes

A model learns MAESTRO, ASAP and POP909 together, a quarter of the windows with a gap. On a GPU it learns in windows of
2,048 ids, on a CPU in windows that grow. In the last stage the rate falls to zero. The bundle is a mean of the models
before and after this stage; the rule of `piano_bundle.py` takes the shares by validation. The test split is read only
with `--test`, once for the same tensors. Settings of `musictx train` (key=value) are for all stages.

Afterwards `alive.py` and `guidance.py` choose filter and guidance, and `evidence.py` makes all figures and pictures.
The packaged model was made by `--device cuda`: nine minutes of an H100, 338 million ids. The last stage got as many
steps as fitted into a lent time, and shares were tried on weights in float16. The stages of a CPU were not run whole.
An hour of MAESTRO's validation is scored in training, and takes part in the choice of the shares. `OMP_NUM_THREADS`
sets how many cores a CPU gives.
"""

from pathlib import Path
from typing import NamedTuple

from chorales import trained
from piano_bundle import mean_by_validation, score_all
from piano_music import all_three, stores
from shared import asked, options

from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import UserError


class Stage(NamedTuple):
    experiment: str
    length: int  # ids in a window
    batch: int  # windows
    steps: int
    decay_share: float = 0.0  # share of the steps, at the end, in which the learning rate falls


STAGES = {
    "cpu": (  # 8,192 ids a step
        Stage("piano", 512, 16, 13_000),
        Stage("piano", 1024, 8, 4_000),
        Stage("piano", 2048, 4, 3_000, 1.0),
    ),
    "cuda": (  # 65,536 ids a step
        Stage("piano_gpu", 2048, 32, 2_400),
        Stage("piano_gpu", 2048, 32, 2_750, 1.0),
    ),
}


def words_of(stage: Stage, store: Path, out: Path, before: Path | None, fraction: float = 1.0) -> list[str]:
    """The words of `musictx train`. `before`: a model to begin with."""
    steps = max(round(stage.steps * fraction), 2)
    words = [f"experiment={stage.experiment}", f"data.path={store}", f"out={out}", "trainer.progress_bar=false"]
    words += [f"data.length={stage.length}", f"data.segment={stage.length}", f"trainer.batch_size={stage.batch}"]
    words += [f"trainer.max_steps={steps}", f"trainer.warmup_steps={min(100, steps // 10)}"]
    words += [f"trainer.decay_share={stage.decay_share}"]
    return [*words, *([] if before is None else [f"init_from={before}"])]


def main() -> None:
    names = ("archive", "asap", "pop", "out", "bundle", "results", "fraction", "test")
    parser = options(__doc__, *names, out=Path("outputs/piano"))
    parser.add_argument("--device", default="cpu", choices=list(STAGES))
    args, overrides = asked(parser)
    archives = {"maestro": args.archive, "asap": args.asap, "pop": args.pop}
    for path in archives.values():
        if not path.exists():
            raise UserError(f"{path} does not exist", "give the corpus as it was downloaded")
    of = {name: Store(path) for name, path in stores(archives, args.out / "stores").items()}
    every = all_three(of["maestro"], of["asap"], of["pop"], args.out / "stores/all")
    models: list[Path] = []
    for number, stage in enumerate(STAGES[args.device]):
        before = models[-1] if models else None
        words = words_of(stage, every, args.out / f"stage-{number}", before, args.fraction)
        print("$ musictx train", *words, *overrides, flush=True)
        models.append(trained(*words, *overrides))
    bundle, results = args.bundle or args.out / "piano.safetensors", args.results or args.out
    mean_by_validation(models[-2:], [every, of["pop"].path], every, bundle, results)
    score_all(bundle, of["maestro"].path, results, args.test)


if __name__ == "__main__":
    with in_one_line():
        main()
