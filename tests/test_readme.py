"""Every command of README and of the guides, as written there, in a folder with a person's own files."""

import json
import re
import shlex
import shutil
import tomllib
import zipfile

import pytest
from conftest import QUICK, ROOT, TINY, ok, plan_of
from songs import write_songs

from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.read import read_midi

FOLDERS = ("play", "train", "measure")
MODELS = ROOT / "docs/models.md"
GUIDES = [
    ROOT / "docs/index.md",
    MODELS,
    *(path for name in FOLDERS for path in sorted((ROOT / "docs" / name).glob("*.md"))),
]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text() for path in (ROOT / "README.md", *GUIDES)}
del TEXTS["docs/train/export.md"]  # tests/commands/test_export.py has its own
README = TEXTS["README.md"]


def commands(text):
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith("#")]
    return [line for line in lines if not line.startswith(("make ", "musictx serve"))]  # tests/web has its own


PAGES = {name: found for name, text in TEXTS.items() if (found := commands(text))}
# the README's sizes are for an evening; these run the same code in seconds
SMALLER = {
    "musictx train": [*TINY, *QUICK, "trainer.progress_bar=false"],
    "musictx prepare": ["workers=1"],
    "musictx prepare chorales": ["pieces=12", "workers=1"],
    "musictx classify": ["passages=1"],
    "musictx similar": ["passages=4"],
    "musictx jam": ["reply_seconds=1"],
    "musictx compare": ["split=train", "pieces=3", "seed_seconds=2", "length_seconds=2", "span_seconds=1"],
    "musictx listen": ["split=train", "pieces=2", "seed_seconds=2", "length_seconds=2"],
}


NOTES = tuple(Note(24 * k, 24, pitch) for k, pitch in enumerate((67, 72, 71, 72, 74, 72, 71, 69) * 2))
TUNE = Notation((Part("Voice", 52, NOTES),), tuple(Bar(96 * k, 4, 4) for k in range(4)), 384)


def out_of(command):
    """The file or folder that a command makes."""
    return (re.findall(r"\bout(?:put)?=(\S+)", command) or [None])[0]


MAKERS = {out_of(command): command for page in reversed(PAGES.values()) for command in reversed(page)}


def earlier(page):
    """The commands, of any page, that make what these read."""
    made = {out_of(command) for command in page}
    read = {path for command in page for path in re.findall(r"outputs/[\w./-]+", command)}
    others = [(out, command) for out, command in MAKERS.items() if out and out not in made]
    before = [command for out, command in others if any(f"{path}/".startswith(f"{out}/") for path in read)]
    return [*earlier(before), *before] if before else []


def test_the_set_up_installs_what_the_first_command_needs():
    (lines,) = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert lines.rstrip().endswith("pip install '.[web]'")
    named = set(re.findall(r"pip install '\.\[(\w+)\]'", "".join(TEXTS.values())))
    assert named == {"web", "jam", "film", "score"} <= set(extras)
    assert re.findall(r"```bash\n(?:#.*\n)?(.*)", README)[0] == "musictx serve"


@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_targets_exist_and_set_everything_up(target):
    plan = plan_of(target)
    assert "-m venv" in plan
    assert "-c constraints.txt" in plan
    assert {"demo": "musictx demo", "test": "pytest"}[target] in plan


def write_own_files(world, folder):
    """What a person has: music, labels of it, archives of corpora."""
    shutil.copytree(world.midi, folder / "my_midi_files")
    shutil.copy(world.seed, folder / "my.mid")
    (folder / "my_tune.mid").write_bytes(to_midi(TUNE))
    for k, file in enumerate(sorted(world.midi.rglob("*.mid"))[:6]):
        labelled = folder / "my_labels" / ("mine", "friend")[k % 2]
        labelled.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, labelled / f"{k}.mid")
    rows = ["canonical_composer,canonical_title,split,year,midi_filename,audio_filename,duration"]
    with zipfile.ZipFile(folder / "maestro-v3.0.0-midi.zip", "w") as archive:
        for split, file in zip(("train", "validation", "test"), sorted(world.midi.rglob("*.mid")), strict=False):
            rows.append(f"Bach,A piece,{split},2004,2004/{file.name},x.wav,10")
            archive.write(file, f"maestro-v3.0.0/2004/{file.name}")
        archive.writestr("maestro-v3.0.0/maestro-v3.0.0.csv", "\n".join(rows))
    write_songs(folder, 8)
    chorale = [[72, 67, 64, 48]] * 8
    table = {"train": [chorale] * 2, "valid": [chorale], "test": [chorale]}
    (folder / "Jsb16thSeparated.json").write_text(json.dumps(table))


def smaller(words, world):
    """The same command, done in seconds."""
    if words[1] == "tune":  # no model of millions of weights in a test
        return [f"bundle={world.bundle}", "max_steps=2"]
    if words[1] == "generate":
        exact = any(word.startswith(("infill=", "between=", "length_bars=")) for word in words)
        return [] if exact else ["length_seconds=1"]
    less = SMALLER.get(" ".join(words[:3]), SMALLER.get(" ".join(words[:2]), []))
    if "model=lstm" in words:
        less = [*QUICK, "model.d_model=16", "trainer.progress_bar=false"]
    if "objective=infill" in words:
        less = [*less, "data.length=512"]
    return less


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_a_page_run_in_order_and_make_what_they_name(page, world, tmp_path):
    write_own_files(world, tmp_path)
    for command in dict.fromkeys([*earlier(PAGES[page]), *PAGES[page]]):
        words = shlex.split(command)
        ok([*words, *smaller(words, world)], tmp_path)
        made = out_of(command)
        assert made is None or (tmp_path / made).is_file() or any((tmp_path / made).iterdir()), command


def test_guides_have_commands():
    assert sum(len(page) for page in PAGES.values()) > 60
    assert {name for name in TEXTS if name not in PAGES} == {
        *("docs/play/browser.md", "docs/train/gpu.md", "docs/train/several.md", "docs/train/voices.md"),
        *("docs/train/python.md", "docs/train/all-about-data.md", "docs/train/all-about-training.md"),
        *("docs/measure/likelihood.md", "docs/play/gallery.md"),
    }


def test_its_python_runs_as_it_stands(world, tmp_path):
    (lines,) = re.findall(r"```python\n(.*?)```", TEXTS["docs/train/python.md"], flags=re.DOTALL)
    (tmp_path / "page_one.py").write_text(lines)
    shutil.copy(world.hymn, tmp_path / "seed.mid")
    ok([tmp_path / "page_one.py"], tmp_path)
    seed = read_midi(tmp_path / "seed.mid")
    for k in (1, 2, 3):
        music = read_midi(tmp_path / f"seed-{k}.mid")
        assert 15 < music.duration_s - seed.duration_s < 21
    assert len(list(tmp_path.iterdir())) == 5
