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

from musictx.music.read import read_midi

PLAY = ("continue", "steer", "fill", "accompany", "jam", "scores", "your-music", "look")
TRAIN = ("first-training", "data", "training", "your-model", "measure")
NAMES = ("README.md", *(f"docs/play/{name}.md" for name in PLAY), *(f"docs/{name}.md" for name in TRAIN))
TEXTS = {name: (ROOT / name).read_text() for name in NAMES}
README = TEXTS["README.md"]


def commands(text):
    blocks = re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith("#")]
    return [line for line in lines if not line.startswith(("make ", "musictx serve"))]  # tests/web has its own


PAGES = {name: commands(text) for name, text in TEXTS.items()}
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
MADE = {
    "README.md": """
        elise/elise-1.mid continued/my-3.mid continued/my.png elise-filled/elise.png harmonised/chorale-3.mid
        """,
    "docs/play/continue.md": "chorale/chorale-1.mid calmer/my-1.mid new/new-1.mid",
    "docs/play/steer.md": "chords/elise-1.mid own-chords/elise-1.mid harmony/chorale-1.mid",
    "docs/play/fill.md": "filled-chorale/chorale-3.mid joined/elise-to-gymnopedie-1.mid",
    "docs/play/accompany.md": "harmonies/chorale-2.mid tenor/chorale-1.mid",
    "docs/play/jam.md": "session.mid",
    "docs/play/scores.md": "chorale.musicxml chorale.pdf from-a-score/chorale-1.musicxml",
    "docs/play/your-music.md": "tuned/model.safetensors tuned/music/held-out-3.mid",
    "docs/play/look.md": "my.svg my.flac stores/collection/manifest.json stores/bach/manifest.json",
    "docs/first-training.md": "first/model.safetensors first.png first-music/chorale-1.mid",
    "docs/data.md": """
        mine.png stores/mine/manifest.json stores/piano/manifest.json stores/bars/manifest.json
        stores/chorales/manifest.json stores/jsb/manifest.json stores/maestro/manifest.json stores/pop909/manifest.json
        """,
    "docs/training.md": "mine/model.safetensors mine-lstm/model.safetensors mine-fill/model.safetensors",
    "docs/your-model.md": "six/my-6.mid filled/my-3.mid filled/my.png bars/my-1.mid between/my-to-new-1-1.mid",
    "docs/measure.md": "comparison/report.md listening.html",
}


def test_the_set_up_installs_what_the_first_command_needs():
    (lines,) = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert lines.rstrip().endswith("pip install '.[web]'")
    named = set(re.findall(r"pip install '\.\[(\w+)\]'", "".join(TEXTS.values())))
    assert named == {"web", "jam", "film", "score", "chorales"} <= set(extras)
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


def earlier(page):
    """The commands of pages before this one that make what it reads, and what they read themselves."""
    pages = list(PAGES)
    before = [command for name in pages[: pages.index(page)] for command in PAGES[name]]
    reads, needed = reads_of(PAGES[page]), list[str]()
    for command in reversed(before):
        (out,) = re.findall(r"out=(\S+)", command) or [""]
        if out and any(place == out or place.startswith(f"{out}/") for place in reads):
            needed.insert(0, command)
            reads |= reads_of([command])
    return needed


def reads_of(lines):
    return {place for line in lines for place in re.findall(r"(?<!out=)outputs/[\w/.-]+", line)}


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
def test_commands_of_a_page_run_in_order(page, world, tmp_path):
    write_own_files(world, tmp_path)
    for command in [*earlier(page), *PAGES[page]]:
        words = shlex.split(command)
        ok([*words, *smaller(words, world)], tmp_path)
    made = {str(p.relative_to(tmp_path / "outputs")) for p in (tmp_path / "outputs").rglob("*") if p.is_file()}
    assert set(MADE[page].split()) <= made


def test_its_python_runs_as_it_stands(world, tmp_path):
    (lines,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (tmp_path / "page_one.py").write_text(lines)
    shutil.copy(world.hymn, tmp_path / "seed.mid")
    ok([tmp_path / "page_one.py"], tmp_path)
    seed = read_midi(tmp_path / "seed.mid")
    for k in (1, 2, 3):
        music = read_midi(tmp_path / f"seed-{k}.mid")
        assert 15 < music.duration_s - seed.duration_s < 21
    assert len(list(tmp_path.iterdir())) == 5
