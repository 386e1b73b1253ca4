"""Pages of notation: marks that a score has are printed, and those that it hides are not."""

import io
import re
import time
from html import escape

import numpy as np
import pytest
from notated import NOTE, XML
from PIL import Image

from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.viz.engraving import engrave, pages_of, write_notation

MARK = XML.format(notes=NOTE.format("C", 12)).replace("<per-minute>90", "<per-minute>{}")
ONE_BAR = Notation((Part("a", 0, (Note(0, 96, 60),)),), (Bar(0, 4, 4),), 96)
HIDDEN = MARK.replace("<metronome>", '<metronome print-object="no">')


def text_of(page):
    return re.sub(r"\s+", "", re.sub("<style.*?</style>|<[^>]*>", "", page, flags=re.DOTALL))


@pytest.mark.parametrize("speed", [90, 57])
def test_a_page_has_the_mark_of_a_tempo_unless_it_is_hidden(speed):
    (page,), (other,) = (pages_of(each.format(speed).encode(), is_long=True) for each in (MARK, HIDDEN))
    assert f"={speed}" in text_of(page)
    assert "=" not in text_of(other)


def test_a_picture_has_the_note_of_a_tempo(tmp_path):
    ink = list[int]()
    for unit in ("quarter", "whole"):  # one is black, the other has no stem
        engrave(MARK.replace("quarter", unit).format(90).encode(), path := tmp_path / f"{unit}.png")
        ink.append(int((np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("L"))[:120] < 128).sum()))
    assert ink[0] != ink[1]


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_equal_scores_are_equal_bytes(tmp_path, suffix, monkeypatch):
    made = set[bytes]()
    for now in (time.gmtime(1e9), time.gmtime(1.5e9)):
        monkeypatch.setattr(time, "gmtime", lambda *_, now=now: now)
        write_notation(ONE_BAR, path := tmp_path / f"it.{suffix}", "it")
        made.add(path.read_bytes())
    assert len(made) == 1


@pytest.mark.parametrize("name", ["Ann Bee", "Ann & <Bee>", "W" * 99])
def test_who_wrote_the_music_stands_above_it(tmp_path, name):
    about = f'<creator type="composer">{escape(name)}</creator><creator type="lyricist">C. Dee</creator>'
    head = f"<work><work-title>A Song</work-title></work><identification>{about}</identification>"
    text = XML.format(notes=NOTE.format("C", 24)).replace("<part-list>", head + "<part-list>")
    (page,) = pages_of(text.encode(), is_long=True)
    words = {"A Song", "C. Dee", escape(name if len(name) < 35 else name[:11] + "…")}
    assert set(re.findall("|".join(re.escape(each) for each in words), page)) == words
    two = text.replace("<creator", '<creator type="composer">Dee Eff</creator><creator', 1)
    (page,) = pages_of(two.encode(), is_long=True)
    assert "Dee Eff" in page
    assert len(name) > 35 or f"Dee Eff, {escape(name)}" in page
    own = '<credit page="1"><credit-words>My own words</credit-words></credit>'
    for its in (own, own.replace(' page="1"', "")):
        (page,) = pages_of(text.replace("<part-list>", its + "<part-list>").encode(), is_long=True)
        assert "My own words" in page
        assert "C. Dee" not in page


@pytest.mark.parametrize("title", ["Tune", "A much longer title of <Dances> & Songs", "W" * 200, "one more & " * 30])
def test_a_picture_has_its_title_in_the_middle(tmp_path, title):
    begin, rest = XML.format(notes=NOTE.format("C", 12)).split("<part-list>")
    pictures = []
    for head in ("", f"<work><work-title>{escape(title)}</work-title></work>"):
        engrave(f"{begin}{head}<part-list>{rest}".encode(), tmp_path / "it.png")
        pictures.append(np.asarray(Image.open(tmp_path / "it.png").convert("L")) < 128)
    plain, titled = pictures
    rows = np.flatnonzero(titled.any(1))
    ink = np.flatnonzero(titled[: rows[np.argmax(np.diff(rows) > 8)] + 1].any(0))  # columns of the first line
    assert len(ink) > 10
    assert ink[0] > 10
    assert abs((ink[0] + ink[-1]) / 2 - titled.shape[1] / 2) < 10
    assert np.argmax(plain.any(1)) < 60
