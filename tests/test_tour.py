"""docs/tour.ipynb, executed with a short training, and what is stored of it.

`python tests/test_tour.py` executes it in full, a few minutes, and stores its outputs; then look at them.
"""

import base64
import io
import json
import re

import nbformat
import numpy as np
import soundfile
from conftest import ROOT
from matplotlib.image import imread
from nbclient import NotebookClient

from musictx.data.corpora.chorales import chorale_list, read_chorale
from musictx.model.packaged import CHORALE, packaged_bundle
from musictx.music.grid import score_to_grid
from musictx.music.read import read_midi

TOUR = ROOT / "docs" / "tour.ipynb"
SHORTER = {
    "STEPS = 150": "STEPS = 3",
    "STEPS // 3": "STEPS",
    '"pieces=100"': '"pieces=20", "workers=1"',
    'length, out="run"': 'length, "model.d_model=24", out="run"',
}
MOST_BYTES = 1_000_000  # a code-hosting page shows it
PROBE = """
import json

scores = {"seed": music, "first": first.score, "second": second.score}
print(json.dumps({name: [s.pitch.tolist(), s.onset_s.tolist()] for name, s in scores.items()}))
"""


def execute(notebook, folder):
    NotebookClient(
        notebook, kernel_name="python3", timeout=1200, resources={"metadata": {"path": str(folder)}}
    ).execute()


def tidy(notebook):
    """Without what changes from machine to machine: clocks, versions, how the prints were cut into messages."""
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata = {}
        whole: list[nbformat.NotebookNode] = []
        for output in cell.get("outputs", []):
            if whole and output.output_type == whole[-1].output_type == "stream" and output.name == whole[-1].name:
                whole[-1].text += output.text
            else:
                whole.append(output)
            if "text/html" in output.get("data", {}):
                output.data["text/plain"] = re.sub(r"\x1b\[\d*m", "", output.data["text/plain"])
        if cell.cell_type == "code":
            cell.outputs = whole


def code(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def text(cell):
    """What a cell says: its prints and tables, no pictures or sound."""
    parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(parts)


def the(notebook, word):
    """The one cell with this in it."""
    found = [cell for cell in code(notebook) if word in cell.source]
    assert len(found) == 1, f"{len(found)} cells with {word}"
    return found[0]


def picture(cell):
    [png] = [output.data["image/png"] for output in cell.outputs if "image/png" in output.get("data", {})]
    return imread(io.BytesIO(base64.b64decode(png)))


def sound(cell):
    [html] = [output.data["text/html"] for output in cell.outputs if "<audio" in str(output.get("data"))]
    [flac] = re.findall(r'src="data:audio/flac;base64,([^"]+)"', html)
    return soundfile.read(io.BytesIO(base64.b64decode(flac)))


def check_outputs(notebook):
    """What is true after a training of any length."""
    for cell in code(notebook):
        said = [o["text"] for o in cell.outputs if o.get("name") == "stderr"]
        assert all(re.fullmatch(r"(.*: .*about .*\n)+", each) for each in said), said  # a slow machine says how long
        assert not [o for o in cell.outputs if o.output_type == "error"], cell.source
    assert text(the(notebook, "read_midi(")).splitlines() == [
        "35 notes in 4.8 s; the first eight:",
        "begins   0.00  0.00  0.00  0.00  0.60  0.60  0.60  0.90",
        "pitch      53    57    60    65    52    55    72    70",
    ]
    events = (
        "83 performance tokens: VELOCITY 19, NOTE_ON 53, NOTE_ON 57, NOTE_ON 60, NOTE_ON 65, TIME_SHIFT 60, NOTE_OFF 53"
    )
    assert events in text(the(notebook, "midi_facts("))
    assert text(the(notebook, "vocab.describe(")).splitlines()[1:3] == [
        "PITCH 65  PITCH 60  PITCH 57  PITCH 53",
        "PITCH 72  PITCH 60  PITCH 55  PITCH 52",
    ]
    for word in ('Image("seed.png")', 'Image("run/curves.png"', 'Image("continued.png")', "attend("):
        pixels = picture(the(notebook, word))
        assert pixels.shape[1] > 1000
        assert pixels[..., :3].std() > 0.03, f"{word}: an empty picture"
    samples, rate = sound(the(notebook, "Audio("))
    assert rate == 44_100
    assert 7.2 <= len(samples) / rate < 10  # 7.2 s of music, and the last notes fade
    assert np.abs(samples).max() > 0.5


def test_the_tour_runs_with_a_short_training(tmp_path, monkeypatch):
    notebook = nbformat.read(TOUR, 4)
    for long, short in SHORTER.items():
        cell = the(notebook, long)
        assert cell.source.count(long) == 1
        cell.source = cell.source.replace(long, short)
    probe = nbformat.v4.new_code_cell(PROBE)
    notebook.cells.append(probe)
    for name in ("TMPDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))

    execute(notebook, tmp_path)

    check_outputs(notebook)
    assert "20 files in, 20 kept, 0 left out" in text(the(notebook, "musictx.prepare("))
    assert "step 3/3" in text(the(notebook, "musictx.train("))
    notes = json.loads(text(probe))
    begun = [(53, 0.0), (57, 0.0), (60, 0.0), (65, 0.0), (52, 0.6), (55, 0.6), (72, 0.6), (70, 0.9)]
    for name in ("first", "second"):
        seed, played = ([(p, round(t, 3)) for p, t in zip(*notes[n], strict=True)] for n in ("seed", name))
        assert played[:8] == begun
        assert len({*seed} - {*played}) <= 1  # an F that follows an F is held on the grid
        assert played[-1][1] > 12  # four bars of 2.4 s follow 4.8 s
    assert not any(p.name.startswith("tmp") for p in (tmp_path / "TMPDIR").iterdir()), "its folder is left behind"


def test_the_stored_outputs_are_complete_and_say_nothing_of_the_machine():
    assert TOUR.stat().st_size < MOST_BYTES
    notebook = nbformat.read(TOUR, 4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    cells = code(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [cell.source.splitlines()[0] for cell in cells if not cell.outputs] == ["import os"]
    check_outputs(notebook)
    assert "100 files in, 100 kept, 0 left out" in text(the(notebook, "musictx.prepare("))
    assert "step 150/150" in text(the(notebook, "musictx.train("))
    for cell in notebook.cells:
        assert cell.metadata == {}
        said = cell.source + (text(cell) if cell.cell_type == "code" else "")
        assert not re.search(r"/(work|tmp|home|root|Users|opt|usr|var)\b|\x1b|\r", said), said


def test_the_tour_continues_a_chorale_that_it_does_not_train_on():
    file = "bach/bwv172.6"
    seed = score_to_grid(read_midi(packaged_bundle(CHORALE).with_suffix(".mid"), one_tempo=True))
    np.testing.assert_array_equal(seed[:16], read_chorale(file)[:16])
    names = [chorale.name for chorale in chorale_list()]
    assert not any(file.removeprefix("bach/") in name.split() for name in names[:100])


if __name__ == "__main__":
    whole = nbformat.read(TOUR, 4)
    execute(whole, TOUR.parent)
    tidy(whole)
    nbformat.write(whole, TOUR)
