"""Scores written as MusicXML and pages: voices, note heads, keyboards, and what comes back."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import ok, refused
from hypothesis import given, settings
from hypothesis import strategies as st
from notated import ABC, KERN, midi_of, notes
from PIL import Image
from strategies import notations

from musictx.errors import UserError
from musictx.music.notation.chord_symbols import ChordSymbol
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.note_heads import ONE, pieces
from musictx.music.notation.parts import MODES, Bar, Clef, Key, Note, Part, Tempo, Transposed
from musictx.music.notation.read import read_notation
from musictx.music.notation.spelling import spelled
from musictx.music.notation.voices import chords_of, in_voices
from musictx.music.notation.write import to_musicxml
from musictx.viz.engraving import write_notation


def test_a_name_that_xml_cannot_say_is_written_without_it(tmp_path):
    part = Part("Pi\x01a\x00no\ud800", 0, (Note(0, 24, 60),))
    notation = Notation((part,), (Bar(0, 4, 4),), 96)
    write_notation(notation, tmp_path / "a.png", "\x02title")
    assert read_notation(to_musicxml(notation, "\x1b")[0], "musicxml")[0].parts[0].name == "Pi a no"


@given(notations())
@settings(max_examples=15)
def test_a_score_comes_back_from_musicxml_and_what_does_not_is_counted(notation):
    text, losses = to_musicxml(notation)
    assert to_musicxml(notation)[0] == text
    sounds = re.findall(rb'<score-instrument id="(.*?)"', text)
    assert len({*sounds}) == len(sounds) >= len(re.findall(rb"<score-part ", text))
    found, unread = read_notation(text, "musicxml")
    assert not unread
    assert [x.onset for x in found.bars] == [x.onset for x in notation.bars]
    if all(end - bar.onset == bar.full for bar, end in notation.spans):
        assert found.bars == notation.bars
    assert (found.end, found.keys, found.tempi) == (notation.end, notation.keys, notation.tempi)
    few = [voices_needed(part.notes) <= 4 for part in notation.parts]
    assert losses["voices"] == 0 or not all(few)
    together = {n for same in notation.instruments for n in same}  # "Staff 1" and "Staff 2" are a piano's two
    lost = 0
    for n, (mine, back) in enumerate(zip(notation.parts, found.parts, strict=True)):
        sung = tuple(each._replace(voice=0) for each in back.lyrics)
        assert back.name == mine.name or (n in together and "Staff" not in back.name)
        assert (mine.program, mine.lyrics) == (back.program, sung)
        assert {(x.onset, x.pitch) for x in back.notes} == {(x.onset, x.pitch) for x in mine.notes}
        lost += len({*mine.notes} - {*back.notes})
    assert lost == losses.total()


CLEFS = (("G", 2, 0), ("G", 2, -1), ("G", 2, 1), ("G", 1, 0), ("F", 4, 0), ("F", 4, -1), ("F", 3, 0), ("C", 3, 0))


@given(notations(), st.data())
@settings(max_examples=15)
def test_clefs_modes_and_marks_of_tempo_come_back(notation, data):
    def signs(values, places):
        """One of the values at each place, none twice running."""
        drawn = [data.draw(st.sampled_from(values)) for _ in places]
        return [pair for n, pair in enumerate(zip(places, drawn, strict=True)) if not n or drawn[n - 1] != drawn[n]]

    clefs = tuple(Clef(at, *clef) for at, clef in signs(CLEFS, [bar.onset for bar in notation.bars]))
    notation = replace(
        notation,
        parts=tuple(replace(part, clefs=clefs * (n < 2)) for n, part in enumerate(notation.parts)),
        keys=tuple(key._replace(mode=data.draw(st.sampled_from(["", *MODES]))) for key in notation.keys),
        tempi=tuple(tempo._replace(beat=data.draw(st.sampled_from([0, 12, 24, 36, 48]))) for tempo in notation.tempi),
    )
    found, _ = read_notation(to_musicxml(notation)[0], "musicxml")
    assert [(key.onset, key.sharps, key.mode) for key in found.keys] == [tuple(key) for key in notation.keys]
    assert [(at, pytest.approx(speed, abs=0.01), beat) for at, speed, beat in found.tempi] == [*notation.tempi]
    for part, back in zip(notation.parts, found.parts, strict=True):
        assert back.clefs == part.clefs or (not part.clefs and [clef.onset for clef in back.clefs] == [0])


def test_without_a_tempo_none_is_written():
    notation = Notation((Part("a", 0, (Note(0, 24, 60),)),), (Bar(0, 4, 4),), 96)
    text, _ = to_musicxml(notation)
    assert b"tempo" not in text
    assert b"per-minute" not in text
    said = to_musicxml(replace(notation, tempi=(Tempo(0, 90.0, 36), Tempo(48, 70.0, 0))))[0].decode()
    assert re.findall(r"<beat-unit(?:-dot)?\b|<per-minute>60<|sound tempo=\"\d+", said) == [
        "<beat-unit",
        "<beat-unit-dot",
        "<per-minute>60<",
        'sound tempo="90',
        'sound tempo="70',
    ]


def test_a_staff_without_a_clef_has_one_for_the_notes_that_its_player_reads():
    guitar = Part("Guitar", 24, (Note(0, 96, 50),), transposed=(Transposed(0, -12),))
    notation = Notation((guitar, replace(guitar, name="Bass", transposed=())), (Bar(0, 4, 4),), 96)
    found, _ = read_notation(to_musicxml(notation)[0], "musicxml")
    assert [part.clefs for part in found.parts] == [(Clef(0, "G", 2),), (Clef(0, "F", 4),)]


def test_a_key_and_a_tempo_within_a_bar_move_no_note():
    music = tuple(Note(24 * n, 24, 60 + n) for n in range(8))
    keys, tempi = (Key(0, 1), Key(24, 2), Key(72, -3), Key(96, 0)), (Tempo(0, 100.0), Tempo(12, 90.0), Tempo(90, 80.0))
    part = Part("a", 0, music, clefs=(Clef(0, "G", 2),))
    notation = Notation((part,), (Bar(0, 4, 4), Bar(96, 4, 4)), 192, keys, tempi)
    assert read_notation(to_musicxml(notation)[0], "musicxml") == (notation, {})


def voices_needed(notes):
    """Most lengths that sound at one time."""
    spans = {(note.onset, note.offset) for note in notes}
    return max(sum(a <= at < b for a, b in spans) for at, _ in spans)


def test_stems_of_two_voices_point_away_from_each_other():
    upper = [Note(12 * n, 12, 84) for n in range(8)]
    music = tuple(sorted([*upper, Note(0, 48, 60), Note(48, 48, 62)]))
    text = to_musicxml(Notation((Part("", 0, music),), (Bar(0, 4, 4),), 96))[0].decode()
    stems = re.findall(r"<step>(.)</step>(?:(?!</note>).)*<stem>(.*?)</stem>", text, re.DOTALL)
    assert stems == [("C", "up")] * 8 + [("C", "down"), ("D", "down")]


@given(st.integers(0, 95), st.integers(1, 400))
def test_pieces_are_note_heads_and_add_up(at, length):
    heads = list(pieces(at, length))
    assert sum(heads) == length
    assert {*heads} <= {*ONE}
    assert len(heads) <= 3 + length // 96 * 2 + 4


@given(notations())
def test_no_voice_overlaps_itself_and_no_note_is_lost(notation):
    for part, names in zip(notation.parts, spelled(notation), strict=True):
        voices = in_voices(chords_of(part.notes, names))
        assert len(voices) <= 4
        for voice in voices:
            assert all(a.offset <= b.onset for a, b in pairwise(voice))
        assert sum(len(chord.names) for voice in voices for chord in voice) == len(part.notes)


def test_a_keyboard_has_the_name_of_either_staff():
    hands = tuple(Note(24 * n, 24, 72) for n in range(4)), tuple(Note(24 * n, 24, 48) for n in range(4))
    for names in (("", "Keyboard"), ("Keyboard", ""), ("Keyboard", "Keyboard")):
        parts = tuple(Part(name, 0, hand) for name, hand in zip(names, hands, strict=True))
        text, _ = to_musicxml(Notation(parts, (Bar(0, 4, 4),), 96))
        assert {part.name for part in read_notation(text, "musicxml")[0].parts} == {"Keyboard"}


def test_a_key_that_nobody_says_is_found_and_a_keyboard_gets_two_staves():
    scale = [41, 57, 60, 65, 69, 67, 65, 64, 62, 60, 58, 57, 55, 53]
    part = Part("Piano", 0, tuple(Note(24 * n, 24, pitch) for n, pitch in enumerate(scale)))
    notation = Notation((part,), (Bar(0, 4, 4),), 24 * len(scale), keys=()).on_two_staves()
    assert [[note.pitch for note in staff.notes] for staff in notation.parts] == [
        [60, 65, 69, 67, 65, 64, 62, 60],
        [41, 57, 58, 57, 55, 53],
    ]
    assert notation.keyboards == [(0, 1)]
    text, _ = to_musicxml(notation)
    assert text.count(b"<part ") == 1
    assert read_notation(text, "musicxml")[0].keys == (Key(0, -1),)
    voice = Notation((Part("Voice", 52, part.notes),), (Bar(0, 4, 4),), 336, keys=())
    assert voice.on_two_staves() == voice


@pytest.mark.parametrize("name", ["a.png", "a.svg", "a.pdf", "a.musicxml"])
def test_pages_have_ink_and_never_a_half_file(tmp_path, name, monkeypatch):
    notation, _ = read_notation(KERN.encode(), "humdrum")
    write_notation(notation, tmp_path / name, "it")
    data = (tmp_path / name).read_bytes()
    assert data[:4] == {"a.png": b"\x89PNG", "a.pdf": b"%PDF", "a.svg": b"<svg", "a.musicxml": b"<?xm"}[name]
    if name == "a.png":
        assert 0.01 < (np.asarray(Image.open(tmp_path / name).convert("L")) < 128).mean() < 0.3
    monkeypatch.setitem(sys.modules, "verovio", None)
    if name != "a.musicxml":
        with pytest.raises(UserError, match="package verovio"):
            write_notation(notation, tmp_path / f"b{name}", "it")
        assert not (tmp_path / f"b{name}").exists()


def test_names_of_parts_are_printed_on_any_system(tmp_path):
    pages = []
    for name in "nnn", "uuu":  # as wide, so only letters can differ
        notation = Notation((Part(name, 52, (Note(0, 96, 72),)), Part("A", 0, (Note(0, 96, 60),))), (Bar(0, 4, 4),), 96)
        write_notation(notation, tmp_path / f"{name}.png", "it")
        pages.append((tmp_path / f"{name}.png").read_bytes())
    assert pages[0] != pages[1]


def test_pages_are_engraved_in_any_thread(tmp_path):
    """partitura imports verovio, whose fonts then belong to that thread."""
    code = """
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from notated import ABC
from musictx.music.notation.read import read_notation
from musictx.viz.engraving import write_notation
notation, _ = read_notation(ABC.encode(), "abc")
with ThreadPoolExecutor(1) as pool:
    pool.submit(write_notation, notation, Path("a.svg"), "").result()
write_notation(notation, Path("b.svg"), "")
"""
    tests = Path(__file__).parents[1]
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tests, tests.parent)))}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=paths, capture_output=True, check=False)
    assert (done.returncode, {*os.listdir(tmp_path)}) == (0, {"a.svg", "b.svg"}), done.stderr


def test_render_writes_a_score_that_comes_back(tmp_path):
    (tmp_path / "a.abc").write_text(ABC)
    ok(["musictx", "render", "a.abc", "out=a.musicxml"], tmp_path)
    again = read_notation((tmp_path / "a.musicxml").read_bytes(), "musicxml")[0]
    assert notes(again) == notes(read_notation(ABC.encode(), "abc")[0])
    assert [(bar.onset, bar.numerator) for bar in again.bars] == [(0, 3), (24, 3), (96, 3)]
    assert "is a performance, not a score" in refused(
        ["musictx", "render", "elise", "out=e.pdf", "score=true"], tmp_path
    )
    (tmp_path / "d.mid").write_bytes(midi_of([[(0, 0, 60)], [(9, 0, 36), (9, 480, 36)]]))
    said = ok(["musictx", "render", "d.mid", "score=true", "out=d.musicxml"], tmp_path).stdout
    assert "1 staff, 1 bar; 2 drum notes are left out" in said


def test_a_keyboard_has_two_staves_of_one_instrument_and_a_choir_none():
    line, chords = (Note(0, 24, 72), Note(24, 24, 74)), (Note(0, 48, 60), Note(0, 48, 64), Note(24, 24, 55))
    low = tuple(note._replace(pitch=note.pitch - 24) for note in chords)
    voice, right, left = Part("", 0, line), Part("", 0, chords), Part("", 0, low)
    parts = {(voice, right, left): [(1, 2)], (right, left): [(0, 1)], (voice, left): [(0, 1)]}
    choir = [Part("", 0, tuple(note._replace(pitch=note.pitch - 6 * n) for note in line)) for n in range(4)]
    parts |= {tuple(choir): [], (*choir, right, left): [(4, 5)]}
    parts |= {(Part("Voice", 0, line), Part("Piano", 0, low)): [], (right, Part("Piano", 0, low)): [(0, 1)]}
    for staves, pairs in parts.items():
        assert Notation(staves, (Bar(0, 4, 4),), 96).keyboards == pairs


@pytest.mark.parametrize(
    ("semitones", "step", "sharps"), [(-2, "D", 3), (-9, "A", 4), (-12, "C", 1), (3, "A", 4), (0, "C", 1)]
)
def test_a_transposing_staff_is_written_as_its_player_reads_it(semitones, step, sharps):
    notes = tuple(Note(24 * k, 24, 72 + k % 2) for k in range(4))
    moved = (Transposed(0, semitones),) if semitones else ()
    parts = Part("Tune", 0, notes), Part("Clarinet", 71, notes, transposed=moved)
    symbols = (ChordSymbol(0, "G", "dominant"),)
    notation = Notation(parts, (Bar(0, 4, 4),), 96, keys=(Key(0, 1),), symbols=symbols)
    text, losses = to_musicxml(notation)
    own = re.findall(r'<part id="[^"]*">.*?</part>', text.decode(), re.DOTALL)[1]
    assert re.findall(r"<step>(\w)</step>", own)[0] == step
    assert re.findall(r"<fifths>(-?\d)</fifths>", own) == [str(sharps)]
    again, more = read_notation(text, "musicxml")
    assert [part.notes for part in again.parts] == [notes, notes]
    assert [part.transposed for part in again.parts] == [(), moved]
    assert (again.keys, [each.root for each in again.symbols]) == (notation.keys, [each.root for each in symbols])
    assert not losses + more
    many = replace(notation, keys=(Key(0, 6),))  # with more than seven signs it is written as it sounds
    again, _ = read_notation(to_musicxml(many)[0], "musicxml")
    assert (again.keys, again.parts[1].notes) == (many.keys, notes)
    far = replace(notation, parts=(replace(parts[1], transposed=(Transposed(0, 999),)),))
    again, _ = read_notation(to_musicxml(far)[0], "musicxml")
    assert ([part.notes for part in again.parts], [each.root for each in again.symbols]) == ([notes], ["G"])
    alone = replace(notation, parts=parts[1:])
    again, _ = read_notation(to_musicxml(alone)[0], "musicxml")
    assert ([part.notes for part in again.parts], [each.root for each in again.symbols]) == ([notes], [symbols[0].root])


def _again(notation):
    return read_notation(to_musicxml(notation)[0], "musicxml")[0]


LINE = (Note(0, 24, 72), Note(24, 24, 74))


@pytest.mark.parametrize("program", [0, 19, 40, 52])
@pytest.mark.parametrize("groups", [(0, 1, 1), (0, 0, 0), (0, 0, 2), (0, 1, 2)])
@pytest.mark.parametrize("silent", [None, 1, 2])
def test_the_instruments_of_a_file_come_back_whatever_their_staves_play(program, groups, silent):
    """Also lines, staves without notes, and those that lie above the higher ones."""
    staves = [Part("Same", program, () if n == silent else LINE, group=group) for n, group in enumerate(groups)]
    notation = Notation(tuple(staves), (Bar(0, 4, 4),), 96)
    again = _again(notation)
    assert [part.group for part in again.parts] == [*groups]
    assert again.instruments == notation.instruments
    assert [part.notes for part in again.parts] == [part.notes for part in staves]
    assert to_musicxml(notation)[0].count(b"<score-part ") == len(set(groups))


def test_two_voices_of_abc_are_one_instrument_in_a_brace_alone():
    def keyboards(order):
        text = f"X:1\n%%score {order}\nL:1/4\nK:C\nV:1\n[CE]GBc|\nV:2\nC,G,C,G,|\n"
        return read_notation(text.encode(), "abc")[0].keyboards

    assert [keyboards(order) for order in ("1 2", "[1 2]", "{1 2}", "{(1) | (2)}")] == [[], [], [(0, 1)], [(0, 1)]]


@pytest.mark.parametrize("place", range(4))
def test_chord_symbols_come_back_over_their_staff(place):
    parts = (
        Part("Alto Sax", 65, LINE, transposed=(Transposed(0, -9),), group=0),
        Part("Piano", 0, LINE, group=1),
        Part("Piano", 0, LINE, group=1),
        Part("Guitar", 24, LINE, transposed=(Transposed(0, -12),), group=3),
    )
    symbols = (ChordSymbol(0, "C", "major", staff=place), ChordSymbol(36, "G", "dominant", bass="B", staff=place))
    assert _again(Notation(parts, (Bar(0, 4, 4),), 96, symbols=symbols)).symbols == symbols


def test_symbols_stay_over_their_staff_when_a_keyboard_above_gets_two():
    wide = tuple(Note(0, 24, pitch) for pitch in (36, 60, 84))
    symbols = (ChordSymbol(0, "C", "major", staff=1),)
    score = Notation((Part("", 0, wide), Part("Guitar", 24, LINE)), (Bar(0, 4, 4),), 96, symbols=symbols)
    divided = score.on_two_staves()
    assert divided.parts[divided.symbols[0].staff].name == "Guitar"
    whole, _ = replace(score, parts=score.parts[::-1], symbols=()).with_texts(score, 96, 96)
    assert whole.parts[whole.symbols[0].staff].name == "Guitar"


@pytest.mark.parametrize(
    ("lengths", "numbers"),
    [
        ((96, 96, 72, 24, 96), [1, 2, 3, 3, 4]),  # a repeat sign within bar 3
        ((24, 96, 72, 24, 96), [0, 1, 2, 2, 3]),
        ((24, 96, 48, 48, 48, 48, 72), [0, 1, 2, 2, 3, 3, 4]),
        ((96, 72, 96), [1, 2, 3]),
        ((96,), [1]),
    ],
)
def test_a_bar_that_a_repeat_sign_divides_counts_once(lengths, numbers):
    onsets = [sum(lengths[:n]) for n in range(len(lengths))]
    part = Part("a", 0, tuple(Note(at, 24, 60) for at in onsets))
    notation = Notation((part,), tuple(Bar(at, 4, 4) for at in onsets), sum(lengths))
    assert notation.numbers == numbers
    text = to_musicxml(notation)[0].decode()
    written = re.findall(r'<measure implicit="(yes|no)" number="(\d+)(a?)"', text)
    before = [0, *numbers]
    assert written == [
        ("yes" if n == last else "no", str(n), "a" * (0 < n == last)) for n, last in zip(numbers, before, strict=False)
    ]
    assert read_notation(text.encode(), "musicxml")[0].bars == notation.bars


@pytest.mark.parametrize(
    ("tempo", "beat", "speed"),
    [("3/8=70", 36, 105), ("1/2=30", 48, 60), ("5/8=60", 24, 150), ("1/3=60", 24, 80), ("64/1=60", 24, 1000)],
)
def test_a_mark_of_tempo_names_a_note_head_and_keeps_its_speed(tempo, beat, speed):
    notation, _ = read_notation(f"X:1\nM:4/4\nL:1/4\nQ:{tempo}\nK:C\ncdef|\n".encode(), "abc")
    assert notation.tempi == (Tempo(0, speed, beat),)
    assert read_notation(to_musicxml(notation)[0], "musicxml")[0].tempi == notation.tempi


def test_a_clef_between_notes_of_the_second_voice_comes_back_there():
    high, first, second = Note(0, 96, 72), Note(0, 48, 60), Note(48, 48, 48)
    clefs, voices = (Clef(0, "G", 2), Clef(48, "F", 4)), {high: (1,), first: (2,), second: (2,)}
    part = Part("x", 0, (first, high, second), clefs=clefs, voices=voices)
    text, _ = to_musicxml(Notation((part,), (Bar(0, 4, 4),), 96))
    assert read_notation(text, "musicxml")[0].parts[0].clefs == clefs


def test_music_that_went_through_midi_has_the_marks_of_its_score_again():
    part = Part("x", 0, tuple(Note(24 * n, 24, 60 + n) for n in range(8)))
    tempi = (Tempo(0, 120.0, 0), Tempo(96, 90.0, 36))
    given = Notation((part,), (Bar(0, 4, 4), Bar(96, 4, 4)), 192, (Key(0, 0, "dorian"), Key(96, 2, "major")), tempi)
    back, _ = from_midi(to_midi(given))
    assert (back.keys, back.tempi) != (given.keys, given.tempi)
    whole, _ = back.with_texts(given, np.inf, np.inf)
    assert (whole.keys, [(*each[:1], round(each[1]), *each[2:]) for each in whole.tempi]) == (
        given.keys,
        [*given.tempi],
    )


def test_a_printed_tempo_counts_before_one_that_is_only_played():
    high, low = (Part(name, 40, (Note(0, 96, 60),)) for name in ("a", "b"))
    text, _ = to_musicxml(Notation((high, low), (Bar(0, 4, 4),), 96, tempi=(Tempo(0, 120.0, 36),)))
    heard = '<direction><direction-type><words/></direction-type><sound tempo="90"/></direction>'
    first, second = text.decode().split("</attributes>", 1)
    found, _ = read_notation(f"{first}</attributes>{heard}{second}".encode(), "musicxml")
    assert found.tempi == (Tempo(0, 120.0, 36),)


def test_a_key_and_a_clef_that_change_within_a_rest_come_back():
    notes = (Note(0, 24, 60), Note(96, 96, 61))
    part = Part("Flute", 73, notes, clefs=(Clef(0, "G", 2), Clef(72, "F", 4)))
    notation = Notation((part,), (Bar(0, 4, 4), Bar(96, 4, 4)), 192, keys=(Key(0, 0), Key(48, 3), Key(96, -2)))
    again, _ = read_notation(to_musicxml(notation)[0], "musicxml")
    assert (again.keys, again.parts[0].clefs) == (notation.keys, part.clefs)
    assert again.parts[0].notes == notes
