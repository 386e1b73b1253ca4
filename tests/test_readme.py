"""Every command of README and of the guides, as written there, in an empty folder with a person's own files."""

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

README, *GUIDES = ((ROOT / name).read_text() for name in ("README.md", "docs/musicians.md", "docs/researchers.md"))
PAGES = "".join([README, *GUIDES])
BLOCKS = [block.splitlines() for block in re.findall(r"```bash\n(.*?)```", PAGES, flags=re.DOTALL)]
COMMANDS = [line for block in BLOCKS for line in block if not line.startswith("#")]
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
EXPECTED = """
mine.png mine/model.safetensors tuned/model.safetensors tuned/music/held-out-3.mid continued/my-3.mid
continued/my.png calmer/my-1.mid six/my-6.mid new/new-1.mid filled/my-3.mid filled/my.png bars/my-1.mid
between/my-to-new-1-1.mid elise/elise-1.mid elise-filled/elise.png filled-chorale/chorale-3.mid
harmonies/chorale-2.mid joined/elise-to-gymnopedie-1.mid chorale/chorale-1.mid comparison/report.md my.svg
session.mid my.flac listening.html
"""


def test_the_set_up_installs_what_the_first_command_needs():
    (lines,) = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert lines.rstrip().endswith("pip install '.[web]'")
    assert set(re.findall(r"pip install '\.\[(\w+)\]'", PAGES)) == {"web", "jam", "film"} <= set(extras)
    assert COMMANDS[0] == "musictx serve"


@pytest.mark.parametrize("target", ["demo", "test"])
def test_make_targets_exist_and_set_everything_up(target):
    plan = plan_of(target)
    assert "-m venv" in plan
    assert "-c constraints.txt" in plan
    assert {"demo": "musictx demo", "test": "pytest"}[target] in plan


def test_every_other_command_runs_in_order(world, tmp_path):
    shutil.copytree(world.midi, tmp_path / "my_midi_files")
    shutil.copy(world.seed, tmp_path / "my.mid")
    for k, file in enumerate(sorted(world.midi.rglob("*.mid"))[:6]):
        folder = tmp_path / "my_labels" / ("mine", "friend")[k % 2]
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / f"{k}.mid")
    rows = ["canonical_composer,canonical_title,split,year,midi_filename,audio_filename,duration"]
    with zipfile.ZipFile(tmp_path / "maestro-v3.0.0-midi.zip", "w") as archive:
        for split, file in zip(("train", "validation", "test"), sorted(world.midi.rglob("*.mid")), strict=False):
            rows.append(f"Bach,A piece,{split},2004,2004/{file.name},x.wav,10")
            archive.write(file, f"maestro-v3.0.0/2004/{file.name}")
        archive.writestr("maestro-v3.0.0/maestro-v3.0.0.csv", "\n".join(rows))
    write_songs(tmp_path, 8)
    chorale = [[72, 67, 64, 48]] * 8
    table = {"train": [chorale] * 2, "valid": [chorale], "test": [chorale]}
    (tmp_path / "Jsb16thSeparated.json").write_text(json.dumps(table))
    for command in COMMANDS:
        words = shlex.split(command)
        if words[0] == "make" or words[:2] == ["musictx", "serve"]:  # tests/web has its own
            continue
        smaller = SMALLER.get(" ".join(words[:3]), SMALLER.get(" ".join(words[:2]), []))
        if {"model=lstm", "model=se_resnet"} & set(words):
            smaller = [*QUICK, "model.d_model=16", "trainer.progress_bar=false"]
        if "model=vit" in words:
            smaller = [word for word in smaller if not word.startswith("model.max_distance")]
        if words[1] == "tune":  # no model of millions of weights in a test
            smaller = [f"bundle={world.bundle}", "max_steps=2"]
        if "objective=infill" in words:
            smaller = [*smaller, "data.length=512"]
        if "generate" in words[:2] and "length_bars=8" not in words and not re.search("infill=|between=", command):
            smaller = ["length_seconds=1"]
        ok([*words, *smaller], tmp_path)
    made = {str(p.relative_to(tmp_path / "outputs")) for p in (tmp_path / "outputs").rglob("*") if p.is_file()}
    stores = ["mine", "chorales", "maestro", "pop909", "jsb", "bars", "piano"]
    assert {*EXPECTED.split(), *(f"stores/{name}/manifest.json" for name in stores)} <= made


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
