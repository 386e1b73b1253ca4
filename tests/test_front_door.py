"""`import musictx`: light, typed, and its functions are the commands'."""

import ast
import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import hydra
import pytest
from conftest import QUICK, ROOT, TINY, ok, refused
from hydra.core.global_hydra import GlobalHydra

import musictx
from musictx.data.store import Store

HEAVY = ("torch", "numpy", "lightning", "hydra", "omegaconf", "symusic", "matplotlib", "rich", "typing")


def test_importing_it_imports_nothing_else():
    said = f"print(*[name for name in sys.modules if name.startswith({('musictx', *HEAVY)})])"
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import musictx; {said}"
    command = [sys.executable, "-S", "-c", code]  # without what other packages have Python do at its start
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert {*done.stdout.split()} == {"musictx", "musictx.threads"}  # which lets threads sleep


def test_every_name_is_there_typed_and_no_module_takes_its_place():
    """A module of a function's name would become the attribute when anything imports it."""
    tree = ast.parse(Path(musictx.__file__).read_text())
    (typed,) = [node for node in tree.body if isinstance(node, ast.If)]
    said = {alias.name: node.module for node in typed.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert said == musictx.PLACES
    assert {*musictx.__all__} <= {*dir(musictx)}
    for name in musictx.PLACES:
        assert getattr(musictx, name).__name__ == name
        assert find_spec(f"musictx.{name}") is None
    with pytest.raises(AttributeError, match="'generat'"):
        musictx.generat  # type: ignore[attr-defined]  # noqa: B018
    assert (Path(musictx.__file__).parent / "py.typed").read_text() == ""


def test_the_version_is_the_commands(tmp_path):
    assert ok(["musictx", "--version"], tmp_path).stdout == f"musictx {musictx.__version__}\n"


def test_prepare_train_and_evaluate_are_the_commands(world, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    store = musictx.prepare("folder", "workers=1", path=world.midi, out="store")
    assert isinstance(store, Store)
    assert "8 files in, 8 kept" in capsys.readouterr().out
    files = {file.name: file.read_bytes() for file in world.store.iterdir()}
    assert {file.name: file.read_bytes() for file in (tmp_path / "store").iterdir()} == files
    own = {"path": tmp_path / "store", "length": 32}
    settings = [word for word in (*TINY, *QUICK) if not word.startswith("data.")]
    bundle = tmp_path / "run" / "model.safetensors"
    assert musictx.train(*settings, "trainer.progress_bar=false", data=own, out=tmp_path / "run") == bundle
    assert bundle.read_bytes() == world.bundle.read_bytes()
    figures = musictx.evaluate("data.path=store", bundle="run", out="f.json")
    said = json.loads((tmp_path / "f.json").read_text())
    assert said["per_token"] == list(figures.per_token)
    ok(["musictx", "evaluate", f"bundle={world.bundle}", f"data.path={world.store}", "out=g.json"], tmp_path)
    assert json.loads((tmp_path / "g.json").read_text())["per_token"] == said["per_token"]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: musictx.prepare("bach"), "bach: .*folder, scores, maestro"),
        (lambda: musictx.prepare("folder"), "path=…: "),
        (lambda: musictx.prepare("folder", paths="x"), "paths=…: .* path"),
        (lambda: musictx.train(trainer={"max_steps": "many"}), "trainer.max_steps=many: "),
        (lambda: musictx.train(model=None, data={"path": "a"}), "model=null: "),
        (lambda: musictx.train(model={"recall": True}, data={"path": "a"}), "model.recall=…: "),
        (lambda: musictx.train("-m", "random_seed=1,2"), "-m"),
        (lambda: musictx.train(name="a", out="o", data={"path": "nowhere"}), "nowhere"),
        (lambda: musictx.evaluate(bundle="nowhere"), "nowhere"),
        (lambda: musictx.evaluate(), "bundle=…: "),
    ],
)
def test_mistakes_are_user_errors_of_one_line(call, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(musictx.UserError, match=text) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_program_that_uses_hydra_itself_is_left_as_it_was(tmp_path):
    (tmp_path / "mine.yaml").write_text("colour: green")
    with hydra.initialize_config_dir(str(tmp_path), version_base="1.3"):
        outer = GlobalHydra.instance().hydra
        with pytest.raises(musictx.UserError, match="trainer.max_step=…: "):
            musictx.train("trainer.max_step=1")
        assert GlobalHydra.instance().hydra is outer
        assert hydra.compose("mine").colour == "green"


def test_prepare_says_what_there_is(tmp_path):
    texts = {ok(["musictx", "prepare", *words], tmp_path).stdout for words in ([], ["--help"])}
    (text,) = texts
    for name in ("folder", "maestro", "jsb", "pop909", "chorales"):
        assert f"\n  {name} " in text
    assert "bach: " in refused(["musictx", "prepare", "bach", "path=x"], tmp_path)
    command = ok(["musictx", "prepare", "jsb", "--help"], tmp_path).stdout
    assert command == ok(["data_prep/jsb.py", "--help"], tmp_path).stdout
    assert list(tmp_path.iterdir()) == []
