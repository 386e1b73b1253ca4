"""Installed as a wheel elsewhere, the commands work from an empty directory: `conf/` travels inside."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from email.parser import BytesParser

import pytest
from conftest import QUICK, ROOT, TINY, plan_of, refused

import musictx
from musictx.model.packaged import BUNDLES, SEEDS

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


# one process, which imports PyTorch once
ALL = """
import json, sys
from musictx.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["musictx", *words]
    main()
"""


def install(folder, **env):
    """A folder with the wheel's content and nothing of the checkout."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, env=os.environ | env)
    (wheel,) = folder.glob("musictx-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return install(tmp_path_factory.mktemp("wheel"))


def contents(folder):
    """Every file below a folder; no bytecode."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def metadata(site):
    (file,) = site.glob("musictx-*.dist-info/METADATA")
    return BytesParser().parsebytes(file.read_bytes())


def test_the_wheel_has_the_package_its_config_and_its_licence(installed):
    inside = {f"conf/{name}": data for name, data in contents(ROOT / "conf").items()}
    assert contents(installed / "musictx") == contents(ROOT / "musictx") | inside
    said = metadata(installed)
    assert {path.name for path in installed.iterdir()} == {"musictx", f"musictx-{VERSION}.dist-info"}
    assert said["Version"] == VERSION
    assert said["License-Expression"] == "MIT AND CC-BY-NC-SA-4.0"
    assert said.get_all("License-File") == ["LICENSE", "LICENSE-piano-weights"]
    for name in said.get_all("License-File"):
        (text,) = installed.glob(f"musictx-*.dist-info/licenses/{name}")
        assert text.read_text() == (ROOT / name).read_text()
    bundles = {path.name for path in (installed / "musictx" / "bundles").iterdir()}
    assert bundles == {f"{name}.safetensors" for name in BUNDLES} | {f"{name}.mid" for name in SEEDS}
    (entry,) = installed.glob("musictx-*.dist-info/entry_points.txt")
    assert "musictx = musictx.cli:main" in entry.read_text()


def test_a_wheel_without_the_piano_model_is_free_of_its_licence_and_says_where_to_get_it(tmp_path):
    slim = install(tmp_path, MUSICTX_WITHOUT_PIANO="1")
    said = metadata(slim)
    assert (said["License-Expression"], said.get_all("License-File")) == ("MIT", ["LICENSE"])
    assert [path.name for path in slim.glob("musictx-*.dist-info/licenses/*")] == ["LICENSE"]
    bundles = {path.name for path in (slim / "musictx" / "bundles").iterdir()}
    assert bundles == {"chorale.safetensors", "harmoniser.safetensors"} | {f"{name}.mid" for name in SEEDS}
    line = refused(["musictx", "generate", "seed_midi=elise"], tmp_path, PYTHONPATH=str(slim))
    assert f" {said['Version']}, " in line
    assert line.endswith(" bundle=")


def test_sources_without_the_piano_model_are_refused_since_they_would_hold_it(tmp_path):
    command = [sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"MUSICTX_WITHOUT_PIANO": "1"}
    )
    assert done.returncode
    assert "error: MUSICTX_WITHOUT_PIANO=1 " in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_licence_of_the_weights_names_itself_and_the_data():
    text = (ROOT / "LICENSE-piano-weights").read_text()
    for said in ("CC BY-NC-SA 4.0", "https://creativecommons.org/licenses/by-nc-sa/4.0/", "MAESTRO", "Hawthorne"):
        assert said in text
    terms = (ROOT / "LICENSE").read_text().partition("Permission is")[2]
    for said in ("POP909", "Ziyu Wang", f"MIT License Copyright (c) 2020 Music X Lab Permission is{terms}"):
        assert " ".join(said.split()) in " ".join(text.split())


def test_all_commands_run_from_an_empty_directory(installed, world, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(installed)}

    def run(*args):
        done = subprocess.run(
            [sys.executable, *args], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run("-c", "import musictx, musictx.config.app; print(musictx.config.app.conf_dir())").strip()
    assert where == str(installed / "musictx" / "conf")
    assert "examples" in run("-m", "musictx")
    run("-m", "musictx", "prepare", "folder", f"path={world.midi}", "out=store", "workers=1")
    train = ["train", "data.path=store", "out=run", "trainer.progress_bar=false", *TINY, *QUICK]
    evaluate = ["evaluate", "bundle=run", "data.path=store"]
    generate = ["generate", "bundle=run/model.safetensors", f"seed_midi={world.seed}", "out=o", "length_seconds=1"]
    run("-c", ALL, json.dumps([train, evaluate, generate]))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o", "run", "store"]


def test_the_version_is_in_pyproject_alone():
    assert musictx.__version__ == VERSION
    files = [file for folder in ("musictx", "conf", "data_prep", "tools") for file in (ROOT / folder).rglob("*.*")]
    texts = {file: file.read_text("utf-8") for file in files if file.suffix in (".py", ".yaml")}
    assert [str(file) for file, text in texts.items() if VERSION in text] == []


def test_make_release_and_make_docs_run_pinned_tools():
    plan = plan_of("release").splitlines()
    assert [line.split("/python ")[1] for line in plan[-2:]] == ["-m build", "-m twine check --strict dist/*"]
    assert plan_of("docs").splitlines()[-1].endswith(" tools/reference.py")
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert {"build", "hatchling", "pdoc", "twine"} <= pinned
