"""New notes of a part are as it plays, and new music is not silent. The models know nothing, or like silence."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scores import PLAIN, SCORE, in_file, player
from test_score_requests import quiet

from musictx.errors import ConfigError
from musictx.generate.choose_bundle import name_accompanist, name_bundle
from musictx.generate.control import Control
from musictx.generate.requests import Accompany, Continue, Fill, Length
from musictx.generate.score_tasks import task_of
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part, Tempo
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score.slots import LEFT, RIGHT, TUNE

BARS = tuple(Bar(96 * n, 4, 4) for n in range(4))
BASS = Part("Bass", 33, tuple(Note(24 * k, 24, 28 + k % 5) for k in range(16)))
PAD = Part("Pad", 89, tuple(Note(96 * k, 96, pitch) for k in range(4) for pitch in (60, 64, 67)))
PIANO = Part("Piano", 0, tuple(Note(24 * k, 24, 60 + k % 5 + 4 * high) for k in range(16) for high in (0, 1)))
LEAD = Part("Lead", 0, tuple(Note(24 * k, 24, 70 + k % 5) for k in range(16)))  # of a track without a sound
BAND = Notation((BASS, PAD, PIANO, LEAD), BARS, 384, tempi=(Tempo(0, 120.0),))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("band")


def new_of(path, request, model=None):
    """The new notes of each part by its name."""
    (music,) = task_of(path, SCORE, request).draw(model or player(), SCORE)
    pairs = zip(music.template.notation.parts, music.template.slots, strict=True)
    return {part.name: music.added.get(slot, ()) for part, slot in pairs if slot is not None}, music


@given(st.integers(0, 99), st.sampled_from([Continue, Fill]))
@settings(max_examples=20)
def test_a_line_has_one_note_at_a_time_near_its_own_and_other_parts_more(folder, k, kind):
    path = in_file(BAND, folder)
    request = Continue(PLAIN, Length(bars=6)) if kind is Continue else Fill(PLAIN, from_bar=2, to_bar=4)
    new, music = new_of(path, replace(request, random_seed=k))
    parts = {part.name: part for part in music.notation.parts}
    for name in ("Bass", "Lead"):
        assert all(a.offset <= b.onset for a, b in pairwise(parts[name].notes))
    assert parts["Pad"].at_once == 3
    assert parts["Piano"].at_once <= 5
    assert all(28 - 12 <= note.pitch <= 32 + 12 for note in new["Bass"])
    assert all(70 - 12 <= note.pitch <= 74 + 12 for note in new["Lead"])
    assert all(60 - 12 <= note.pitch <= 67 + 12 for note in new["Pad"])


def test_a_pad_and_a_keyboard_may_have_chords_and_a_keyboard_any_pitch(folder):
    path, chords, pitches = in_file(BAND, folder), set(), set()
    for k in range(12):
        new, _ = new_of(path, Continue(PLAIN, Length(bars=6), random_seed=k))
        chords |= {name for name, notes in new.items() if len({note.onset for note in notes}) < len(notes)}
        pitches |= {note.pitch for note in new["Piano"]}
    assert {"Pad", "Piano"} == chords
    assert min(pitches) < 48
    assert max(pitches) > 76


@given(st.integers(0, 99))
@settings(max_examples=10)
def test_no_hand_has_more_notes_at_once_than_it_can_play_or_had(folder, k):
    crowd = tuple(Note(0, 24, 40 + n) for n in range(7))  # once
    hands = (replace(PIANO, group=1, notes=(*LEAD.notes,)), replace(PIANO, group=1, notes=(*crowd, *PIANO.notes[2:])))
    path = folder / "hands.musicxml"
    path.write_bytes(to_musicxml(replace(BAND, parts=hands))[0])
    _, music = new_of(path, Continue(PLAIN, Length(bars=6), random_seed=k))
    assert all(part.at_once <= most for part, most in zip(music.notation.parts, (5, 7), strict=True))
    tune = in_file(replace(BAND, parts=(replace(LEAD, program=73),)), folder)
    _, music = new_of(tune, Accompany(PLAIN, random_seed=k))
    assert max(part.at_once for part in music.notation.parts) <= 5


def test_a_horn_of_three_notes_is_a_line_too(folder):
    horn = Part("Horn", 60, tuple(Note(96 * k, 96, 50 + k) for k in range(3)))
    for k in range(6):
        _, music = new_of(in_file(replace(BAND, parts=(horn, PIANO)), folder), Continue(PLAIN, random_seed=k))
        assert music.notation.parts[0].at_once == 1


def test_one_part_goes_on_while_the_others_rest(folder):
    new, music = new_of(in_file(BAND, folder), Continue(PLAIN, Length(bars=6), only="Pad"))
    assert {name for name, notes in new.items() if notes} == {"Pad"}
    assert {note.onset >= 384 for note in new["Pad"]} == {True}
    assert len(music.notation.bars) == 10


def test_who_asks_for_notes_at_once_or_a_register_gets_them(folder):
    path = in_file(replace(BAND, parts=BAND.parts[:3]), folder)
    new, _ = new_of(path, Continue(PLAIN, Length(bars=6), control=Control(polyphony=9, strength=20.0)))
    assert len({note.onset for note in new["Bass"]}) < len(new["Bass"])
    new, _ = new_of(path, Continue(PLAIN, Length(bars=6), control=Control(register=90, strength=20.0)))
    assert max(note.pitch for note in new["Bass"]) > 44


def test_rules_that_leave_a_part_no_pitch_near_its_own_count_alone(folder):
    new, _ = new_of(in_file(BAND, folder), Continue(PLAIN, Length(bars=6), rules=Rules(lowest=70)))
    assert new["Bass"]
    assert min(note.pitch for notes in new.values() for note in notes) >= 70


@pytest.mark.parametrize("only", [None, "Bass", "Pad"])
@pytest.mark.parametrize("first", [0, 8])
def test_a_gap_is_never_left_empty(folder, only, first):
    later = tuple(Bar(96 * n, 4, 4) for n in range(4 + first))
    parts = tuple(
        replace(part, notes=tuple(note._replace(onset=note.onset + 96 * first) for note in part.notes))
        for part in BAND.parts
    )
    path = in_file(replace(BAND, parts=parts, bars=later, end=96 * (4 + first)), folder)
    new, music = new_of(path, Fill(PLAIN, from_bar=first + 1, to_bar=first + 1, only=only), quiet())
    assert len(music.new_notes) > 0
    assert {name for name, notes in new.items() if notes} <= ({only} if only else {*new})
    assert min(note.onset for notes in new.values() for note in notes) <= 96 * first + 48


@pytest.mark.parametrize(
    ("rules", "most"), [(Rules(), 96), (Rules(max_still_s=3.0), 144), (Rules(max_still_s=None), 288)]
)
def test_new_hands_wait_no_longer_than_a_bar_or_as_asked(folder, rules, most):
    tune = Part("Voice", 52, tuple(Note(24 * k, 24, 60 + k % 5) for k in range(64)))
    bars = tuple(Bar(96 * n, 4, 4) for n in range(16))
    path = in_file(Notation((tune,), bars, 1536, tempi=(Tempo(0, 120.0),)), folder)
    _, music = new_of(path, Accompany(PLAIN, rules=rules), quiet())
    onsets = sorted({0, 1536, *(note.onset for notes in music.added.values() for note in notes)})
    assert max(b - a for a, b in pairwise(onsets)) <= most
    if rules == Rules():
        assert {at % 96 for at in onsets} == {0}


def test_the_key_that_nobody_signed_is_that_of_the_given_notes(folder):
    scale = (60, 62, 64, 65, 67, 69, 71, 72, 67, 64, 60, 60)
    tune = Part("Flute", 73, tuple(Note(24 * k, 24, pitch) for k, pitch in enumerate(scale)))
    path = in_file(Notation((tune,), tuple(Bar(96 * n, 4, 4) for n in range(3)), 288, keys=()), folder)
    sharps = set()
    for k in range(4):
        _, music = new_of(path, Continue(PLAIN, Length(bars=30), random_seed=k))
        sharps.add(read_notation(to_musicxml(music.notation)[0], "musicxml")[0].keys[0].sharps)
    assert sharps == {0}


@pytest.mark.parametrize("silent", [0, 3])
def test_new_hands_begin_with_the_tune_of_a_daw_and_with_bar_1_of_a_score(folder, silent):
    tune = Part("Flute", 73, tuple(Note(96 * silent + 24 * k, 24, 60 + k % 5) for k in range(16)))
    score = Notation((tune,), tuple(Bar(96 * n, 4, 4) for n in range(4 + silent)), 96 * (4 + silent))
    first = min(bar for _, bar in task_of(in_file(score, folder), SCORE, Accompany(PLAIN)).template.free)
    assert first == silent
    (path := folder / "tune.musicxml").write_bytes(to_musicxml(score)[0])
    assert min(bar for _, bar in task_of(path, SCORE, Accompany(PLAIN)).template.free) == 0


@pytest.mark.parametrize("suffix", [".mid", ".musicxml"])
def test_a_roll_has_the_bars_of_the_score(folder, suffix):
    spans = (0, 24, 120, 216, 288)  # an upbeat, two bars, and one that completes it
    tune = Part("Flute", 73, tuple(Note(24 * k, 24, 60 + k % 5) for k in range(12)))
    score = Notation((tune,), tuple(Bar(at, 4, 4) for at in spans[:-1]), 288, tempi=(Tempo(0, 60.0),))
    path = folder / f"upbeat{suffix}"
    path.write_bytes(to_midi(score) if suffix == ".mid" else to_musicxml(score)[0])
    _, music = new_of(path, Continue(PLAIN, Length(bars=3)))
    bars = music.bars
    assert bars is not None
    spans_s = [end / 24 for _, end in music.notation.spans]
    assert bars.lines_s.tolist() == [0, *spans_s][: len(bars.lines_s)]
    assert bars.numbers[: len(spans_s)].tolist() == music.notation.numbers


@pytest.mark.parametrize("only", [None, "Line 3"])
def test_of_more_parts_than_the_ids_have_those_with_few_notes_rest(folder, only):
    parts = tuple(
        Part(f"Line {n}", 40, tuple(note._replace(pitch=50 + n) for note in LEAD.notes[: 5 + n])) for n in range(1, 21)
    )
    path = in_file(Notation(parts, BARS, 384), folder)
    new, music = new_of(path, Fill(PLAIN, from_bar=2, to_bar=2, only=only))
    assert len(new) == 14
    assert ("Line 3" in new) == (only is not None)
    unheard = {part.name: part.notes for part in music.notation.parts if part.name not in new}
    assert unheard == {part.name: part.notes for part in parts if part.name not in new}
    assert any("6 of 20 staves" in each for each in task_of(path, SCORE, Fill(PLAIN, from_bar=2, to_bar=2)).remarks)
    hands, _ = new_of(path, Accompany(PLAIN))
    assert hands["Piano"]


@pytest.mark.parametrize(("only", "tune"), [(None, "Lead"), ("Bass", "Bass"), ("2", "Bass"), ("Lead", "Lead")])
@pytest.mark.parametrize("suffix", [".mid", ".musicxml"])
def test_the_hands_go_with_the_part_that_a_person_calls_the_tune(folder, only, tune, suffix):
    band = Notation((replace(LEAD, program=80), BASS), BARS, 384)
    path = folder / f"band{suffix}"
    path.write_bytes(to_midi(band) if suffix == ".mid" else to_musicxml(band)[0])
    request = Accompany(PLAIN, only=only)
    assert name_accompanist(None, path, request).bundle == "score"
    task = task_of(path, SCORE, request)
    slots = dict(zip((part.name for part in task.template.notation.parts), task.template.slots, strict=True))
    assert [name for name, slot in slots.items() if slot == task.template.ahead == TUNE] == [tune]
    assert {slot for slot, _ in task.template.free} == {RIGHT, LEFT}
    assert len(task.seed.used) == 2


def test_a_part_with_chords_is_no_tune_and_one_that_is_missing_has_no_model(folder):
    chords = Part("Guitar", 24, tuple(note._replace(pitch=note.pitch + up) for note in LEAD.notes for up in (0, 4)))
    path = in_file(Notation((LEAD, chords), BARS, 384), folder)
    with pytest.raises(ConfigError, match=r"part=Guitar: it plays several notes at once, first in bar 1: "):
        task_of(path, SCORE, Accompany(PLAIN, only="Guitar"))
    assert name_accompanist(None, path, Accompany(PLAIN, only="Guitar")).bundle == "harmoniser"
    for choose in (
        lambda only: name_accompanist(None, path, Accompany(PLAIN, only=only)),
        lambda only: name_bundle(None, [path], request=Continue(PLAIN, only=only)),
    ):
        with pytest.raises(ConfigError, match=r"part=Tuba: give the name or number of one: 1 .*, 2 Guitar"):
            choose("Tuba")


def test_a_wide_line_of_a_keyboard_is_one_tune_if_a_person_says_so(folder):
    wide = replace(LEAD, notes=tuple(note._replace(pitch=48 + 24 * (n % 2)) for n, note in enumerate(LEAD.notes)))
    for parts in ((wide,), (wide, BASS)):
        path = in_file(Notation(parts, BARS, 384), folder)
        task = task_of(path, SCORE, Accompany(PLAIN, only="Lead"))
        assert task.template.ahead == TUNE
        assert {slot for slot, _ in task.template.free} == {RIGHT, LEFT}
        (music,) = task.draw(player(), SCORE)
        assert music.notation.parts[0].notes == wide.notes


def test_a_hand_beside_a_voice_is_no_tune(folder):
    right = replace(PIANO, group=1, notes=tuple(note for note in LEAD.notes))
    left = replace(right, notes=())
    voice = replace(LEAD, name="Voice", program=52)
    (path := folder / "song.musicxml").write_bytes(to_musicxml(Notation((voice, right, left), BARS, 384))[0])
    with pytest.raises(ConfigError, match="part=Piano: it is a hand of a keyboard"):
        task_of(path, SCORE, Accompany(PLAIN, only="Piano"))
