"""Installed as a wheel elsewhere, the commands work from an empty directory: `conf/` travels inside."""

import json
import os
import subprocess
import sys
import tomllib
import zipfile
from email.parser import BytesParser

import pytest
from conftest import QUICK, ROOT, TINY, plan_of
from hatchling import build

import musictx
from musictx.model.packaged import BUNDLES, SEEDS

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]


# one process, which imports PyTorch once
ALL = """
import json, sys
from musictx.cli import main
from musictx.config.app import conf_dir
print(conf_dir())
for words in json.loads(sys.argv[1]):
    sys.argv = ["musictx", *words]
    main()
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with the wheel's content and nothing of the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        return unpacked(tmp_path_factory.mktemp("wheel"))


def unpacked(folder):
    wheel = zipfile.ZipFile(folder / build.build_wheel(str(folder)))
    wheel.extractall(folder / "site")
    return folder / "site"


def contents(folder):
    """Every file below a folder; no bytecode."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def metadata(site):
    (file,) = site.glob("musictx-*.dist-info/METADATA")
    return BytesParser().parsebytes(file.read_bytes())


def python(site, *args, cwd):
    environment = os.environ | {"PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


def test_the_wheel_has_the_package_its_config_and_its_licence(installed):
    inside = {f"conf/{name}": data for name, data in contents(ROOT / "conf").items()}
    assert contents(installed / "musictx") == contents(ROOT / "musictx") | inside
    said = metadata(installed)
    assert {path.name for path in installed.iterdir()} == {"musictx", f"musictx-{VERSION}.dist-info"}
    assert (said["Version"], said["License-Expression"]) == (VERSION, "MIT AND CC-BY-4.0 AND CC-BY-NC-SA-4.0")
    assert said.get_all("License-File") == ["LICENSE", "LICENSE-piano-weights", "LICENSE-score-weights"]
    for name in said.get_all("License-File"):
        (text,) = installed.glob(f"musictx-*.dist-info/licenses/{name}")
        assert text.read_text() == (ROOT / name).read_text()
    bundles = {path.name for path in (installed / "musictx" / "bundles").iterdir()}
    assert bundles == {f"{name}.safetensors" for name in BUNDLES} | {f"{name}.mid" for name in SEEDS}
    (entry,) = installed.glob("musictx-*.dist-info/entry_points.txt")
    assert "musictx = musictx.cli:main" in entry.read_text()


def test_without_the_piano_model_a_wheel_is_free_of_its_licence_and_sources_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("MUSICTX_WITHOUT_PIANO", "1")
    slim = unpacked(tmp_path)
    said = metadata(slim)
    assert (said["License-Expression"], said.get_all("License-File")) == (
        "MIT AND CC-BY-4.0",
        ["LICENSE", "LICENSE-score-weights"],
    )
    assert [path.name for path in slim.glob("musictx-*.dist-info/licenses/*")] == said.get_all("License-File")
    bundles = {path.name for path in (slim / "musictx" / "bundles").iterdir()}
    assert bundles == {f"{name}.safetensors" for name in BUNDLES if name != "piano"} | {f"{name}.mid" for name in SEEDS}
    asked = python(slim, "-c", "from musictx.model.packaged import bundle_path; bundle_path('piano')", cwd=tmp_path)
    assert f" {VERSION}, " in asked.stderr  # where to get it
    with pytest.raises(SystemExit, match="^error: MUSICTX_WITHOUT_PIANO=1 "):  # they would hold it
        build.build_sdist(str(tmp_path))
    assert not list(tmp_path.glob("*.tar.gz"))


PIANO_SAYS = "CC BY-NC-SA 4.0", "https://creativecommons.org/licenses/by-nc-sa/4.0/", "MAESTRO", "Hawthorne"
SCORE_SAYS = (
    "CC BY 4.0",
    "https://creativecommons.org/licenses/by/4.0/",
    "The Fryderyk Chopin Institute",
    "OpenScore Lieder",
)


@pytest.mark.parametrize(("name", "says"), [("piano", PIANO_SAYS), ("score", SCORE_SAYS)])
def test_the_licence_of_the_weights_names_itself_and_the_data(name, says):
    text = (ROOT / f"LICENSE-{name}-weights").read_text()
    for said in says:
        assert said in text
    terms = (ROOT / "LICENSE").read_text().partition("Permission is")[2]
    for said in ("POP909", "Ziyu Wang", f"MIT License Copyright (c) 2020 Music X Lab Permission is{terms}"):
        assert " ".join(said.split()) in " ".join(text.split())


def test_commands_run_from_an_empty_directory(installed, world, tmp_path):
    prepare = ["prepare", "folder", f"path={world.midi}", "out=store", "workers=1"]
    train = ["train", "data.path=store", "out=run", "trainer.progress_bar=false", *TINY, *QUICK]
    generate = ["generate", "bundle=run/model.safetensors", f"seed_midi={world.seed}", "out=o", "length_seconds=1"]
    done = python(installed, "-c", ALL, json.dumps([[], prepare, train, generate]), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == str(installed / "musictx" / "conf")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o", "run", "store"]


def test_the_version_is_in_pyproject_alone():
    assert musictx.__version__ == VERSION
    files = [file for folder in ("musictx", "conf", "data_prep", "tools") for file in (ROOT / folder).rglob("*.*")]
    texts = {file: file.read_text("utf-8") for file in files if file.suffix in (".py", ".yaml")}
    assert [str(file) for file, text in texts.items() if VERSION in text] == []


def test_make_release_and_make_docs_run_pinned_tools():
    plan = plan_of("release").splitlines()
    assert [line.split("/python ")[1] for line in plan[-2:]] == ["-m build", "-m twine check --strict dist/*"]
    assert plan_of("docs").splitlines()[-1].endswith(" tools/website.py")
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert {"build", "hatchling", "twine", "zensical"} <= pinned
