"""New music stays as dense, full, high and low as its seed, leaves loops, and strikes no key on and on."""

from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stubs import Said, restless

from musictx.generate.character import Bounds, Character, Follower, at_notes, bounds_of, mean_of
from musictx.generate.control import Control
from musictx.generate.draw import continue_primers
from musictx.generate.engine import ByChance
from musictx.generate.model import Model
from musictx.generate.primer import Primer
from musictx.generate.requests import PLAIN, Continue, Length
from musictx.music.score import Meter, Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer, with_added
from musictx.tokenizers.gap import ADDED, with_gap_clock
from musictx.tokenizers.rules import Rules

PIANO = build_tokenizer("performance")


def music(onset_s, pitch, length_s=0.25):
    onset_s = np.array(onset_s, float)
    return Score(onset_s, onset_s + length_s, pitch, [80] * len(pitch), 0.5)


def ids_of(score):
    return PIANO.encode(score)


def test_each_note_is_measured():
    """A chord twice, half a second apart, then one of its keys alone: literal values."""
    notes = at_notes(ids_of(music([0, 0, 0.5, 0.5, 1.0], [60, 64, 60, 64, 64])), PIANO)
    mean = 5 / 1.25
    fade, key = np.exp(-0.25), np.exp(-1 / 8)
    assert [(note.polyphony, note.run, note.pitch) for note in notes] == [
        (1, 0, 60),
        (2, 0, 64),
        (1, 0, 60),  # runs are known from a whole onset on
        (2, 0, 64),
        (1, 3, 64),  # the second chord was the first one again
    ]
    assert [note.again for note in notes] == pytest.approx([1, 1, 1 + key, 1 + key, 1 + key + key**2])
    first = mean + 0.5
    assert notes[0].density == pytest.approx(first)
    assert notes[2].density == pytest.approx((first + 0.5) * fade + 0.5)


def test_a_run_is_found_in_any_order_within_an_onset():
    """Four chords come again, each from its other end: the last note is the twelfth of a run."""
    chords = [(48, 60, 64), (50, 62, 65), (48, 64, 67), (47, 55, 62)]
    ids = []
    for order in (1, -1):
        for chord in chords:
            keys = [PIANO.vocab.id("NOTE_ON", key) for key in chord[::order]]
            ids += [PIANO.vocab.id("VELOCITY", 20), *keys, PIANO.vocab.id("TIME_SHIFT", 50)]
            ids += [PIANO.vocab.id("NOTE_OFF", key) for key in chord]
    notes = at_notes(np.array(ids, np.uint16), PIANO)
    assert [note.run for note in notes] == [0] * 15 + [4, 5, 6, 7, 8, 9, 10, 11, 12]


@st.composite
def scores(draw):
    n = draw(st.integers(1, 30))
    onset_s = np.cumsum(draw(st.lists(st.sampled_from([0.0, 0.02, 0.25, 0.5]), min_size=n, max_size=n)))
    pitch = draw(st.lists(st.integers(50, 56), min_size=n, max_size=n))
    length_s = np.array(draw(st.lists(st.sampled_from([0.1, 0.4, 1.5]), min_size=n, max_size=n)))
    return music(onset_s, pitch, length_s)


def by_definition(score):
    """Each note's run and the sounding notes, with sets of whole onsets and every earlier place compared."""
    onsets: list[list[int]] = []
    last_s, found = -1.0, []
    for at_s, key in zip(score.onset_s, score.pitch.tolist(), strict=True):
        if at_s - last_s > 0.05 + 1e-9:
            onsets.append([])
            last_s = at_s
        now, before = onsets[-1], [frozenset(onset) for onset in onsets[:-1]]
        longest = 0
        for j in range(len(before) - 1):
            back, notes = 1, 0
            while j - back + 1 >= 0 and before[j - back + 1] == before[-back]:
                notes += len(before[-back])
                back += 1
            if notes and set(now) <= before[j + 1] and key in before[j + 1] and key not in now:
                longest = max(longest, notes + len(set(now)) + 1)
        now.append(key)
        found.append(longest)
    return found


@given(scores())
def test_runs_are_those_by_definition(score):
    heard = PIANO.decode(ids_of(score), 0.5)  # as the encoding can say it
    assert [note.run for note in at_notes(ids_of(heard), PIANO)] == by_definition(heard)


@given(scores())
def test_a_seed_is_within_its_own_bounds(score):
    """What a `Character` adds to the ids of the seed itself is mostly nothing."""
    ids, held = ids_of(score), 0
    character = Character([bounds_of([ids], PIANO)], PIANO, [np.zeros(0, np.uint16)])
    character.rows = [Follower(PIANO, mean_of(ids, PIANO))]
    for i in ids.tolist():
        character()
        character.update([i])
        held += int(min(character.more[0, i], character.each[0, i]) < -0.7)
    assert held <= 0.1 * len(ids) + 2


def free(ids):
    return Character([Bounds()] * len(ids), PIANO, ids)


def test_nothing_is_led_without_a_seed():
    assert bounds_of([], PIANO) == Bounds() == bounds_of([np.zeros(0, np.uint16)], PIANO)
    assert [np.abs(more).max() for more in free([ids_of(music([0, 0.5], [60, 60]))])()] == [0.0, 0.0]


LONG = Continue(PLAIN, Length(seconds=30.0), include_seed=False, random_seed=1)


def drawn(model, seed, guard=True, **more):
    primer = Primer(seed, seed.duration_s, Meter(0.5))
    request = replace(LONG, sampling=replace(PLAIN, guard=guard), **more)
    return continue_primers([primer], model, PIANO, request)[0][0].score


SEED = music(np.arange(24) * 0.5, [60, 62, 64, 65, 67, 69, 71, 72] * 3, 0.45)  # a scale, two notes a second


def figures(notes):
    """Notes a second, semitones outside of the seed's range, notes at once, and their mean pitch."""
    pitch = notes.pitch.astype(int)
    outside = np.maximum(60 - pitch, pitch - 72).clip(0)
    sounding = [note.polyphony for note in at_notes(ids_of(notes), PIANO)]
    return len(notes) / 30, outside.mean(), np.mean(sounding), pitch.mean()


def test_density_range_and_polyphony_stay_near_the_seed():
    """The model likes any key, and many at once. The seed has two notes a second, from 60 to 72, one at a time."""
    density, outside, sounding, _ = figures(drawn(restless(PIANO), SEED))
    assert (0.5 * 2 < density < 1.5 * 2, outside < 2, sounding < 2) == (True, True, True)
    density, outside, sounding, _ = figures(drawn(restless(PIANO), SEED, guard=False))
    assert (density > 10, outside > 10, sounding > 10) == (True, True, True)


@pytest.mark.parametrize(("control", "of", "least"), [({"density": 12}, 0, 6), ({"register": 100}, 3, 90)])
def test_curves_that_a_person_asks_for_go_beyond_the_seed(control, of, least):
    assert figures(drawn(restless(PIANO), SEED, control=Control(particles=1, **control)))[of] > least


def liking(*names):
    """A model that nearly always says the same ids, in any order."""
    liked = np.zeros(PIANO.vocab.size)
    liked[[PIANO.vocab.id(*name) for name in names]] = 8.0
    liked[PIANO.vocab.mask("NOTE_OFF")] = 12.0
    return Said(lambda length, rows: np.tile(liked, (rows, 1)))


def looped(notes):
    """The share of runs of eight notes that came before."""
    pitch = notes.pitch.tolist()
    runs = [tuple(pitch[k : k + 8]) for k in range(len(pitch) - 7)]
    return 1 - len(set(runs)) / len(runs)


def longest(values):
    return max(len(list(group)) for _, group in groupby(values))


def test_one_key_is_not_struck_on_and_on():
    model = liking(("NOTE_ON", 64), ("TIME_SHIFT", 20))
    assert longest(drawn(model, SEED, guard=False).pitch.tolist()) >= 30
    assert longest(drawn(model, SEED).pitch.tolist()) <= 15


@pytest.mark.parametrize("notes", [(60, 64), (60, 64, 67, 72, 65, 69, 62, 71)])
def test_a_loop_is_left(notes):
    """A model that says what it said one round before: of two chords, or of a bar."""
    seed = music(np.arange(12) * 0.25, [62, 71, 60, 65, 69, 67, 72, 64, 62, 60, 67, 65], 0.2)
    bar = ids_of(music(np.arange(len(notes)) * 0.25, notes, 0.2))

    def again(length, rows):
        liked = np.zeros(PIANO.vocab.size)
        liked[int(bar[(length - 1) % len(bar)])] = 14.0
        return np.tile(liked, (rows, 1))

    on, on_and_on = (looped(drawn(Said(again), seed, guard=guard)) for guard in (True, False))
    assert (on_and_on > 0.9, on < 0.65) == (True, True)


def chosen(character=None, warmth=1.0):
    """The likeliest of two keys: one is a little likelier, the other is far likelier with the seed in sight."""
    keys, V = [PIANO.vocab.id("NOTE_ON", key) for key in (30, 40)], PIANO.vocab.size
    logits = np.full((2, V), -20.0)
    logits[:, keys] = np.log([[0.5, 0.4], [0.9, 0.05]])
    chance = ByChance(replace(PLAIN, temperature=0.0, seed_guidance=2.0), [(0, 0)], character=character)
    chance.warm([warmth])
    return keys.index(int(chance(logits, np.ones((1, V), bool))[0]))


def test_seed_guidance_is_weaker_in_circles():
    scale = [60, 62, 64, 65, 67, 69, 71, 72]
    twice, thrice = (music(np.arange(8 * n) * 0.25, scale * n, 0.2) for n in (1, 3))
    most = Bounds(loop=6.0)
    rows = {name: Character([most], PIANO, [ids_of(notes)]) for name, notes in {"free": twice, "loop": thrice}.items()}
    assert [chosen(), chosen(warmth=1000.0), chosen(rows["free"]), chosen(rows["loop"])] == [1, 0, 1, 0]


def test_it_is_counted_how_often_the_guard_acts():
    primer = Primer(SEED, SEED.duration_s, Meter(0.5))
    free, held = (
        continue_primers([primer], restless(PIANO), PIANO, replace(LONG, sampling=replace(PLAIN, guard=guard)))[0][0]
        for guard in (False, True)
    )
    assert (free.held, 0 < held.held <= len(held.new_notes)) == (0, True)


@pytest.fixture
def filler(tmp_path):
    """Fills four seconds of the seed, from a moment on, with the model that likes any note."""
    tokenizer = with_gap_clock(with_added(PIANO, ADDED))
    write_midi(SEED, path := tmp_path / "seed.mid")
    model = restless(tokenizer)
    model.window = None

    def fill(from_s):
        (music,) = Model(model, tokenizer).fill(path, from_s=from_s, to_s=from_s + 4, top_p=None)
        return music.new_notes

    return fill


@pytest.mark.parametrize("from_s", [0.0, 4.0])
def test_a_fill_is_as_dense_as_its_sides_from_its_first_second_on(filler, from_s):
    notes = filler(from_s)
    first = int((notes.onset_s < from_s + 1).sum())
    assert (first <= 4, 4 <= len(notes) <= 14) == (True, True)


def test_after_a_slow_ending_music_does_not_hurry():
    onset_s = np.concatenate([np.arange(80) / 8, 10 + 2 * np.arange(6)])
    notes = drawn(restless(PIANO), music(onset_s, (60 + np.arange(86) % 12).tolist(), 0.1), length=Length(seconds=6.0))
    assert len(notes) <= 12


@pytest.mark.parametrize(("control", "least"), [({"polyphony": 6}, 3.0), ({"density": 12}, 0.0)])
def test_what_is_asked_frees_what_it_needs(control, least):
    """Six notes at once need a wider range than a tune's, and twelve a second more than one at once."""
    found = figures(drawn(restless(PIANO), SEED, control=Control(particles=1, **control)))
    assert (found[2] > least, found[0] > 8 or "density" not in control) == (True, True)


def test_a_range_that_is_asked_for_is_the_range():
    pitch = drawn(restless(PIANO), SEED, rules=Rules(lowest=30, highest=50)).pitch
    assert (30 <= pitch.min() < 36, 45 < pitch.max() <= 50) == (True, True)


def test_a_seed_that_is_a_loop_may_be_left():
    bar = music(np.arange(8 * 16) * 0.25, [60, 64, 67, 72, 65, 69, 62, 71] * 16, 0.2)
    bounds = bounds_of([ids_of(bar)], PIANO)
    assert (bounds.loop, bounds.run) == (32, 32)


def test_rows_are_the_same_alone_together_and_after_a_move():
    model, primer = restless(PIANO), Primer(SEED, SEED.duration_s, Meter(0.5))
    request = replace(LONG, sampling=replace(PLAIN, guard=True), length=Length(seconds=10.0), variations=3)
    together, alone = (
        [made.score.pitch.tolist() for made in continue_primers([primer], model, PIANO, each)[0]]
        for each in (request, replace(request, rows_at_once=1))
    )
    assert together == alone
    assert len({tuple(each) for each in together}) == 3
    rows = Character([Bounds()] * 2, PIANO, [ids_of(SEED)] * 2)
    key = PIANO.vocab.id("NOTE_ON", 100)
    rows.update([key, PIANO.vocab.id("NOTE_OFF", 100)])
    rows.move([0, 0])
    rows.update([PIANO.vocab.id("NOTE_OFF", 100), key])
    assert [key in row.down for row in rows.rows] == [False, True]
