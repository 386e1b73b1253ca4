"""What goes with the melody of a pop song: four models of one size and one budget of CPU time write the rest of POP909.

    musictx prepare pop909 tokenizer=performance_melody out=outputs/stores/pop909_melody validation_fraction=0.02
    python studies/accompany_pop.py                       # stopped at any moment, the same command resumes
    python studies/accompany_pop.py --cpu-s 20 --out outputs/trial --json outputs/trial.json

As studies/accompany.py does it with chorales; scored are inputs of `SEGMENT` ids of the test split, nats a token of
the rest. All but the recurrent one count seconds, in themselves and between melody and rest; the decoder that reads
the melody first has its clock go on behind it, so that what sounds together is a melody's length apart for it.
"""

import argparse
import sys
from pathlib import Path

from accompany import QUIET, Task, all_trained, keep, rows
from budget import PROBE_STEPS

from musictx.config.app import in_one_line, parse_options

SEGMENT = 512
WIDTH = ["model.d_model=128", "model.n_heads=4", "model.d_ff=352"]
DECODER = ["model=jsb", "model.clock=time", *WIDTH, "model.n_layers=6"]
POP909 = Task(
    {
        "encoder-decoder": ["objective=conditional", *WIDTH],
        "recurrent encoder-decoder": ["model=recurrent_encoder_decoder", "model.d_model=240"],
        "decoder, melody first": ["objective=melody_first", *DECODER],
        "decoder, no melody": ["objective=lower_voices", *DECODER],
    },
    [
        "experiment=pop909",
        *QUIET,
        f"data.length={SEGMENT}",
        f"data.segment={SEGMENT}",
        "model.dropout=0",
        "trainer.precision=bf16-mixed",
        "trainer.optimizer=muon",
        "trainer.lr=5e-3",
        "trainer.schedule=hold",
        "trainer.weight_decay=0.1",
        "trainer.max_epochs=1000",
        "trainer.keep=last",
    ],
    ("test",),
    "performance-melody",
    SEGMENT,
    "nats a token of what goes with a melody, held-out pop songs (dots: seeds)",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=Path, default=Path("outputs/stores/pop909_melody"))
    parser.add_argument("--out", type=Path, default=Path("outputs/accompany_pop"), help="all runs")
    parser.add_argument("--cpu-s", type=float, default=3600.0, help="CPU seconds of each training")
    parser.add_argument("--random-seeds", type=int, default=1)
    parser.add_argument("--json", type=Path, default=Path("studies/results/accompany-pop.json"))
    args, overrides = parse_options(parser, sys.argv[1:])
    args.task, args.overrides = POP909, overrides
    table = rows(all_trained(args), args)
    keep({"cpu_s": args.cpu_s, "probe_steps": PROBE_STEPS, "settings": args.overrides, "models": table}, args)
    print(f"{args.json}: the table as JSON, and beside it as a picture")


if __name__ == "__main__":
    in_one_line(main)
