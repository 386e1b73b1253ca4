"""New notes of scores are led to chords and keys, bar by bar; what is given stays. The models know nothing."""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from stubs import Said

from musictx.errors import ConfigError
from musictx.generate.control import Control
from musictx.generate.filters import softmax
from musictx.generate.primer import Part as Region
from musictx.generate.requests import Accompany, Continue, Fill, Length, Sampling
from musictx.generate.score_control import ScoreSteering, bar_lines, chord_places, in_key
from musictx.generate.score_tasks import task_of
from musictx.generate.scores import AroundParts, Script
from musictx.music.harmony import key_classes, key_sharps, parse_chord, parse_chords
from musictx.music.midi_file import read_events
from musictx.music.notation.chord_symbols import symbol_named
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.rules import Limits, Row

SCORE = ScoreTokenizer()
PLAIN = Sampling(guard=False, seed_guidance=None)
TUNE = Part("Voice", 52, (Note(0, 24, 67), *(Note(24 + 24 * k, 24, 60 + 4 * (k % 3)) for k in range(9))))
BASS = Part("Cello", 42, (Note(24, 72, 48), Note(96, 72, 41), Note(168, 72, 43)))
BARS = (Bar(0, 3, 4), *(Bar(24 + 72 * k, 3, 4) for k in range(3)))  # an upbeat
SONG = Notation((TUNE, BASS), BARS, 240, keys=(Key(0, 0),))


def player():
    """Likes pitches around middle C, new places more than further notes, and no end of a bar."""
    away = np.where(SCORE.pitch >= 0, ((SCORE.pitch - 60) / 12) ** 2, 0.0)

    def say(length, rows):
        noise = np.random.default_rng(length).normal(size=SCORE.vocab.size)
        liked = (
            -away - 2.0 * (np.arange(SCORE.vocab.size) >= SCORE.long0) - 3.0 * (np.arange(SCORE.vocab.size) < SCORE.at0)
        )
        return np.tile((noise + liked).astype(np.float32), (rows, 1))

    said = Said(say)
    said.window = None
    return said


@pytest.fixture
def song(tmp_path):
    (tmp_path / "song.mid").write_bytes(to_midi(SONG))
    return tmp_path / "song.mid"


@pytest.fixture
def tune(tmp_path):
    (tmp_path / "tune.mid").write_bytes(to_midi(replace(SONG, parts=(TUNE,))))
    return tmp_path / "tune.mid"


def drawn(path, request):
    (music,) = task_of(path, SCORE, request).draw(player(), SCORE)
    return music


def new_notes(music):
    return [note for notes in music.added.values() for note in notes]


def share(music, text, lines):
    """How much of the time of new notes is in its chord; `lines` are bar lines."""
    within = total = 0
    line = parse_chords(text)
    places = [
        (lines[n] + round((at % 1) * (lines[n + 1] - lines[n])), chord)
        for n in range(len(lines) - 1)
        for at, chord in zip(line.begins, line.chords, strict=True)
        if int(at) == n % line.length
    ]
    for note in new_notes(music):
        for (begin, chord), end in zip(places, [*(at for at, _ in places[1:]), lines[-1]], strict=True):
            sounds = max(min(note.offset, end) - max(note.onset, begin), 0)
            total += sounds
            within += sounds * (note.pitch % 12 in chord.classes)
    return within / total


@pytest.mark.parametrize("text", ["C | F# Am", "Dm7 | G7 | C+D+E"])
def test_new_bars_take_the_chords_of_their_bars_and_beats(song, text):
    lines, was = [240 + 72 * k for k in range(7)], read_events(song.read_bytes()).tracks
    request = Continue(PLAIN, Length(bars=6), control=Control(chords=text))
    music, plain = drawn(song, request), drawn(song, Continue(PLAIN, Length(bars=6)))
    assert share(music, text, lines) > 0.8
    assert share(plain, text, lines) < 0.5
    now = read_events(music.midi()).tracks
    assert all(not Counter(old.events) - Counter(new.events) for old, new in zip(was, now, strict=True))
    assert music.became == f"{share(music, text, lines):.0%} in chords"
    assert [chord.from_s for chord in music.chords[:2]] == [5.0, 6.5]  # bars of 1.5 s
    harder = replace(request, control=replace(request.control, strength=20.0))
    assert share(drawn(song, harder), text, lines) > 0.99


@pytest.mark.parametrize(
    ("onsets", "grid", "places"),
    [
        ([0, 5, 10, 14, 19], "auto", {0, 3, 4, 6, 8, 9, 12, 15, 16, 18, 20, 21}),  # quintuplets got the nearest places
        ([0, 6, 12, 18], "auto", {0, 6, 12, 18}),
        ([0, 5, 10, 14, 19], "off", {*range(24)}),
    ],
)
def test_new_notes_begin_where_notation_has_places(onsets, grid, places):
    notes = tuple(Note(24 * k + onset, 4, 60) for k in range(8) for onset in onsets)
    seed, none = Notation((Part("", 0, notes),), tuple(Bar(96 * n, 4, 4) for n in range(2)), 192), np.zeros(1, bool)
    limits = Limits.after(seed, none, none, Rules(grid=grid), 0.02)
    assert {*np.flatnonzero(limits.places)} == places
    assert {*np.flatnonzero(limits.ends)} >= places


def test_no_chord_climbs_until_a_pitch_is_right(song):
    """The model wants A above G, and the chord is C."""
    control = Control(chords="C")
    template = task_of(song, SCORE, Continue(PLAIN, Length(bars=1), control=control)).template
    none, script = np.zeros(SCORE.ahead0, bool), Script.of(template, SCORE)
    row = Row(SCORE, Limits.after(template.seed, none, none, Rules(), template.unit_s))
    for i in script.before.tolist():
        row.take(i)
    grammar = AroundParts(row, script, 1)
    steering = ScoreSteering(control, template, grammar)
    while not grammar.draws(0):
        grammar.update(np.array([script.ids[grammar.at[0]]]))
    wanted = np.full((1, SCORE.vocab.size), -20.0)
    wanted[0, [SCORE.pitch0 + 69, SCORE.at0 + 24]] = 0.0
    shares = []
    for i in (SCORE.at0, SCORE.length0 + 23, SCORE.pitch0 + 67):
        grammar.update(np.array([i]))
        legal = np.where(grammar.legal(), wanted, -np.inf)
        shares.append([float(softmax(each)[0, steering.pitches].sum()) for each in (legal, steering(legal)[0])])
    assert shares[1] == pytest.approx([1.0, 1.0])  # a note must come
    assert shares[2][0] == pytest.approx(0.5, abs=0.01)
    assert shares[2][1] < 0.01  # and here none


def test_chords_of_a_fill_begin_with_the_gap_and_change_one_part_alone(song):
    control = Control(chords="F# | B", strength=20.0)
    music = drawn(song, Fill(PLAIN, from_bar=2, to_bar=3, only="Cello", control=control))
    assert share(music, "F# | B", [96, 168, 240]) > 0.99
    assert music.notation.parts[0] == TUNE
    assert BASS.notes[0] in music.notation.parts[1].notes


def test_an_upbeat_is_no_bar_of_chords(tune):
    task = task_of(tune, SCORE, Accompany(control=Control(chords="C | F | G")))
    assert bar_lines(task.template) == [24, 96, 168, 240]
    music = drawn(tune, Accompany(control=Control(chords="C | F | G", strength=20.0)))
    assert share(music, "C | F | G", [24, 96, 168, 240]) > 0.99
    assert music.notation.parts[0] == TUNE
    assert all(note.pitch % 12 in (0, 4, 7) for note in new_notes(music) if note.onset < 24)


def test_chords_are_found_in_the_bars_before_or_in_the_tune(song, tmp_path):
    notes = [Note(24 + 24 * k, 24, 60 + step) for k, step in enumerate((0, 4, 7, 5, 9, 12, 7, 4, 0))]
    (sung := tmp_path / "sung.mid").write_bytes(to_midi(replace(SONG, parts=(replace(TUNE, notes=tuple(notes)),))))
    for path, request, says in (
        (song, Continue(PLAIN, Length(bars=1), control=Control(chords="seed")), "C | F | C"),
        (song, Fill(PLAIN, from_bar=3, to_bar=3, control=Control(chords="seed")), "C | F"),
        (sung, Accompany(control=Control(chords="seed")), "C | F | C"),
    ):
        task = task_of(path, SCORE, request)
        found = task.request.control.chords or ""
        assert f"{path}: its chords are {found}" in task.remarks
        assert len(found.split("|")) == len(says.split("|"))
        assert [parse_chord(name.strip()).root for name in found.split("|")] == [
            parse_chord(name.strip()).root for name in says.split("|")
        ]


def lead_sheet(tmp_path):
    """The song in four bars after an upbeat, with symbols over it, one of them before its bar and one unknown."""
    names = {0: "G7", 24: "C", 72: "Dbm7b5/G", 108: "F", 132: "C7alt"}
    named = ((at, symbol_named(name)) for at, name in names.items())
    symbols = tuple(symbol._replace(onset=at) for at, symbol in named if symbol)
    path = tmp_path / "lead.musicxml"
    path.write_bytes(to_musicxml(replace(SONG, parts=(TUNE,), symbols=symbols))[0])
    return path, symbols


def test_the_chords_of_a_lead_sheet_are_its_symbols(tmp_path):
    path, _ = lead_sheet(tmp_path)
    for request in (Accompany(), Continue(PLAIN, Length(bars=1))):
        task = task_of(path, SCORE, replace(request, control=Control(chords="seed")))
        first, second, third = (task.request.control.chords or "").split(" | ")
        assert first == "C C Dbm7b5"
        assert second.split()[:3] == ["Dbm7b5", "F", "F"]
        heard = {*second.split()[3:]}  # the chord of the notes, where the symbol is not known
        assert any(each.startswith(f"{path}: 1 chord symbol is not known (C7alt); its bar") for each in task.remarks)
        assert (len(second.split()), len(heard), len(third.split())) == (6, 1, 1)


def test_a_line_names_symbols_that_are_not_known_where_no_other_leads(tmp_path):
    """Also the one that goes on from before the gap."""
    named = ((at, symbol_named(name)) for at, name in {0: "C7alt", 108: "Dwhole/G", 132: "F7alt"}.items())
    symbols = tuple(symbol._replace(onset=at) for at, symbol in named if symbol)
    assert len(symbols) == 2  # the second is no chord at all
    path = tmp_path / "lead.musicxml"
    path.write_bytes(to_musicxml(replace(SONG, parts=(TUNE,), symbols=symbols))[0])
    for bars, said in (
        ((1, 1), "1 chord symbol is not known (C7alt)"),
        ((1, 2), "2 chord symbols are not known (C7alt,"),
    ):
        task = task_of(path, SCORE, Fill(PLAIN, from_bar=bars[0], to_bar=bars[1]))
        assert task.request.control.chords is None
        assert any(each.startswith(f"{path}: {said}") and "do not follow" in each for each in task.remarks)


@pytest.mark.parametrize("request_of", [Accompany, lambda **asked: Fill(from_bar=1, to_bar=2, **asked)])
def test_new_notes_follow_the_chord_symbols_over_them_unless_a_person_says_else(tmp_path, request_of):
    names = {24: "F#7", 96: "B", 132: "F#7", 168: "B"}
    named = ((at, symbol_named(name)) for at, name in names.items())
    symbols = tuple(symbol._replace(onset=at) for at, symbol in named if symbol)
    (path := tmp_path / "lead.musicxml").write_bytes(to_musicxml(replace(SONG, parts=(TUNE,), symbols=symbols))[0])
    written = "F#7 | B F#7 | B"
    music = drawn(path, request_of())
    assert any("chord symbols" in each for each in music.remarks)
    assert [each.name for each in music.chords] == [*names.values()][: 4 if len(bar_lines(music.template)) == 4 else 3]
    bar = [note for note in new_notes(music) if note.onset >= 24]
    assert share(replace(music, added={0: bar}), written, [24, 96, 168, 240]) > 0.9
    for asked in ({"control": Control(strength=0.0)}, {"control": Control(key="C")}, {"rules": Rules(scale="C major")}):
        free = task_of(path, SCORE, request_of(**asked))
        assert free.request.control.chords is None
        assert not any("chord symbols" in each for each in free.remarks)
    own = task_of(path, SCORE, request_of(control=Control(chords="C | G")))
    assert own.request.control.chords == "C | G"


def test_a_symbol_goes_on_but_for_the_only_one_of_a_score(tmp_path):
    far, other = symbol_named("F#7"), symbol_named("B")
    assert far is not None
    assert other is not None
    bars = tuple(Bar(96 * k, 4, 4) for k in range(4))
    tune = Part("Voice", 52, tuple(Note(24 * k, 24, 60 + k % 3) for k in range(16)))
    (path := tmp_path / "lead.musicxml").write_bytes(to_musicxml(Notation((tune,), bars, 384, symbols=(far,)))[0])
    found = [task_of(path, SCORE, Fill(from_bar=k, to_bar=k)).request.control.chords for k in (1, 2, 3, 4)]
    assert found == ["F#7", "F#7", None, None]
    both = (far, other._replace(onset=288))
    path.write_bytes(to_musicxml(Notation((tune,), bars, 384, symbols=both))[0])
    found = [task_of(path, SCORE, Fill(from_bar=k, to_bar=k)).request.control.chords for k in (1, 2, 3, 4)]
    assert found == ["F#7", "F#7", "F#7", "B"]
    both = (far._replace(kind="none", root=""), other._replace(onset=96))
    path.write_bytes(
        to_musicxml(
            Notation((tune,), bars, 384, symbols=(far, both[0]._replace(onset=96), both[1]._replace(onset=192)))
        )[0]
    )
    led = task_of(path, SCORE, Fill(from_bar=1, to_bar=4)).request.control
    assert led.chords == "F#7 | N.C. | B | B"
    assert led.line is not None
    assert len(led.line.chords[1].classes) == 12  # no chord: any note


def test_new_music_keeps_the_symbols_of_its_seed_and_says_that_midi_lacks_them(tmp_path):
    path, symbols = lead_sheet(tmp_path)
    for request in (Accompany(), Continue(PLAIN, Length(bars=1)), Fill(PLAIN, from_bar=2, to_bar=2)):
        music = drawn(path, request)
        assert music.notation.symbols == symbols
        music.write(tmp_path / "new.musicxml")
        assert read_notation((tmp_path / "new.musicxml").read_bytes(), "musicxml")[0].symbols == symbols
        assert music.write(tmp_path / "new.mid") == "5 chord symbols are left out of MIDI"
    begun = drawn(path, Continue(PLAIN, Length(bars=1), part=Region(bars=1)))
    assert begun.notation.symbols == symbols[:3]


def test_places_of_chords_are_units_and_the_line_begins_again():
    begins, chords = chord_places(parse_chords("C C F | G"), [24, 96, 168, 216])
    assert begins == [24, 72, 96, 168, 200]  # the last bar is shorter
    assert [sorted(classes) for classes in chords] == [[0, 4, 7], [0, 5, 9], [2, 7, 11], [0, 4, 7], [0, 5, 9]]


def test_new_bars_have_the_key_and_its_signature(song):
    request = Continue(PLAIN, Length(bars=4), control=Control(key="F# minor", strength=20.0))
    task = task_of(song, SCORE, request)
    script = Script.of(task.template, SCORE)
    three = SCORE.vocab.id("KEY", 10)
    is_key = [i for i in script.ids if SCORE.key0 <= i < SCORE.ahead0]
    assert is_key == [three] * 5  # the bars, and the one after them
    assert SCORE.vocab.id("KEY", 7) in script.before
    assert three not in script.before
    music = drawn(song, request)
    assert all(note.pitch % 12 in key_classes("F# minor") for note in new_notes(music))
    assert music.became == "100% in F# minor"
    assert music.notation.keys == (Key(0, 0), Key(240, 3, "minor"))
    again, _ = from_midi(music.midi())
    assert again.keys == music.notation.keys


def test_a_key_needs_no_signature_of_its_own(song, tmp_path):
    assert drawn(song, Continue(PLAIN, Length(bars=1), control=Control(key="Am"))).notation.keys == (Key(0, 0),)
    gap = Fill(PLAIN, from_bar=1, to_bar=1, control=Control(key="E major", strength=20.0))
    music = drawn(song, gap)  # the bars of a gap keep theirs
    assert music.notation.keys == (Key(0, 0),)
    assert all(note.pitch % 12 in key_classes("E major") for note in new_notes(music))
    unsigned = tmp_path / "unsigned.mid"
    unsigned.write_bytes(to_midi(replace(SONG, keys=())))
    task = task_of(unsigned, SCORE, Continue(PLAIN, Length(bars=1)))
    assert in_key(task.template, "E major").notation.keys == ()
    said = re.findall(rb"<fifths>(-?\d+)<", to_musicxml(replace(SONG, keys=()))[0])
    for include_seed in (True, False):  # new notes say no key
        request = Continue(PLAIN, Length(bars=4), include_seed=include_seed, control=Control(key="E major"))
        written = to_musicxml(replace(drawn(unsigned, request).notation, keys=()))[0]
        assert set(re.findall(rb"<fifths>(-?\d+)<", written)) == set(said)


@pytest.mark.parametrize(
    ("key", "sharps"),
    [("C", 0), ("F# minor", 3), ("Bbm", -5), ("Gb", -6), ("C# major", 7), ("D# major", -3), ("Fb", 4)],
)
def test_the_signature_of_a_key(key, sharps):
    assert key_sharps(key) == sharps


def test_a_variation_does_not_depend_on_the_others(song):
    request = Continue(PLAIN, Length(bars=2), control=Control(chords="F#", density=4), variations=2)
    task = task_of(song, SCORE, request)
    both = task.draw(player(), SCORE)
    one_by_one = task._replace(request=replace(request, rows_at_once=1)).draw(player(), SCORE)
    assert [music.added for music in both] == [music.added for music in one_by_one]
    assert both[0].added != both[1].added


@pytest.mark.parametrize(
    ("control", "says"),
    [
        (Control(loudness=80), "loudness=80: a score has no loudness: humanize=true gives it one"),
        (Control(chords="C", bar_seconds=2.0), "bar_seconds=2.0: a score has bars of its own"),
        (Control(chords="0 C, 2 F"), "chords='0 C, 2 F': chords in a score last bars and beats: give bars, as in"),
        (Control(chords="C", particles=4), "particles=4: a score is drawn part by part: give 1, or auto"),
        (Control(chords="seed", key="F#"), "chords=.*outside key=F#"),
    ],
)
def test_targets_that_no_score_can_have_are_one_line(song, control, says):
    with pytest.raises(ConfigError, match=says) as refused:
        drawn(song, Continue(PLAIN, control=control))
    assert "\n" not in str(refused.value)


def test_chords_are_not_found_where_nothing_comes_before(song):
    with pytest.raises(ConfigError, match=r"song\.mid: chords=seed: no notes come before"):
        drawn(song, Fill(PLAIN, from_bar=1, to_bar=1, control=Control(chords="seed")))


def test_new_bars_alone_have_no_symbols_of_the_seed(tmp_path):
    path, _ = lead_sheet(tmp_path)
    (music,) = task_of(path, SCORE, Continue(PLAIN, Length(bars=4), include_seed=False)).draw(player(), SCORE)
    assert music.notation.symbols == ()
    assert not music.lost_in_midi()
