"""Installed as a wheel elsewhere, the commands work from an empty directory: `conf/` travels inside."""

import os
import subprocess
import sys
import zipfile

import pytest
from conftest import QUICK, ROOT, TINY


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder that holds the wheel's content and nothing of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("musictx-*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_the_package_its_config_and_its_licence(installed):
    assert (installed / "musictx" / "conf" / "experiment" / "chorales.yaml").is_file()
    assert not (installed / "tests").exists()
    assert list(installed.glob("musictx-*.dist-info/licenses/LICENSE"))
    (entry,) = installed.glob("musictx-*.dist-info/entry_points.txt")
    assert "musictx = musictx.cli:main" in entry.read_text()


def test_all_commands_run_from_an_empty_directory(installed, world, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(installed)}

    def run(*args):
        done = subprocess.run(
            [sys.executable, *args], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = run("-c", "import musictx, musictx.app; print(musictx.app.conf_dir())").strip()
    assert where == str(installed / "musictx" / "conf")
    assert "examples" in run("-m", "musictx")
    run("-m", "musictx", "train", f"data.path={world.store}", "out=run", "trainer.progress_bar=false", *TINY, *QUICK)
    run("-m", "musictx", "evaluate", "bundle=run/model.safetensors", f"data.path={world.store}")
    seed = f"seed_midi={world.seed}"
    run("-m", "musictx.generate", "bundle=run/model.safetensors", seed, "out=o", "length_seconds=1")
    run("-m", "musictx", "bench", "tokens", f"path={world.midi}", "repeats=1")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["o", "run"]
