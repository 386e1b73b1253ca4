"""Makes all that hangs on the shipped piano model again: figures, rolls, pictures, sound, pictures of the page.

    python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip
    python studies/evidence.py --archive maestro-v3.0.0-midi.zip --pop pop909.zip --only alive --pieces 12 --draws 1

For whoever puts a new `musictx/bundles/piano.safetensors` in place, with its filter and its guidance in its header.
Each part is a command that a person could give; one that fails stops the rest. `--only` makes some parts again. All
of them take about five hours of two cores, most of it for `alive`. `--test` reads the test split too, once for the
same weights. At the end stands what the card (`docs/models.md`) has to say. Pictures of the page need Chromium.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import soundfile
from piano_bundle import score_all

from musictx.config.mistakes import in_one_line
from musictx.files import replacing
from musictx.model.packaged import bundle_path

ROOT = Path(__file__).parents[1]
RESULTS, PICTURES = ROOT / "studies/results", ROOT / "docs/img"
STORES = ROOT / "outputs/stores"
MUSIC = ROOT / "outputs/evidence"  # rolls and MIDI files to look at
BEGINNINGS = ["pieces=24", "seed_seconds=10", "length_seconds=15", "span_seconds=5"]


def prepare(args: argparse.Namespace) -> None:
    """The stores of all of MAESTRO and of POP909, unless they are there."""
    for name, script, path in (("maestro", "maestro.py", args.archive), ("pop", "pop909.py", args.pop)):
        if not (STORES / name / "manifest.json").exists():
            call([str(ROOT / "data_prep" / script), f"path={path}", f"out={STORES / name}"])


def likelihood(args: argparse.Namespace) -> None:
    score_all(bundle_path("piano"), STORES / "maestro", RESULTS, args.test)


def alive(args: argparse.Namespace) -> None:
    """The first touch, each remedy alone too."""
    stores = [str(STORES / "maestro"), str(STORES / "pop")]
    amounts = ["--pieces", str(args.pieces), "--draws", str(args.draws), "--ways", args.ways]
    study("alive.py", "--stores", *stores, *amounts, "--copies", "--out", str(MUSIC / "alive.json"))
    place(MUSIC / "alive.json", RESULTS / "alive.json")


def guidance(args: argparse.Namespace) -> None:
    words = ["--store", str(STORES / "maestro"), "--models", "piano", "--strengths", "0.5", "1", "--draws", "2"]
    for test in ([], ["--test"])[: 1 + args.test]:
        study("guidance.py", *words, *test, "--json", str(RESULTS / "guidance/piano.json"), *BEGINNINGS)


def fills(args: argparse.Namespace) -> None:
    words = ["--store", str(STORES / "maestro"), "--bundle", "piano", "--gaps", "1", "--scored", "32", "--pieces", "16"]
    study("fill.py", *words, "--weights", "bfloat16", "--out", str(MUSIC / "fill-piano.json"))
    for kind in ("json", "png"):
        place(MUSIC / f"fill-piano.{kind}", RESULTS / f"fill-piano.{kind}")


def pictures(args: argparse.Namespace) -> None:
    """The pictures and the sound of README, by the default random seed."""
    words = ["seed_midi=elise", "seed_seconds=5", "length_seconds=15", "variations=3", "png=true", "wav=true"]
    generate(*words, f"out={MUSIC / 'elise'}")
    generate("infill=elise", "from_s=4", "to_s=7", "variations=3", "png=true", f"out={MUSIC / 'fill'}")
    place(MUSIC / "elise/elise.png", PICTURES / "elise.png")
    place(MUSIC / "fill/elise.png", PICTURES / "fill-piano.png")
    sound, rate = soundfile.read(MUSIC / "elise/elise-1.wav")
    with replacing(PICTURES / "elise-1.flac") as partial:
        soundfile.write(partial, sound, rate, format="FLAC")


def page(args: argparse.Namespace) -> None:
    """What a person sees at the page, in a real browser."""
    MUSIC.mkdir(parents=True, exist_ok=True)
    os.environ["MUSICTX_SHOTS"] = str(MUSIC)
    call(["-m", "pytest", "-q", "-p", "no:xdist", str(ROOT / "tests/web/test_browser.py")])
    for name in ("serve-attention.png", "serve-harmonise.png"):
        place(MUSIC / name, PICTURES / name)


def call(words: list[str]) -> None:
    """Runs a command of Python's. Exits the script if the command fails."""
    print("$", *words, flush=True)
    if status := subprocess.run([sys.executable, *words], check=False).returncode:
        sys.exit(status)


def study(name: str, *words: str) -> None:
    call([str(ROOT / "studies" / name), *words])


def generate(*words: str) -> None:
    call(["-m", "musictx", "generate", "bundle=piano", "overwrite=true", *words])


def place(made: Path, shown: Path) -> None:
    with replacing(shown) as partial:
        shutil.copy(made, partial)


def card() -> str:
    """What the files of results say, in the words of the card."""

    def read(name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((RESULTS / name).read_text(encoding="utf-8"))
        return found

    lines = []
    for split in ("validation", "test"):
        of = read(f"piano-{split}.json")
        nats = ", ".join("a {} {:.3f} ({:.3f} to {:.3f})".format(one, *of[f"per_{one}"]) for one in UNITS)
        lines.append(f"{split}: nats {nats}; weights {of['tensors_sha256'][:12]}")
    for way, of in read("alive.json").items():
        if isinstance(of, dict) and "all" in of:
            lines.append(f"{way}: {of['all']}")
    for seconds, of in read("fill-piano.json").items():
        if isinstance(of, dict) and "known" in of:
            ends = of["filled"]["both sides"]["borders"]["ending_notes"]
            lines.append(f"fills of {seconds} s: gain {of['known']['gain']}, notes that end on the border {ends}")
    return "\n".join(lines)


UNITS = "token", "note", "second"
PARTS = {"likelihood": likelihood, "pictures": pictures, "page": page, "fills": fills, "guidance": guidance} | {
    "alive": alive  # the longest last
}


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True, help="MAESTRO v3 as it was downloaded, the MIDI zip")
    parser.add_argument("--pop", type=Path, required=True, help="POP909, zip or folder")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), help="default: all parts")
    parser.add_argument("--test", action="store_true", help="read the test split too")
    parser.add_argument("--pieces", type=int, default=40, help="of alive, from each store")
    parser.add_argument("--draws", type=int, default=3, help="of alive, continuations of each seed")
    parser.add_argument(
        "--ways", choices=("default", "all"), default="default", help="of alive: all remedies alone too"
    )
    args = parser.parse_args()
    prepare(args)
    for name in args.only:
        PARTS[name](args)
    print(card())


if __name__ == "__main__":
    with in_one_line():
        run()
