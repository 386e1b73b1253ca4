"""The score encoding: parts in bars, whose ids keep every note, and the rules of new ones."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ids, notations

from musictx.data.prepare import content_key
from musictx.errors import ConfigError, TokenError
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.rules import ScoreRules
from musictx.tokenizers.score.slots import slots_of

SCORE = ScoreTokenizer()
FREE = Rules(max_note_s=3600, max_silence_s=3600, max_still_s=None, grid="off")
NOTHING = np.zeros(0, np.uint16)
BARS = (Bar(0, 3, 4), Bar(24, 3, 4))  # an upbeat
SONG = Notation(
    (
        Part("Voice", 52, (Note(0, 24, 67), Note(24, 48, 72), Note(72, 24, 71))),
        Part("Piano", 0, (Note(24, 24, 64), Note(24, 24, 67), Note(24, 72, 60))),
        Part("Piano", 0, (Note(24, 100, 48), Note(48, 8, 43))),
    ),
    BARS,
    96,
    (Key(0, 1),),
)


def words(stream):
    return " ".join(SCORE.vocab.describe(i).replace(" ", "") for i in stream.tolist())


def all_notes(notation):
    return sorted(note for part in notation.parts for note in part.notes)


def test_a_tune_is_a_bar_ahead_of_the_hands():
    assert words(SCORE.encode_notation(SONG)) == (
        "METER_43 SPAN AT24 KEY8 AHEAD0 AT0 LENGTH24 PITCH67 BAR "
        "METER_43 KEY8 AHEAD0 AT0 LENGTH48 PITCH72 AT48 LENGTH24 PITCH71 PART1 PART2 BAR "
        "PART1 AT0 LENGTH72 PITCH60 LENGTH24 PITCH64 PITCH67 PART2 AT0 LONG1 LENGTH4 PITCH48 AT24 LENGTH8 PITCH43 BAR"
    )
    together = words(SCORE.encode_notation(SONG, ahead=None))
    assert together.startswith(
        "METER_43 SPAN AT24 KEY8 PART0 AT0 LENGTH24 PITCH67 PART1 PART2 BAR METER_43 KEY8 PART0 AT0"
    )
    assert words(SCORE.encode_notation(SONG, ahead=1)).startswith(
        "METER_43 SPAN AT24 KEY8 AHEAD1 BAR METER_43 KEY8 AHEAD1 AT0"
    )


def kept_keys(notation):
    """Those of bars, where they change."""
    by_bar = [next(key.sharps for key in reversed(notation.keys) if key.onset <= bar.onset) for bar in notation.bars]
    borders = zip([None, *by_bar], by_bar, notation.bars, strict=False)
    return tuple(Key(bar.onset, sharps) for before, sharps, bar in borders if before != sharps)


@given(notations(), st.sampled_from([None, 0, 1, 2, 3]))
def test_every_note_and_bar_comes_back_whoever_is_ahead(notation, ahead):
    stream = SCORE.encode_notation(notation, ahead)
    found = SCORE.decode_notation(stream)
    assert all_notes(found) == all_notes(notation)
    assert (found.bars, found.end) == (notation.bars, notation.end)
    assert found.keys == kept_keys(notation)
    slots = slots_of(notation.on_two_staves())
    by_slot = [part for _, part in sorted(zip(slots, notation.on_two_staves().parts, strict=True)) if part.notes]
    assert [part.notes for part in found.parts] == [part.notes for part in by_slot]
    assert SCORE.seconds(stream) == pytest.approx(notation.end / 48)


@given(notations(), st.integers(-5, 5))
def test_transposing_ids_transposes_the_music(notation, semitones):
    higher = SCORE.decode_notation(SCORE.transpose(SCORE.encode_notation(notation), semitones))
    assert all_notes(higher) == [note._replace(pitch=note.pitch + semitones) for note in all_notes(notation)]
    for key in notation.keys:
        moved = [each.sharps for each in higher.keys if each.onset <= key.onset][-1]
        assert (moved - key.sharps - 7 * semitones) % 12 == 0
        assert semitones == 0 or -5 <= moved <= 6


@given(notations(), st.sampled_from([-7, -6, 7]), st.integers(-5, 5))
def test_a_transposed_score_has_the_same_key_for_duplicates(notation, sharps, semitones):
    ids = SCORE.encode_notation(replace(notation, keys=(Key(0, sharps),)))
    assert content_key(SCORE.transpose(ids, semitones), SCORE) == content_key(ids, SCORE)


@given(notations(), st.data())
def test_a_window_has_the_notes_of_its_own_bars(notation, data):
    stream = SCORE.encode_notation(notation)
    ends = np.flatnonzero(stream == SCORE.bar) + 1
    first, last = sorted(data.draw(st.lists(st.sampled_from([0, *ends.tolist()]), min_size=2, max_size=2)))
    found = all_notes(SCORE.decode_notation(stream[first:last]))
    pitches = SCORE.pitch[stream[first:last]]
    assert sorted(note.pitch for note in found) == sorted(pitches[pitches >= 0])


def test_parts_have_their_places():
    def slots(*parts):
        return slots_of(Notation(tuple(parts), (Bar(0, 4, 4),), 96))

    high, low = (Note(0, 24, 72), Note(24, 24, 74)), (Note(0, 24, 43),)
    chords = (Note(0, 24, 60), Note(0, 24, 64), Note(24, 24, 62), Note(24, 24, 65))
    voice, bass = Part("Voice", 52, high), Part("Bass", 32, low)
    right, left = Part("Piano", 0, chords), Part("Piano", 0, low)
    assert slots(voice, right, left) == [0, 1, 2]
    assert slots(bass, voice) == [3, 0]
    assert slots(Part("Low", 68, (Note(0, 24, 64),)), voice) == [0, 3]
    assert slots(right, left, bass) == [1, 2, 0]
    assert slots(right) == [1]
    assert slots(replace(right, notes=tuple(note._replace(pitch=note.pitch - 24) for note in chords))) == [2]
    assert slots(Part("Silent", 0, ()), voice) == [None, 0]
    strings = Part("Strings", 48, chords)
    assert slots(strings, voice, strings) == [3, 0, 4]
    with pytest.raises(TokenError, match="14 parts beside a tune and two hands: give at most 13"):
        slots(*[strings] * 14)


@pytest.mark.parametrize(("bar", "says"), [(Bar(0, 69, 4), "69/4"), (Bar(0, 3, 64), "3/64")])
def test_a_meter_that_the_ids_lack_is_named(bar, says):
    with pytest.raises(TokenError, match=says):
        SCORE.encode_notation(Notation((Part("", 0, (Note(0, 9, 60),)),), (bar,), bar.full))


def test_a_bar_that_is_too_long_is_named():
    with pytest.raises(TokenError, match="bar 2 lasts 40 quarters"):
        SCORE.encode_notation(Notation((Part("", 0, (Note(0, 9, 60),)),), (Bar(0, 4, 4), Bar(96, 4, 4)), 96 + 960))


@given(notations(), st.sampled_from([None, 0, 1]))
def test_what_composers_write_is_legal(notation, ahead):
    whole = [Bar(0, *bar[1:]) for bar in notation.bars]
    starts = np.cumsum([0, *(bar.full for bar in whole)]).tolist()
    bars = tuple(bar._replace(onset=at) for bar, at in zip(whole, starts, strict=False))
    end = starts[-1]
    parts = tuple(
        replace(part, notes=tuple(note for note in part.notes if note.offset <= end)) for part in notation.parts
    )
    if not any(part.notes for part in parts):
        return
    stream = SCORE.encode_notation(Notation(parts, bars, end), ahead)
    leads = (stream >= SCORE.ahead0) & (stream < SCORE.part0)
    stream = stream[: np.flatnonzero(stream == SCORE.bar)[-1 - leads.any()] + 1]  # a bar with all parts is next
    row = ScoreRules(SCORE, FREE, [NOTHING], [0.5])
    for i in stream.tolist():
        assert row.legal()[0, i], SCORE.vocab.describe(i)
        row.update(np.array([i]))


RULES = st.builds(
    Rules,
    max_note_s=st.sampled_from(["auto", 0.01, 0.5, 30]),
    max_still_s=st.sampled_from(["auto", None, 0.1, 2]),
    max_silence_s=st.sampled_from([0.1, 5.0]),
    max_polyphony=st.sampled_from([None, 1, 3]),
    grid=st.sampled_from(["auto", "off", "1/8", "1/16t"]),
    lowest=st.sampled_from([0, 60]),
    highest=st.sampled_from([60, 127]),
    scale=st.sampled_from([None, "C major"]),
)


@given(st.one_of(st.none(), notations()), st.sampled_from([None, 0, 1]), RULES, st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_whatever_is_drawn_is_a_score_as_it_is_written(seed, ahead, rules, random_seed):
    prompt = NOTHING if seed is None else SCORE.encode_notation(seed, ahead)
    if ahead is not None and len(prompt):
        prompt = prompt[: np.flatnonzero(prompt == SCORE.bar)[-2:][0] + 1]  # the tune goes on
    chance, row = np.random.default_rng(random_seed), ScoreRules(SCORE, rules, [prompt], [0.5])
    new: list[int] = []
    while len(new) < 200 or new[-1] != SCORE.bar:
        legal = row.legal()[0]
        weights = legal * np.where(np.arange(len(legal)) >= SCORE.at0, 1.0, 30.0)  # more bars than notes
        new.append(int(chance.choice(len(legal), p=weights / weights.sum())))
        row.update(np.array(new[-1:]))
    stream = np.append(prompt, np.array(new)).astype(np.uint16)
    placed, bars, _ = SCORE.placed(stream)
    mine = [each for each in placed if each.token >= len(prompt)]
    pitches = rules.pitches()
    for each in mine:
        assert pitches[each.note.pitch]
        bar = next(bar for bar in reversed(bars) if bar.onset <= each.note.onset)
        if rules.grid == "1/8":
            assert (each.note.onset - bar.onset) % 24 in (0, 12)
    assert len({(each.slot, *each.note) for each in placed}) == len(placed) or seed is not None
    if seed is None:
        again = SCORE.decode_notation(stream)
        leads = next((i - SCORE.ahead0 for i in new if SCORE.ahead0 <= i < SCORE.part0), None)
        assert sorted(all_notes(again)) == sorted(each.note for each in placed)
        assert leads is None or leads < 16


def test_a_new_bar_has_a_meter_of_the_seed_and_all_parts_in_order():
    prompt = SCORE.encode_notation(SONG, ahead=None)
    row = ScoreRules(SCORE, FREE, [prompt], [0.5])
    seen = []
    for _ in range(7):
        legal = row.legal()[0]
        allowed = {i: SCORE.vocab.describe(i).split()[0] for i in np.flatnonzero(legal).tolist()}
        seen.append(sorted(set(allowed.values())))
        row.update(np.array([next(i for i, kind in allowed.items() if kind in ("PART", "BAR", "METER_4", "KEY"))]))
    after = ["AT", "PART"]
    assert seen == [["METER_4"], ["KEY"], ["PART"], after, after, ["AT", "BAR"], ["METER_4"]]


def test_new_notes_keep_to_the_seeds_grid():
    prompt = SCORE.encode_notation(SONG, ahead=None)
    row = ScoreRules(SCORE, Rules(max_still_s=None), [prompt], [0.5])
    for word in ("METER_4 3", "KEY 8", "PART 0"):
        kind, value = word.split()
        row.update(np.array([SCORE.vocab.id(kind, int(value))]))
    places = np.flatnonzero(row.legal()[0][SCORE.at0 : SCORE.long0])
    assert places.tolist() == [0, 12, 24, 36, 48, 60]  # it has onsets on quarters, and eighths are the coarsest grid


def test_a_swing_grid_is_refused():
    with pytest.raises(ConfigError, match="exact places"):
        ScoreRules(SCORE, Rules(grid="swing"), [NOTHING], [0.5])


def test_silence_ends_in_time():
    bars = (Bar(0, 4, 4), Bar(96, 4, 4))
    seed = Notation((Part("", 0, (Note(0, 24, 60),)),), bars, 192)
    row = ScoreRules(SCORE, Rules(max_still_s=2.0), [SCORE.encode_notation(seed)], [0.5])
    for word in ("METER_4 4", "KEY 7", "PART 0"):
        kind, value = word.split()
        row.update(np.array([SCORE.vocab.id(kind, int(value))]))
    legal = row.legal()[0]
    assert not legal[SCORE.bar]
    assert np.flatnonzero(legal[SCORE.at0 : SCORE.long0]).tolist() == [0]  # 4 s without a note are more than 2 s


@given(ids(SCORE.vocab))
def test_the_trace_of_any_ids_names_the_token_that_begins_each_note(stream):
    stream = SCORE.vocab.music(stream)
    trace = SCORE.trace(stream, 0.5)
    assert trace.score == SCORE.decode(stream)
    assert (SCORE.pitch[stream[trace.struck_by]] == trace.score.pitch).all()
    assert (trace.note[trace.struck_by] == np.arange(len(trace.score))).all()
    for (t, n), (_, later) in pairwise(enumerate(trace.note.tolist())):
        if n >= 0 and SCORE.pitch[stream[t]] < 0:
            assert later == n  # a place and a length belong to the note that follows
