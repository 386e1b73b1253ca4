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
from piano_bundle import score_all
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.files import replacing
from musictx.model.packaged import bundle_path

ROOT = Path(__file__).parents[1]
RESULTS, PICTURES = Path("studies/results"), Path("docs/img")
MAESTRO, POP = Path("outputs/stores/maestro"), Path("outputs/stores/pop")
MUSIC = Path("outputs/evidence")  # what is made, and MIDI files to hear
GUIDE = f"studies/guidance.py --store {MAESTRO} --models piano --strengths 0.5 1 --draws 2"
GUIDE += f" --json {RESULTS}/guidance/piano.json pieces=24 seed_seconds=10 length_seconds=15 span_seconds=5"
FILL = f"studies/fill.py --store {MAESTRO} --bundle piano --gaps 1 --scored 32 --pieces 16 --weights bfloat16"
GENERATE = "-m musictx generate bundle=piano overwrite=true variations=3 png=true"
COMMANDS: dict[str, list[str]] = {  # words of Python's, line by line
    "likelihood": [],
    "pictures": [
        f"{GENERATE} seed_midi=elise seed_seconds=5 length_seconds=15 wav=true out={MUSIC}/elise",
        f"{GENERATE} infill=elise from_s=4 to_s=7 out={MUSIC}/fill",
    ],
    "page": ["-m pytest -q -p no:xdist tests/web/test_browser.py"],
    "fills": [f"{FILL} --out {MUSIC}/fill-piano.json"],
    "guidance": [GUIDE],
    "alive": [f"studies/alive.py --stores {MAESTRO} {POP} --copies --out {MUSIC}/alive.json"],  # the longest
}
SHOWN = {  # where the files that a part makes in `MUSIC` are shown
    "pictures": {"elise/elise.png": PICTURES / "elise.png", "fill/elise.png": PICTURES / "fill-piano.png"},
    "page": {name: PICTURES / name for name in ("serve-attention.png", "serve-harmonise.png")},
    "fills": {"fill-piano.png": RESULTS / "fill-piano.png"},
    "alive": {"alive.json": RESULTS / "alive.json"},
}


def call(words: list[str]) -> None:
    """Runs a command of Python's. Exits the script if the command fails."""
    print("$", *words, flush=True)
    if status := subprocess.run([sys.executable, *words], check=False).returncode:
        sys.exit(status)


def place(made: Path, shown: Path) -> None:
    with replacing(shown) as partial:
        shutil.copy(made, partial)


def run() -> None:
    parser = options(__doc__, "archive", "pop", "test")
    parser.add_argument("--only", nargs="+", choices=COMMANDS, default=COMMANDS, help="default: all parts")
    args = parser.parse_args()
    archives = {"maestro": (args.archive.absolute(), MAESTRO), "pop909": (args.pop.absolute(), POP)}
    os.chdir(ROOT)
    for script, (archive, store) in archives.items():
        if not (store / "manifest.json").exists():
            call([f"data_prep/{script}.py", f"path={archive}", f"out={store}"])
    MUSIC.mkdir(parents=True, exist_ok=True)
    os.environ["MUSICTX_SHOTS"] = str(MUSIC.absolute())  # where the browser puts its pictures
    for name in args.only:
        for words in COMMANDS[name]:
            call(words.split())
        for made, shown in SHOWN.get(name, {}).items():
            place(MUSIC / made, shown)
        if name == "likelihood":
            score_all(bundle_path("piano"), MAESTRO, RESULTS, args.test)
        if name == "guidance" and args.test:
            call([*GUIDE.split(), "--test"])
        if name == "pictures":
            sound, rate = soundfile.read(MUSIC / "elise/elise-1.wav")
            with replacing(PICTURES / "elise-1.flac") as partial:
                soundfile.write(partial, sound, rate, format="FLAC")


if __name__ == "__main__":
    with in_one_line():
        run()
