"""`make docs`: the page of the front door, and the way from it to every room."""

import re
import sys

from conftest import ROOT

import musictx

sys.path.insert(0, str(ROOT / "tools"))
from reference import render


def test_the_front_door_has_what_import_gives_and_leads_to_every_room(tmp_path, monkeypatch):
    monkeypatch.setattr(musictx, "__all__", [*musictx.__all__])
    render(tmp_path, r"musictx\.\w+\.\w+")  # the rooms, without their modules
    door = (tmp_path / "musictx.html").read_text()
    for place in ("load", "Model.continue_midi", "Music.write", "Score.onset_s", "UserError", "train"):
        assert f'id="{place}"' in door, place
    rooms = {file.parent.name for file in (ROOT / "musictx").glob("*/*.py")}
    assert rooms <= set(re.findall(r'href="musictx/(\w+)\.html"', door))
    assert rooms <= {page.stem for page in (tmp_path / "musictx").iterdir()}
