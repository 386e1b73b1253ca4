"""Makes all that depends on the packaged piano model again: figures, music, pictures, sound, pictures of the page.

    python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip
    python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --only likelihood --test

For whoever puts a new `musictx/bundles/piano.safetensors` in place, with its filter and its guidance in its header.
Each part is commands that a person could give; one that fails stops the rest. `--only` makes some parts again. All of
them take about five hours of two cores, most of it for `alive`. `--test` reads the test split too, once for the same
weights. `tests/test_packaged.py` then names each figure of the card (`docs/models.md`) that is another. Pictures of the
page need Chromium.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import soundfile
from piano import score_piano
from piano_music import stores
from report import GUIDE, PLAY
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.model.packaged import bundle_path

RESULTS, PICTURES = Path("studies/results"), Path("docs/img")
MADE = Path("outputs/evidence")  # what is made, and MIDI files to hear
GENERATE = "python -m musictx generate bundle=piano overwrite=true variations=3 png=true"
COMMANDS: dict[str, list[str]] = {
    "likelihood": [],
    "pictures": [
        f"{GENERATE} seed_midi=elise seed_seconds=5 length_seconds=15 wav=true out={MADE}/elise",
        f"{GENERATE} infill=elise from_s=4 to_s=7 out={MADE}/fill",
    ],
    "page": ["python -m pytest -q -p no:xdist tests/web/test_browser.py"],
    "guidance": [GUIDE],
    "alive": [f"{PLAY} --out {MADE}/alive.json"],  # the longest
}
SHOWN = {  # where the files that a part makes in `MADE` are shown
    "pictures": {"elise/elise.png": PICTURES / "elise.png", "fill/elise.png": PICTURES / "fill-piano.png"},
    "page": {name: PICTURES / name for name in ("serve-attention.png", "serve-harmonise.png")},
    "alive": {"alive.json": RESULTS / "alive.json"},
}


def call(command: str) -> None:
    """Runs a command of Python's. Exits the script if the command fails."""
    print("$", command, flush=True)
    if status := subprocess.run([sys.executable, *command.split()[1:]], check=False).returncode:
        sys.exit(status)


def main() -> None:
    parser = options(__doc__, "archive", "pop", "test")
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=COMMANDS, help="default: all parts")
    args = parser.parse_args()
    of = stores({"maestro": args.archive, "pop": args.pop}, Path("outputs/stores"))
    MADE.mkdir(parents=True, exist_ok=True)
    os.environ["MUSICTX_SHOTS"] = str(MADE.absolute())  # where the browser puts its pictures
    for name in args.only:
        for command in COMMANDS[name]:
            call(command)
        for made, shown in SHOWN.get(name, {}).items():
            shutil.copy(MADE / made, shown)
        if name == "likelihood":
            score_piano(bundle_path("piano"), of["maestro"], RESULTS, args.test)
        if name == "guidance" and args.test:
            call(f"{GUIDE} --test")
        if name == "pictures":
            sound, rate = soundfile.read(MADE / "elise/elise-1.wav")
            soundfile.write(PICTURES / "elise-1.flac", sound, rate)


if __name__ == "__main__":
    with in_one_line():
        main()
