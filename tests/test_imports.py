"""Music knows no tensors, models know no music, data never imports model: the table of docs/structure.md, held."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import musictx

PACKAGE = Path(musictx.__file__).parent
NO_TENSORS = {"music", "tokenizers", "viz"}
BESIDE = {"errors", "files", "setting", "system", "terminal", "threads", "waiting"}
LIBRARIES = {
    "numpy",
    "symusic",
    "pretty_midi",
    "mido",
    "torch",
    "safetensors",
    "onnx",
    "onnxruntime",
    "music21",
    "partitura",
}
NO_MUSIC = {"symusic", "pretty_midi", "mido", "music21"}


def may_import():
    """Room -> what it may import of musictx, read from the table of docs/structure.md; None for everything."""
    text = (PACKAGE.parent / "docs" / "structure.md").read_text()
    text = text.split("## Who may import whom")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| .*\| ([^|]*) \|$", text, re.MULTILINE)
    return {room: None if allowed == "everything" else set(re.findall(r"\w+", allowed)) for room, allowed in rows}


def imported(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: write imports in full"
            yield node.module


def test_rooms_import_only_what_the_table_allows():
    checked, table = 0, may_import()
    assert {file.parent.name for file in PACKAGE.glob("*/*.py")} == set(table)
    assert "config" not in table["generate"]  # no Hydra below a command
    for room, allowed in table.items():
        for file in (PACKAGE / room).rglob("*.py"):
            for name in imported(file):
                top, *rest = name.split(".")
                if top == "musictx" and allowed is not None:
                    checked += 1
                    assert rest[0] in allowed | {room} | BESIDE, f"{file} may not import {name}"
                assert not (room in NO_TENSORS and top in ("torch", "lightning")), f"{file}: no tensors in {room}"
                assert not (room == "model" and top in NO_MUSIC), f"{file}: no music in model"
    assert checked > 20


def test_a_room_is_below_all_that_it_imports():
    """So there is no circle, and the table can be read from its top."""
    above = set(LIBRARIES)
    for room, allowed in may_import().items():
        assert allowed is None or allowed <= above, f"{room} imports {allowed - above}, which stand below it"
        above.add(room)


def test_files_are_read_without_tensors():
    """A reader process starts sooner without, and so does one that draws."""
    check = "import sys, numpy, musictx.data.recipe, musictx.tokenizers.beat_grammar, musictx.tokenizers as t"
    check += "; all_ = [t.build_tokenizer(name) for name in ('performance', 'chorale')]"
    check += "; [(each.idiom(0.5), each.grammar(t.rules.Rules(), [numpy.zeros(0, int)], [0.5])) for each in all_]"
    late = "sys.exit(any(name in sys.modules for name in ('torch', 'miditok', 'tokenizers')))"
    assert subprocess.run([sys.executable, "-c", f"{check}; {late}"]).returncode == 0


def test_a_bundle_is_known_and_opened_without_pytorch():
    """What `musictx generate` asks before it draws: header, parts, objective, weights, threads."""
    check = (
        "import sys, musictx.model.header, musictx.model.tensors, musictx.model.onnx.player, musictx.model.protocol;"
        "import musictx.model.own, musictx.model.packaged, musictx.model.settings, musictx.system, musictx.data.store;"
        "import musictx.analysis.repeats, musictx.config.app, musictx.config.train, musictx.commands;"
        "from musictx.objectives import find_objective as find;"
        "assert find('infill').continues and find('next_token').continues"
    )
    assert subprocess.run([sys.executable, "-c", f"{check}; sys.exit('torch' in sys.modules)"]).returncode == 0


def test_what_an_extra_brings_is_imported_only_where_it_is_needed():
    """`pip install .` must do: outside of the page no file imports an extra's package as it is imported itself."""
    settings = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text())["project"]
    extra = [each for key, of in settings["optional-dependencies"].items() if key != "dev" for each in of]
    extras = {MODULES.get(name, name) for name in {*map(named, extra)} - {*map(named, settings["dependencies"])}}
    assert extras >= {"gradio", "symusic", "music21", "rtmidi"}
    for file in PACKAGE.rglob("*.py"):
        if file.parent.name == "web":
            continue
        for node in ast.parse(file.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.partition(".")[0] for name in names} & extras, file


def named(requirement):
    return re.split(r"[^\w-]", requirement)[0].replace("-", "_")


MODULES = {"python_rtmidi": "rtmidi"}
