"""Music with a beat, without a page: its bar lines, where new music begins, and lengths in bars."""

import json
import re
from base64 import b64decode
from html import unescape

import numpy as np
import pytest
from stubs import whole
from waltz import BEAT_S, waltz
from wishes import more, now, quiet, region

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.open_bundle import open_bundle
from musictx.generate.requests import Length
from musictx.model.packaged import FOLDER
from musictx.music.beat_grid import bars_of
from musictx.web import stage
from musictx.web.session import Session
from musictx.web.studio import Studio


@pytest.fixture
def studio(world, tmp_path):
    (tmp_path / "made").mkdir()
    return Studio({"piano": open_bundle(world.bundle)}, tmp_path / "made")


@pytest.fixture
def begun(studio, tmp_path):
    return studio.upload(Session(), waltz(tmp_path / "Ein Walzer (2).mid").read_bytes(), "Ein Walzer (2).mid")


def roll(page):
    return json.loads(unescape(re.findall(r'data-roll="([^"]+)"', page)[0]))


def test_bar_lines_are_numbered_and_the_beats_are_where_the_mark_snaps(studio, begun):
    page = studio.show(begun)
    beats = np.array(roll(page)["beats"])
    assert beats == pytest.approx(BEAT_S * np.arange(len(beats)))
    assert len(beats) == 28
    wide, narrow = (b64decode(svg).decode() for svg in re.findall(r'base64,([^"]+)"', page))
    for picture in (wide, narrow):
        assert ">bars, and seconds<" in picture
        assert ">8<" in picture
        assert ">9<" in picture  # the line after the last note
    bars = bars_of(now(begun).score, now(begun).meter, now(begun).score.duration_s)
    assert bars is not None
    assert bars.numbers.tolist() == list(range(10))  # an upbeat is not bar 1
    assert "Ein Walzer (2)" in wide
    assert 'download="Ein Walzer (2).mid"' in page


def test_the_grid_is_said_and_kept(studio, begun):
    said = "Its notes lie on a grid of 1/8, and so will new ones."
    assert said in now(begun).music.note
    for from_s, begins_s in ((2.19, 5 * BEAT_S), (5 * BEAT_S, 5 * BEAT_S), (2.3, 2.3), (99.0, 27 * BEAT_S)):
        from_s = min(from_s, now(begun).score.duration_s)
        after, _ = whole(studio.go_on(begun, more(from_s, 3.0), quiet))
        for take in now(after).takes:
            assert take.new_from_s == pytest.approx(begins_s)
            eighths = take.new_notes.onset_s / (BEAT_S / 2)
            assert np.abs(eighths - np.rint(eighths)).max() < 1e-6
        assert f"{now(after).name}.mid" == "Ein Walzer (2)-1.mid"
        assert ">bars, and seconds<" in b64decode(re.findall(r'base64,([^"]+)"', studio.show(after))[0]).decode()


def test_new_music_is_asked_for_in_bars(studio, begun):
    request = more(3 * BEAT_S)
    after, _ = whole(studio.go_on(begun, request.__class__(**vars(request) | {"length": Length(bars=2)}), quiet))
    assert all(take.score.duration_s <= 9 * BEAT_S + 1e-6 for take in now(after).takes)
    assert any(take.score.duration_s > 6 * BEAT_S for take in now(after).takes)
    studio.limits = Limits(length_s=2.0)
    with pytest.raises(UserError, match=r"^bars=2: they last 3 s.* at most 2 s"):
        whole(studio.go_on(begun, request.__class__(**vars(request) | {"length": Length(bars=2)}), quiet))


def test_a_recording_has_neither_bars_nor_beats(studio):
    begun = studio.upload(Session(), (FOLDER / "elise.mid").read_bytes(), "elise.mid")
    page = studio.show(begun)
    assert roll(page)["beats"] == []
    assert ">seconds<" in b64decode(re.findall(r'base64,([^"]+)"', page)[0]).decode()
    assert "grid" not in now(begun).music.note
    after, _ = whole(studio.go_on(begun, more(2.345, 1.0), quiet))
    assert now(after).takes[0].new_from_s == pytest.approx(2.345, abs=0.006)


def test_a_region_lies_between_the_beats_that_are_meant(filling, tmp_path):
    (tmp_path / "made").mkdir()
    studio = Studio({"able": open_bundle(filling)}, tmp_path / "made")
    begun = studio.upload(Session(), waltz(tmp_path / "waltz.mid").read_bytes(), "waltz.mid")
    step = BEAT_S / 4 if studio.models["able"].tokenizer.metrical else 0.01
    after, _ = whole(studio.fill(begun, region(round(5 * BEAT_S, 2), round(8 * BEAT_S, 2)), quiet))
    for take in now(after).takes:
        assert (take.new_from_s, take.new_to_s) == pytest.approx((5 * BEAT_S, 8 * BEAT_S), abs=step)
    assert stage.begins_s(now(begun)) in (*roll(studio.show(begun))["beats"], now(begun).score.duration_s)
