"""studies/quantised.py: tiny scores in ticks, loops of our own, and a whole set of tiny archives."""

import json
import zipfile
from io import BytesIO

import numpy as np
import pytest
import quantised
from hypothesis import given, settings
from hypothesis import strategies as st
from quantised_loops import loop
from quantised_scores import NO_METER, NO_TICKS, NOT_READ, TICKS, Note, Unfit, apart, midi_of, read
from trials import trial

from musictx.music.beat_grid import find_grid
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import DRUMS

HYMN = """X: 1
M: 3/4 % time
L: 1/4
V: S1V1 clef=treble
V: S1V2
V: S2V1 clef=bass
V: S2V2
K: C
% 1
[V: S1V1] [Q:1/4=90] G | !sintro!c2 c- | c2 G | c3 |]
w: words and words
[V: S1V2] E | E2 E | E2 E | E3 |]
[V: S2V1] C | G,2 G, | G,2 C | G,3 |]
[V: S2V2] C, | C,2 C, | C,2 C, | C,3 |]
"""
TWO = "<time-modification><actual-notes>3</actual-notes><normal-notes>2</normal-notes></time-modification>"


def kern(bars, meter="2/4", bar="16cc 16dd 16ee 16ff 4gg"):
    """A keyboard score of so many equal bars."""
    rows = ["**kern\t**kern", f"*M{meter}\t*M{meter}"]
    for k in range(1, bars + 1):
        rows.append(f"={k}\t={k}")
        rows += [f"{note}\t{'4C' if i in (0, 4) else '.'}" for i, note in enumerate(bar.split())]
    return "\n".join([*rows, "==\t==", "*-\t*-", ""])


def xml(beats, unit, *bars, division=12):
    """A packed song of one part; bars are lengths of notes in twelfths of a quarter."""
    measures = []
    for k, bar in enumerate(bars):
        notes = "".join(
            f"<note><pitch><step>{'CDEFG'[i % 5]}</step><octave>5</octave></pitch><duration>{length}</duration>"
            f"<type>eighth</type>{TWO if length == 4 else ''}</note>"
            for i, length in enumerate(bar)
        )
        head = f"<divisions>{division}</divisions><time><beats>{beats}</beats><beat-type>{unit}</beat-type></time>"
        measures.append(f'<measure number="{k}">{"" if k else f"<attributes>{head}</attributes>"}{notes}</measure>')
    part = '<part-list><score-part id="P1"><part-name>Voice</part-name></score-part></part-list><part id="P1">'
    text = f'<score-partwise version="3.1">{part}{"".join(measures)}</part></score-partwise>'
    with zipfile.ZipFile(data := BytesIO(), "w") as packed:
        packed.writestr("score.xml", text)
    return data.getvalue()


def test_voices_of_a_hymn_become_parts_with_their_ties_tempo_and_upbeat():
    hymn = read(HYMN.encode(), ".abc")
    assert (hymn.signature, hymn.upbeat, hymn.tempos) == ((3, 4), TICKS, [(0, 90.0)])
    soprano, *others = (part.notes for part in hymn.parts)
    spans = [(note.on / TICKS, note.off / TICKS, note.pitch) for note in soprano]
    assert spans == [(0, 1, 67), (1, 3, 72), (3, 6, 72), (6, 7, 67), (7, 10, 72)], "tied notes are one note"
    assert [len(notes) for notes in others] == [6, 6, 6]


def test_an_upbeat_is_a_short_bar_or_the_end_of_one_that_begins_with_silence():
    hymn = read(HYMN.encode(), ".abc")
    for at, (signature, first_s, lines) in enumerate([((1, 4), 0.0, [0, 1, 4]), ((3, 4), 2.0, [0, 3, 6])]):
        heard = quantised.heard_as(quantised.with_upbeat(hymn, at)).tracks
        meter, quarter_s = heard.meter(), 60 / 90
        assert meter.signature == signature
        assert heard.merge().onset_s[0] == pytest.approx(first_s * quarter_s, abs=1e-6)
        assert meter.bars_s(3.0)[:3] == pytest.approx([line * quarter_s for line in lines], abs=1e-5)
        assert meter.whole_s == pytest.approx(lines[1] * quarter_s, abs=1e-5)


@pytest.mark.parametrize(
    ("data", "suffix", "why"),
    [
        (b"no music", ".mxl", NOT_READ),
        (kern(2, bar="28cc 28dd 28ee 28ff 28gg 28aa 28bb 4cc").encode(), ".krn", NO_TICKS),
        (kern(2).replace("=2\t=2", "=2\t=2\n*M3/4\t*M3/4").encode(), ".krn", NO_METER),
    ],
)
def test_a_score_that_does_not_fit_says_why(data, suffix, why):
    with pytest.raises(Unfit, match=why):
        read(data, suffix)


def test_of_one_pitch_at_a_time_the_longest_sounds_until_the_next():
    notes = [Note(0, 10, 60), Note(0, 20, 60), Note(15, 30, 60), Note(15, 15, 62), Note(0, 20, 64)]
    assert apart(notes) == [Note(0, 15, 60), Note(0, 20, 64), Note(15, 30, 60)]


@settings(max_examples=10)
@given(st.integers(0, 1000), st.booleans())
def test_a_loop_keeps_to_its_grid_and_its_bars(seed, swings):
    piece = loop(seed, swings)
    midi_of(piece).save(file=(file := BytesIO()))
    tracks = read_tracks(file.getvalue(), "loop")
    assert [track.name for track in tracks.tracks] == ["Drums", "Bass", "Keys", "Lead"]
    assert [track.program == DRUMS for track in tracks.tracks] == [True, False, False, False]
    grid = find_grid(tracks.merge(drums=True), tracks.meter())
    assert grid is not None
    assert grid.name == ("swing" if swings else "1/16")
    bars = np.array([tracks.tracks[3].score.onset_s[0], tracks.merge().duration_s]) / tracks.meter().bar_s
    assert 4 - 1e-6 <= bars[0] < bars[1] <= 16 + 1e-6, "the tune enters the second time"
    for part in piece.parts:
        ends = dict[int, int]()
        for note in part.notes:
            assert note.off > note.on >= ends.get(note.pitch, 0)
            ends[note.pitch] = note.off


def test_a_set_of_tiny_archives_is_the_same_each_time(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(quantised, "LENGTHS_S", (2.0, 150.0))
    waltz, triplets = xml(3, 4, [12], *[[12, 12, 12]] * 4), xml(4, 4, *[[4] * 12] * 4)
    archives: dict[str, dict[str, bytes | str]] = {
        "hymns": {"h/C/a/a.abc": HYMN, "h/C/a/b.abc": HYMN, "h/C/b/a.abc": HYMN, "h/C/c/a.txt": "no score"},
        "tunes": {"t/A/x/x.mxl": b"damaged", "t/A/y/y.mxl": xml(4, 4, *[[12] * 4] * 4), "t/B/x.mxl": waltz},
        "keyboard": {f"k/solo/x/kern/x--{k}_{who}--piece.krn": kern(6) for k, who in enumerate("aab")},
        "songs": {"s/scores/A/_/w.mxl": waltz, "s/scores/B/_/t.mxl": triplets, "s/scores/C/_/w.mxl": waltz},
    }
    for name, files in archives.items():
        with zipfile.ZipFile(f"{name}.zip", "w") as packed:
            for path in reversed(files):
                packed.writestr(path, files[path])
    words = [word for name in archives for word in (f"--{name}", f"{name}.zip")]
    trial(quantised, *words, "--out", "a", "--count", 2)
    trial(quantised, *words, "--out", "b", "--count", 2)
    files = {path.name: path.read_bytes() for path in (tmp_path / "a").glob("*.mid")}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "b").glob("*.mid")}
    sources = json.loads((tmp_path / "a/sources.json").read_text())
    assert {name: list(each["files"].values()) for name, each in sources.items()} == {
        "loop": ["our own, 0", "our own, 1"],
        "hymn": ["hymns: h/C/a/a.abc", "hymns: h/C/b/a.abc"],
        "waltz": ["songs: s/scores/A/_/w.mxl", "songs: s/scores/C/_/w.mxl"],
        "sixteenth": ["keyboard: k/solo/x/kern/x--0_a--piece.krn", "keyboard: k/solo/x/kern/x--2_b--piece.krn"],
        "tune": ["tunes: t/A/y/y.mxl", "tunes: t/B/x.mxl"],
        "swung": ["our own, 0", "songs: s/scores/B/_/t.mxl"],
    }
    assert sources["tune"]["left out"] == {NOT_READ: 1}
    assert sources["waltz"]["left out"] == {"of another kind": 1}
    assert sorted(files) == sorted(name for each in sources.values() for name in each["files"])
    grids = {}
    for name in files:
        tracks = read_tracks(read_bytes(tmp_path / "a" / name), name)
        grid = find_grid(tracks.merge(), tracks.meter())
        assert grid is not None
        grids[name] = grid.name
        assert grid.away_s(tracks.meter(), np.unique(tracks.merge().onset_s)).max() < 1e-5
    assert [grids[f"{kind}-02.mid"] for kind in ("hymn", "sixteenth", "swung")] == ["1/8", "1/16", "1/8t"]
    trial(quantised, *words, "--out", "c", "--count", 1)
    trial(quantised, *words, "--out", "d", "--count", 1, "--apart-from", "c")
    first, second = (json.loads((tmp_path / each / "sources.json").read_text()) for each in "cd")
    assert {name: list(each["files"].values()) for name, each in second.items()} == {
        "loop": ["our own, 1"],
        "hymn": ["hymns: h/C/b/a.abc"],
        "waltz": ["songs: s/scores/C/_/w.mxl"],
        "sixteenth": ["keyboard: k/solo/x/kern/x--2_b--piece.krn"],
        "tune": ["tunes: t/B/x.mxl"],
        "swung": [],  # the only one is in the first set
    }
    assert first["swung"]["files"]
    capsys.readouterr()
    monkeypatch.setattr(quantised, "works", lambda *_: pytest.fail("it reads an archive again"))
    trial(quantised, *words, "--out", "a", "--count", 2)
    assert "12 pieces" in capsys.readouterr().out
