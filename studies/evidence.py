"""Makes all that depends on the packaged piano model again: figures, music, pictures, sound, pictures of the page.

    python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip
    python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --only likelihood --test
    python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --test --place

For whoever puts a new `musictx/bundles/piano.safetensors` in place, with its filter and its guidance in its header; and
for whoever wants to see its figures again. Each part is commands that a person could give; one that fails stops the
rest. `--only` makes some parts. All of them take about five hours of two cores, most of it for `alive`. `--test` reads
the test split too, once for the same weights. All lies in `--out`; `--place` also copies it to where the project shows
it, over what is there. `tests/test_packaged.py` then names each figure of the card (`docs/results/models.md`) that is
another. Pictures of the page need Chromium. `guidance` takes a store outputs/stores/quantised: of the set that
`quantised.py` makes, by `musictx prepare folder outputs/quantised out=outputs/stores/quantised`."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import soundfile
from pages import ROOT
from piano import score_piano
from piano_music import stores
from raw_music import GUIDE, PLAY
from report import RESULTS
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.errors import UserError
from musictx.model.packaged import bundle_path
from musictx.terminal import say

PICTURES = ROOT / "docs/img"
GENERATE = "python -m musictx generate bundle=piano overwrite=true variations=3 png=true"
GUIDED = GUIDE.replace("outputs/stores/maestro", "{out}/stores/maestro").replace(
    "outputs/stores/pop", "{out}/stores/pop"
)
GUIDED += " --out {out}/guidance"
COMMANDS: dict[str, list[str]] = {
    "likelihood": [],
    "pictures": [
        f"{GENERATE} seed_midi=elise seed_seconds=5 length_seconds=15 wav=true out={{out}}/elise",
        f"{GENERATE} infill=elise from_s=4 to_s=7 out={{out}}/fill",
        "python -m musictx accompany chorale overwrite=true variations=3 png=true out={out}/harmonised",
        "python -m musictx jam input=elise overwrite=true output={out}/session.mid",
        "python -m musictx render {out}/session.mid overwrite=true out={out}/session.png new_from=11",
    ],
    "page": ["python -m pytest -q -p no:xdist tests/web/test_browser.py"],
    "guidance": [GUIDED],
    "alive": [PLAY.replace("outputs/", "{out}/") + " --out {out}/alive"],  # the longest
}
TESTED = ("likelihood", "guidance")  # the parts that can read the test split
SHOWN = {  # where the files that a part makes are shown
    "likelihood": {f"piano-{split}.json": RESULTS / f"piano-{split}.json" for split in ("validation", "test")},
    "pictures": {
        "elise/elise.png": PICTURES / "elise.png",
        "elise/elise-1.flac": PICTURES / "elise-1.flac",
        "fill/elise.png": PICTURES / "fill-piano.png",
        "harmonised/chorale.png": PICTURES / "accompany.png",
        "session.png": PICTURES / "jam.png",
    },
    "page": {name: PICTURES / name for name in ("serve-attention.png", "serve-harmonise.png")},
    "guidance": {"guidance/chosen.json": RESULTS / "guidance/three.json"},
    "alive": {"alive/alive.json": RESULTS / "alive.json"},
}


def call(command: str, out: Path) -> None:
    """Runs a command of Python's. Exits the script if the command fails."""
    words = [word.format(out=out) for word in shlex.split(command)]
    say(f"$ {shlex.join(words)}", flush=True)
    if status := subprocess.run([sys.executable, *words[1:]], check=False).returncode:
        sys.exit(status)


def place(part: str, out: Path, test: bool) -> None:
    """Copies what a part has made to where it is shown."""
    for made, shown in SHOWN[part].items():
        if test or made != "piano-test.json":  # which may be there of another model
            shutil.copyfile(out / made, shown)
            say(f"{shown}: from {out / made}")


def main() -> None:
    parser = options(__doc__, "archive", "pop", "out", "test", out=Path("outputs/evidence"))
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=[*COMMANDS], help="default: all parts")
    parser.add_argument("--place", action="store_true", help="copy all into studies/results and docs/img too")
    args = parser.parse_args()
    if args.test and not {*TESTED} & {*args.only}:
        raise UserError(f"--test: {', '.join(args.only)} has no test split", f"add --only {' '.join(TESTED)}")
    of = stores({"maestro": args.archive, "pop": args.pop}, args.out / "stores")
    os.environ["MUSICTX_SHOTS"] = str(args.out.absolute())  # where the browser puts its pictures
    for part in args.only:
        for command in COMMANDS[part]:
            call(command, args.out)
        if part == "likelihood":
            score_piano(bundle_path("piano"), of["maestro"], args.out, args.test)
        if part == "guidance" and args.test:
            call(f"{GUIDED} --test", args.out)
        if part == "pictures":
            sound, rate = soundfile.read(args.out / "elise/elise-1.wav")
            soundfile.write(args.out / "elise/elise-1.flac", sound, rate)
        if args.place:
            place(part, args.out, args.test)


if __name__ == "__main__":
    with in_one_line():
        main()
