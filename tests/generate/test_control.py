"""New music is led to a key, chords, a density and a loudness, row by row; what was not asked for stays as it is."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from stubs import Said, restless

from musictx.errors import ConfigError, MidiError
from musictx.generate.control import Control
from musictx.generate.draw import continue_primers
from musictx.generate.engine import ByChance
from musictx.generate.primer import Primer, make_prompt
from musictx.generate.requests import PLAIN, Continue, Length
from musictx.generate.steering import Steering, lead
from musictx.music.harmony import parse_chord, parse_chords
from musictx.music.score import Meter, Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.rules import Rules

PIANO, GRID = build_tokenizer("performance"), ChoraleTokenizer()


def tune(quarter_s=0.5):
    onset_s = np.arange(12) / 4
    return Score(onset_s, onset_s + 0.25, np.arange(60, 72), [80] * 12, quarter_s)


def drawn(control, scores=(None,), tokenizer=PIANO, **more):
    """The new music after each score: its times begin with it."""
    primers = [score and Primer(score, score.duration_s, Meter(score.quarter_s)) for score in scores]
    rules = Rules(max_polyphony=20)  # else all keys of a chord may be down
    usual = Continue(PLAIN, Length(seconds=9.0), rules=rules, control=control, include_seed=False, random_seed=4)
    rows = continue_primers(primers, restless(tokenizer), tokenizer, replace(usual, **more))
    return [row.score for each in rows for row in each]


def test_the_share_of_each_chord_is_the_same_without_the_seed():
    """A long note of the seed is outside of all chords; without the seed it begins again at the border."""
    seed = replace(tune(), offset_s=np.where(np.arange(12) == 11, 9.0, tune().offset_s))
    primer = Primer(seed.clip(0.0, 5.0), 3.0, Meter(0.5))
    asked = Continue(PLAIN, Length(seconds=6.0), control=Control(chords="0 C, 2 F, 4"), random_seed=4)
    (whole,), (new,) = (
        continue_primers([primer], restless(PIANO), PIANO, replace(asked, include_seed=keeps))[0]
        for keeps in (True, False)
    )
    assert new.became == whole.became != ""
    assert [each.share for each in new.chords] == [each.share for each in whole.chords]
    assert new.chords[0].from_s == 0.0
    assert whole.chords[0].from_s == whole.new_from_s == 5.0


def test_a_seed_of_too_many_bars_is_refused_before_any_is_looked_at():
    with pytest.raises(ConfigError, match="^chords=seed: .* 4000 bars"):
        Control(chords="seed", bar_seconds=0.1).chords_after(tune(), Meter(), 3600.0)


def wrong(score, text, bar_s=1.0):
    """The onsets and pitches of notes outside their chord."""
    line = parse_chords(text)
    k = np.searchsorted(line.begins, (score.onset_s / bar_s + 1e-6) % line.length, side="right") - 1
    pairs = zip(score.onset_s.tolist(), score.pitch.tolist(), k.tolist(), strict=True)
    return [(at, pitch) for at, pitch, n in pairs if pitch % 12 not in line.chords[n].classes]


def test_music_without_control_is_what_it_was_before_control_existed():
    (music,) = drawn(Control(), length=Length(tokens=40), rules=Rules())
    assert music.pitch.tolist() == [23, 2, 28, 116, 123, 124, 92, 84, 120, 103, 109, 39, 42, 64, 78]
    assert music.velocity.tolist() == [74, 122, 126, 126, 18, 18, 42, 82, 34, 42, 18, 82, 114, 114, 114]


def test_new_notes_are_of_the_chord_of_their_moment_and_the_line_begins_again():
    text = "C | Am F | G7"
    control = Control(chords=text, bar_seconds=0.8, strength=20.0)
    (music,) = drawn(control)
    assert len(music) > 20
    assert wrong(music, text, 0.8) == []
    (free,) = drawn(Control())
    assert len(wrong(free, text, 0.8)) > len(free) / 2
    (seconds,) = drawn(Control(chords="0 C, 1.5 Bm7b5, 3 Eaug", strength=20.0))
    assert wrong(seconds, "0 C, 1.5 Bm7b5, 3 Eaug") == []


def test_a_bar_is_as_long_as_the_seeds_and_each_row_of_a_batch_is_what_it_is_alone():
    control, seeds = Control(chords="C | F#", strength=20.0, density=8.0, loudness=60), [tune(0.3), tune(0.5)]
    short: dict[str, Any] = {"length": Length(seconds=4.0)}
    together = drawn(control, seeds, **short)
    for music, seed in zip(together, seeds, strict=True):
        assert wrong(music, "C | F#", 4 * seed.quarter_s) == []
    assert drawn(control, seeds[1:], **short) == together[1:]
    assert drawn(control, seeds[:1], variations=2, rows_at_once=1, **short)[0] == together[0]


def test_guidance_compares_streams_that_are_led_alike():
    """Two equal streams say that the seed changes nothing: guidance draws what plain drawing does."""
    rows, prompts = 64, [make_prompt(None, PIANO, None)] * 64
    logits = np.random.default_rng(0).normal(0, 0.25, (rows, PIANO.vocab.size))
    legal = np.ones((rows, PIANO.vocab.size), bool)
    drawn_ids = []
    for strength, given in ((None, logits), (2.0, logits.repeat(2, 0))):
        steering = Steering(Control(key="C", strength=1.5), PIANO, prompts)  # so weak that nothing is cut
        sampling = replace(PLAIN, seed_guidance=strength)
        drawn_ids.append(ByChance(sampling, [(4, k) for k in range(rows)], steering=steering)(given, legal).tolist())
    assert drawn_ids[0] == drawn_ids[1]


def test_notes_of_the_old_chord_ring_on_where_they_belong_to_the_new_one():
    for chords, rings in (("0 C, 4 F#, 9", False), ("0 C, 4 C6, 9", True)):
        (music,) = drawn(Control(chords=chords, strength=20.0), length=Length(seconds=8.0))
        old = music.select(music.onset_s < 4)
        assert len(old) > 8
        assert (old.offset_s > 4).any() == rings


@pytest.mark.parametrize("text", ["C | F#", "C | Am F | G7", "0 C, 1.51 Bm, 3.2 Eb, 4"])
def test_the_bass_changes_with_the_chord(text):
    """From a step after each beginning on, the lowest note that sounds is one of the chord's, and it is low."""
    for seeds in ((None,), (tune(),)):
        (music,) = drawn(Control(chords=text, strength=20.0, bar_seconds=1.2 if "|" in text else None), seeds)
        line = parse_chords(text)
        unit_s = 1.2 if line.in_bars else 1.0
        begins = [(k * line.length + each) * unit_s for k in range(9) for each in line.begins]
        for n, begin_s in enumerate(each for each in begins if each < 8.5):
            at_s = begin_s + 0.015
            sounding = music.pitch[(music.onset_s <= at_s) & (music.offset_s > at_s)]
            assert int(sounding.min()) % 12 in line.chords[n % len(line.chords)].classes


def test_density_makes_notes_rarer_or_more():
    how: dict[str, Any] = {"scores": [tune()], "length": Length(seconds=5.0)}
    few, usual, many = (len(drawn(Control(density=asked), **how)[0]) for asked in (2, None, 20))
    assert few < usual < many


def test_a_curve_leads_from_one_value_to_the_next_and_keeps_the_last():
    (music,) = drawn(Control(loudness="0 20, 4 120", strength=20.0))
    for from_s, to_s, asked in ((0, 0.5, 26), (1.75, 2.25, 70), (6, 9, 120)):
        now = music.velocity[(music.onset_s >= from_s) & (music.onset_s < to_s)]
        assert abs(now.mean() - asked) < 8
    (music,) = drawn(Control(density="0 2, 3 2, 4 20"))
    assert (music.onset_s < 3).sum() * 3 < (music.onset_s >= 5).sum()
    assert drawn(Control(density="0 6, 5 6")) == drawn(Control(density=6))


def test_a_register_is_where_new_notes_lie():
    (music,) = drawn(Control(register="0 36, 4 36, 5 90", strength=20.0))
    for now, asked in ((music.onset_s < 4, 36), (music.onset_s > 5, 90)):
        assert now.sum() > 8
        assert abs(music.pitch[now].mean() - asked) < 4


def test_about_as_many_notes_sound_at_once_as_asked():
    held = Score([0.0] * 6, [3.0] * 6, range(60, 66), [80] * 6)
    (music,) = drawn(Control(polyphony="0 1, 5 1, 6 6", strength=20.0), [held])
    at = np.arange(3, 9, 0.05)[:, None]
    sounding = ((music.onset_s <= at) & (music.offset_s > at)).sum(1)
    assert sounding[:40].max() <= 2
    assert sounding[70:].mean() > 4


def chordal(names, bar_s=1.0):
    """A bar of each chord."""
    chords = [parse_chord(name) for name in names]
    notes = [(k * bar_s, (k + 1) * bar_s, 60 + each, 80) for k, chord in enumerate(chords) for each in chord.classes]
    onset_s, offset_s, pitch, velocity = np.array(notes).T
    return Score(onset_s, offset_s, pitch, velocity, bar_s / 4)


def test_each_seeds_own_chords_come_back_also_in_one_batch():
    control, lines = Control(chords="seed", strength=20.0), (["C", "F#m"], ["Eb", "Gm"])
    seeds = [chordal(lines[0]), chordal(lines[1], 0.6)]
    together = drawn(control, seeds, length=Length(seconds=4.0))
    for music, line, bar_s in zip(together, lines, (1.0, 0.6), strict=True):
        assert wrong(music, " | ".join(line), bar_s) == []
    text = Control(chords="C | F#m", strength=20.0)
    assert drawn(text, seeds[:1], length=Length(seconds=4.0)) == together[:1]
    control.say("a.mid", seeds[1], Meter(0.15), 1.2, (said := list[str]()).append)
    assert said[-1] == "a.mid: its chords are Eb | Gm"
    with pytest.raises(ConfigError, match="^chords=seed: .*before"):
        drawn(control)


def test_a_file_of_chords_is_read_where_a_person_names_it_and_nowhere_else(tmp_path):
    path = tmp_path / "chords.mid"
    write_midi(chordal(["C", "F#m", "C+D+F"]), path)
    control = Control(chords=str(path), strength=20.0)
    assert control.read().chords == "0 C, 1 F#m, 2 C+D+F, 3"
    assert wrong(drawn(control.read())[0], "0 C, 1 F#m, 2 C+D+F, 3") == []
    with pytest.raises(ConfigError, match="^chords=.*chords.mid: "):
        drawn(control)
    with pytest.raises(ConfigError, match="^chords=F#m: C#, F# .*key=C"):
        Control(chords=str(path), key="C").read()
    with pytest.raises(MidiError, match=r"^none.mid: "):
        Control(chords="none.mid").read()
    write_midi(Score.empty(), tmp_path / "still.mid")
    with pytest.raises(MidiError, match=r"still.mid: .*no chords"):
        Control(chords=str(tmp_path / "still.mid")).read()
    for chart, chords in ('z4|"Am"z2"D7/F#"z2|z4|', "Am | Am D7 | D7"), ('"N.C."z4|"G"z4|', "N.C. | G"):
        (tmp_path / "chart.abc").write_text(f"X:1\nM:4/4\nL:1/4\nK:C\n{chart}\n")
        assert Control(chords=str(tmp_path / "chart.abc")).read().chords == chords
    for silent in "z4|", '"N.C."z4|':
        (tmp_path / "silent.abc").write_text(f"X:1\nM:4/4\nL:1/4\nK:C\n{silent}\n")
        with pytest.raises((MidiError, ConfigError), match="no notes"):
            Control(chords=str(tmp_path / "silent.abc")).read()


def softmax(logits):
    likely = np.exp(logits - logits.max(-1, keepdims=True))
    return likely / likely.sum(-1, keepdims=True)


def test_how_probable_it_is_that_a_note_begins_stays():
    logits = np.array([[1.0, 2.0, -np.inf, 0.5], [-np.inf, -np.inf, 1.0, 2.0]])
    group, more = np.array([True, True, True, False]), np.array([[-4.0, 0.0, -4.0, 0.0]])
    led, eased = lead(logits, more, group)
    led, before = softmax(led), softmax(logits)
    np.testing.assert_allclose(led[:, :3].sum(1), before[:, :3].sum(1))
    np.testing.assert_allclose(led[0, 0] / led[0, 1], before[0, 0] / before[0, 1] * np.exp(-4.0))
    np.testing.assert_allclose(led[1], before[1])
    none = np.array([[-np.inf, -np.inf, -np.inf, 0.0]])
    unled, nothing = lead(none, more, group)
    assert unled.tolist() == none.tolist()
    assert not nothing.any()
    mean = np.log((np.exp(logits[0, 0] - 4.0) + np.exp(logits[0, 1])) / np.exp(logits[0, :2]).sum())
    assert eased[0].tolist() == pytest.approx([mean] * 3 + [0.0])
    assert eased[1].tolist() == pytest.approx([-4.0] * 3 + [0.0])


@pytest.mark.parametrize("broken", [np.nan, np.inf])
@np.errstate(divide="raise", over="raise", invalid="raise")
def test_a_row_of_no_numbers_stays_so_and_the_others_are_led(broken):
    logits = np.random.default_rng(0).normal(size=(3, 4))
    logits[1, 2] = broken
    group, more = np.array([True, True, True, False]), np.array([[-4.0, 0.0, -800.0, 0.0]])
    led, eased = lead(logits, more, group)
    np.testing.assert_array_equal(led[1], logits[1])
    assert not eased[1].any()
    for row in (0, 2):
        alone = lead(logits[row : row + 1], more, group)
        assert (led[row].tolist(), eased[row].tolist()) == (alone[0][0].tolist(), alone[1][0].tolist())


@np.errstate(divide="raise", over="raise", invalid="raise")
def test_after_an_hour_of_silence_density_leads_as_much_as_after_a_minute():
    steering = Steering(Control(density=4.0), PIANO, [make_prompt(None, PIANO, None)])
    logits, longest = np.zeros((1, PIANO.vocab.size)), np.array([PIANO.vocab.values("TIME_SHIFT").argmax()])
    led = []
    for seconds in (60, 3600):
        while steering.now_s[0, 0] < seconds:
            steering.update(longest)
        led.append(steering(logits)[0].tolist())
    assert led[0] == led[1] != logits.tolist()


def test_a_grid_is_led_to_chords_too_and_holds_what_sounds():
    hymn = Score([0.0] * 4, [2.0] * 4, [72, 67, 64, 48], [80] * 4, 0.5)
    control = Control(chords="F | G", bar_seconds=1.0, strength=20.0)
    (music,) = drawn(control, [hymn], GRID, length=Length(seconds=8.0), include_seed=True)
    new = music.select(music.onset_s >= 2.0)
    assert len(new) > 8
    assert wrong(replace(new, onset_s=new.onset_s - 2.0), "F | G") == []
    text = "C | Am F G"  # whose borders lie within sixteenths: all voices of one take the chord of its beginning
    (music,) = drawn(replace(control, chords=text), [hymn], GRID, length=Length(seconds=8.0), include_seed=True)
    new = music.select(music.onset_s >= 2.0)
    assert wrong(replace(new, onset_s=new.onset_s - 2.0), text) == []


def test_no_voice_of_a_grid_holds_a_foreign_note_into_a_chord():
    hymn = Score([0.0] * 4, [2.0] * 4, [72, 67, 64, 48], [80] * 4, 0.5)
    liked = np.zeros(GRID.vocab.size)
    liked[GRID.encode_grid(np.array([[72, 67, 64, 48]]))] = 9.0
    primer, model = Primer(hymn, 2.0, Meter(0.5)), Said(lambda length, rows: np.tile(liked, (rows, 1)))
    asked = Continue(PLAIN, Length(seconds=6.0), control=Control(chords="C | F#", strength=20.0))
    ((music,),) = continue_primers([primer], model, GRID, asked)
    for bar in range(3):
        begun = music.score.pitch[(music.score.onset_s <= 2.1 + 2 * bar) & (music.score.offset_s > 2.1 + 2 * bar)]
        assert len(begun) > 2
        assert {each % 12 for each in begun.tolist()} <= parse_chord(("C", "F#")[bar % 2]).classes


def test_a_voice_of_a_grid_keeps_its_pitch_as_probably_as_without_chords():
    hymn = Score([0.0] * 4, [2.0] * 4, [72, 67, 64, 48], [80] * 4, 0.5)
    prompt = make_prompt(Primer(hymn, 2.0, Meter(0.5)), GRID, None)
    steering = Steering(Control(chords="F#", strength=20.0), GRID, [prompt])
    logits = np.random.default_rng(0).normal(size=(1, GRID.vocab.size))
    led, before = softmax(steering(logits)[0])[0], softmax(logits)[0]
    keeps, rest = int(GRID.encode_grid(np.array([[72, 67, 64, 48]]))[0]), GRID.rest
    assert led[[keeps, rest]].tolist() == pytest.approx(before[[keeps, rest]].tolist())
    assert steering.begins_note().sum() == steering.strikes.sum() - 1
    new = np.flatnonzero(led > 1e-4).tolist()
    assert all(GRID.pitch[id_] % 12 in parse_chord("F#").classes for id_ in new if id_ < rest and id_ != keeps)
