"""`make release`: what is refused, planted in small archives; what its smoke judges; one place for the version.

The real wheel is held to the same check in test_wheel.py. `make release` itself installs PyTorch twice, and is no test.
"""

import io
import json
import subprocess
import sys
import tarfile
import tomllib
import zipfile

import pytest
from conftest import ROOT, plan_of

import musictx

sys.path.insert(0, str(ROOT / "tools"))
import release

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
TOLD = f"Metadata-Version: 2.4\nName: musictx\nVersion: 1.2\nLicense-File: {release.LICENCES[0]}\n"
TOLD += f"License-File: {release.LICENCES[1]}\n"
SAID = "musictx-1.2.dist-info"


@pytest.fixture
def sources(tmp_path):
    texts = {"musictx/__init__.py": "", "musictx/bundles/piano.safetensors": "weights", "conf/train.yaml": "a: 1"}
    for name, text in {
        **texts,
        **dict.fromkeys(release.LICENCES, "law"),
        "tests/test_a.py": "",
        "README.md": "",
    }.items():
        path = tmp_path / "sources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "sources"


def wheel_of(folder, **changes):
    files = {
        "musictx/__init__.py": "",
        "musictx/bundles/piano.safetensors": "weights",
        "musictx/conf/train.yaml": "a: 1",
    }
    files |= {f"{SAID}/{name}": "" for name in release.WHEEL_SAYS} | {f"{SAID}/METADATA": TOLD}
    files |= {f"{SAID}/licenses/{name}": "law" for name in release.LICENCES} | changes
    with zipfile.ZipFile(folder / "musictx-1.2-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            if text is not None:
                archive.writestr(name, text)
    return folder / "musictx-1.2-py3-none-any.whl"


def sdist_of(folder, sources, **changes):
    files = {name: data.decode() for name, data in release.contents(sources).items()} | {"PKG-INFO": TOLD} | changes
    with tarfile.open(folder / "musictx-1.2.tar.gz", "w:gz") as archive:
        for name, text in files.items():
            if text is not None:
                member = tarfile.TarInfo(f"musictx-1.2/{name}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
    return folder / "musictx-1.2.tar.gz"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("musictx/bundles/piano.safetensors", None, " lacks musictx/bundles/piano.safetensors"),
        ("tests/test_a.py", "", " should not hold tests/test_a.py"),
        ("outputs/mine.mid", "", " should not hold outputs/mine.mid"),
        (f"{SAID}/licenses/LICENSE", None, f" lacks {SAID}/licenses/LICENSE"),
        ("musictx/conf/train.yaml", "a: 2", ": musictx/conf/train.yaml differ from the sources"),
        (f"{SAID}/METADATA", TOLD.replace("1.2", "1.3"), " calls itself version 1.3"),
        (f"{SAID}/METADATA", TOLD.replace("License-File: LICENSE\n", ""), ", its licence files lacks LICENSE"),
    ],
)
def test_a_wheel_is_refused_for(name, text, line, sources, tmp_path):
    release.check_wheel(wheel_of(tmp_path), sources)
    with pytest.raises(SystemExit) as refusal:
        release.check_wheel(wheel_of(tmp_path, **{name: text}), sources)
    assert str(refusal.value) == f"error: musictx-1.2-py3-none-any.whl{line}"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("tests/test_a.py", None, " lacks musictx-1.2/tests/test_a.py"),
        (".venv/x", "", " should not hold musictx-1.2/.venv/x"),
        ("README.md", "other", ": musictx-1.2/README.md differ from the sources"),
        ("PKG-INFO", TOLD.replace("1.2", "1.3"), " calls itself version 1.3"),
    ],
)
def test_an_sdist_is_refused_for(name, text, line, sources, tmp_path):
    release.check_sdist(sdist_of(tmp_path, sources), sources)
    with pytest.raises(SystemExit) as refusal:
        release.check_sdist(sdist_of(tmp_path, sources, **{name: text}), sources)
    assert str(refusal.value) == f"error: musictx-1.2.tar.gz{line}"


def test_what_is_not_committed_is_not_released(tmp_path):
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    release.refuse_uncommitted(tmp_path)
    (tmp_path / "new.py").touch()
    with pytest.raises(SystemExit, match=r"error: 1 files are not as committed \(\?\? new\.py …\): commit or stash"):
        release.refuse_uncommitted(tmp_path)


@pytest.mark.parametrize(
    ("version", "seconds", "inside", "line"),
    [
        ("1.2", 12.5, True, None),
        ("1.1", 12.5, True, "calls itself musictx 1.1 when it is installed"),
        ("1.2", 10.5, True, "made 10.5 s of music out of 10.5 s"),
        ("1.2", 12.5, False, "is not what was tried: /checkout/elise.mid"),
    ],
)
def test_what_the_smoke_judges(version, seconds, inside, line, monkeypatch, tmp_path):
    env = tmp_path / "env-whl"

    def answer(*words, **_):
        typed = [*map(str, words)]
        if typed[1:3] == ["-m", "venv"]:
            env.mkdir()
        if "--version" in typed:
            return f"musictx {version}\n"
        if "midi=elise" in typed:
            return json.dumps({"file": str(env / "elise.mid" if inside else "/checkout/elise.mid"), "seconds": 10.5})
        return json.dumps({"file": "made/elise-1.mid", "seconds": seconds}) if "inspect" in typed else ""

    monkeypatch.setattr(release, "run", answer)
    wheel = tmp_path / "musictx-1.2-py3-none-any.whl"
    if line is None:
        assert release.smoke(wheel, "1.2", tmp_path) == "installed, continued 10.50 s of music to 12.50 s"
        assert not env.exists()
        return
    with pytest.raises(SystemExit, match=f"^error: {wheel.name} {line}$"):
        release.smoke(wheel, "1.2", tmp_path)


def test_new_files_take_the_place_of_the_last_ones(tmp_path):
    for name in ("built/new.whl", "dist/old.whl", "build/dist/half.whl"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    release.put(tmp_path / "built", tmp_path / "dist")
    assert [path.name for path in (tmp_path / "dist").iterdir()] == ["new.whl"]
    assert list((tmp_path / "build").iterdir()) == []


def test_a_program_that_fails_ends_it_with_all_that_it_said():
    with pytest.raises(SystemExit, match="(?s)^out\nerr\nerror: .* has failed, as told above$"):
        release.run(sys.executable, "-c", "import sys; print('out'); sys.exit('err')")


def test_the_version_stands_in_pyproject_alone():
    assert musictx.__version__ == VERSION
    files = [file for folder in ("musictx", "conf", "data_prep", "tools") for file in (ROOT / folder).rglob("*.*")]
    texts = {file: file.read_text("utf-8") for file in files if file.suffix in (".py", ".yaml")}
    assert [str(file) for file, text in texts.items() if VERSION in text] == []


def test_make_docs_and_make_release_run_what_is_there_with_pinned_tools():
    for target, script in (("docs", "tools/reference.py"), ("release", "tools/release.py")):
        plan = plan_of(target)
        assert plan.splitlines()[-1].endswith(f"/python {script}")
        assert (ROOT / script).is_file()
    assert "twine -c constraints.txt" in plan
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert {"build", "hatchling", "pdoc", "twine"} <= pinned
