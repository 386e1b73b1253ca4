"""`make docs`: a site in which every link and anchor leads somewhere, and whose reference has what import gives."""

import re
import sys

from conftest import ROOT

import musictx

sys.path.insert(0, str(ROOT / "tools"))
from docs_site import build


def test_the_site_is_built_strictly_with_all_pages_and_the_reference(tmp_path):
    site = build(tmp_path / "site").parent
    for page in (*(ROOT / "docs").rglob("*.md"),):
        name = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / name / "index.html").exists() or name.name == "index", name
    home = (site / "index.html").read_text()
    assert re.search(r'<audio[^>]*src="img/elise-1\.flac"', home)
    assert (site / "img" / "elise-1.flac").stat().st_size > 10_000
    assert "fonts.googleapis" not in home  # it fetches nothing from elsewhere
    door = (site / "reference" / "python" / "index.html").read_text()
    for each in musictx.__all__:
        assert each.startswith("_") or f'id="musictx.{each}"' in door, each
    assert "seed_seconds=" in (site / "reference" / "settings" / "index.html").read_text()
