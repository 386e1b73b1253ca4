import numpy as np
import pytest
from drawing import drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import scores

from musictx.errors import ConfigError
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.grammar import Grammar, build_grammar
from musictx.tokenizers.rules import Rules

TOK = build_tokenizer("performance")
VOCAB = TOK.vocab


def grammar(*prompts, **rules) -> Grammar:
    return build_grammar(TOK, Rules(**rules), prompts, [0.5] * len(prompts))


def stream(*events):
    return np.array([VOCAB.id(*event) for event in events], np.uint16)


def words(legal):
    """What is legal in one row, short: the types, with their values where not all of a type are."""
    out: dict[str, list[int]] = {}
    for id in np.flatnonzero(legal).tolist():
        kind, value = VOCAB.describe(id).split()
        out.setdefault(kind, []).append(int(value))
    return {kind: "all" if len(v) == VOCAB.row(kind).hi - VOCAB.row(kind).lo + 1 else v for kind, v in out.items()}


def after(*events, **rules):
    now = grammar(stream(), **rules)
    for event in events:
        now.update(np.array([VOCAB.id(*event)]))
    return words(now.legal()[0])


def test_music_begins_with_a_velocity_or_a_wait_and_after_a_velocity_comes_a_note():
    assert after() == {"VELOCITY": "all", "TIME_SHIFT": "all"}
    assert after(("VELOCITY", 9)) == {"NOTE_ON": "all"}


def test_no_time_passes_without_a_new_note_beyond_the_limit_of_each_row():
    moving = [("VELOCITY", 9), *[e for p in (60, 61, 62) for e in (("NOTE_ON", p), ("TIME_SHIFT", 50))]]
    slow = [("VELOCITY", 9), ("NOTE_ON", 60), ("TIME_SHIFT", 100), ("TIME_SHIFT", 60), ("NOTE_ON", 61)]
    now = grammar(stream(*moving), stream(*slow), stream())  # the longest waits: 0.5 s, 1.6 s, none known
    assert [words(row)["TIME_SHIFT"] for row in now.legal()] == [list(range(1, 51)), "all", "all"]
    for _ in range(3):
        now.update(np.array([VOCAB.id("TIME_SHIFT", 50)] * 3))
    assert [words(row).get("TIME_SHIFT", []) for row in now.legal()[1:]] == [list(range(1, 11)), list(range(1, 51))]
    stuck = words(now.legal()[0])
    assert "TIME_SHIFT" not in stuck
    assert set(stuck) == {"NOTE_ON", "NOTE_OFF", "VELOCITY"}
    now.update(np.array([VOCAB.id("NOTE_ON", 70)] * 3))
    assert all("TIME_SHIFT" in words(row) for row in now.legal())


def test_a_note_sounds_for_a_step_before_it_ends_and_cannot_be_struck_twice():
    struck = after(("VELOCITY", 9), ("NOTE_ON", 60))
    assert struck == {"NOTE_ON": [p for p in range(128) if p != 60], "TIME_SHIFT": "all", "VELOCITY": "all"}
    later = after(("VELOCITY", 9), ("NOTE_ON", 60), ("TIME_SHIFT", 1))
    assert later == struck | {"NOTE_OFF": [60]}
    again = after(("VELOCITY", 9), ("NOTE_ON", 60), ("TIME_SHIFT", 1), ("NOTE_OFF", 60))
    assert again == {"NOTE_ON": "all", "TIME_SHIFT": "all", "VELOCITY": "all"}


def test_a_limit_of_whole_steps_loses_none_to_rounding():
    for steps in (1, 29, 57, 58):  # 0.29 * 100 is less than 29
        assert after(max_silence_s=steps / 100, max_still_s=None)["TIME_SHIFT"] in ("all", list(range(1, steps + 1)))


def test_the_length_of_a_note_is_limited():
    held = [("VELOCITY", 1), ("NOTE_ON", 60), ("TIME_SHIFT", 90), ("NOTE_ON", 62)]
    assert after(*held, max_note_s=1.0)["TIME_SHIFT"] == list(range(1, 11))
    over = after(*held, ("TIME_SHIFT", 10), max_note_s=1.0)
    assert over == {"NOTE_OFF": [60]}, "or a model that would rather hold it strikes every other key"
    ended = after(*held, ("TIME_SHIFT", 10), ("NOTE_OFF", 60), max_note_s=1.0)
    assert ended["NOTE_OFF"] == [62]
    assert ended["TIME_SHIFT"] == list(range(1, 91))
    assert ended["VELOCITY"] == "all"


def test_rows_continue_from_where_their_motifs_stand():
    sounding = [("VELOCITY", 1), ("NOTE_ON", 60), ("TIME_SHIFT", 50)]
    longer = stream(*sounding, ("NOTE_ON", 62), ("TIME_SHIFT", 100))
    silent = stream(("TIME_SHIFT", 100), ("TIME_SHIFT", 30))
    legal = [
        words(row) for row in grammar(stream(*sounding), longer, silent, max_silence_s=1.5, max_note_s=1.0).legal()
    ]
    assert (legal[0]["NOTE_OFF"], legal[0]["TIME_SHIFT"]) == ([60], list(range(1, 51)))
    assert legal[1] == {"NOTE_OFF": [60, 62]}, "what is longer than allowed ends first"
    assert legal[2] == {"TIME_SHIFT": list(range(1, 21)), "VELOCITY": "all"}


def test_polyphony_pitches_and_scales_are_limited():
    two = [("VELOCITY", 1), ("NOTE_ON", 60), ("NOTE_ON", 62)]
    assert after(*two, max_polyphony=2) == {"TIME_SHIFT": "all"}
    assert after(*two, lowest=61, highest=64)["NOTE_ON"] == [61, 63, 64]
    assert after(*two[:1], lowest=60, highest=66, scale="C pentatonic")["NOTE_ON"] == [60, 62, 64]
    for rule in ("voice_order", "voice_ranges", "no_parallels"):
        with pytest.raises(ConfigError, match=f"^{rule}=true: .*performance "):
            grammar(stream(), **{rule: True})


def test_a_prompt_that_ends_in_a_velocity_has_a_way_on():
    full = stream(("VELOCITY", 1), ("NOTE_ON", 60), ("NOTE_ON", 62), ("VELOCITY", 3))
    assert words(grammar(full, max_polyphony=2).legal()[0]) == {"TIME_SHIFT": "all"}


def check(ids, rules, start=0):
    """Reads a stream event by event: the rules as a person would state them."""
    struck: dict[int, int] = {}
    now, silent_since, struck_last, velocity, last = 0, 0, 0, False, ""
    for i, (kind, value) in enumerate((w[0], int(w[1])) for w in (VOCAB.describe(int(x)).split() for x in ids)):
        if kind == "NOTE_ON":
            assert value not in struck, "overlapping"
            assert velocity
            if i >= start:
                assert rules.pitches()[value]
                assert all(now - onset < round(rules.max_note_s * 100) for onset in struck.values()), "one had to end"
            struck[value] = struck_last = now
            assert i < start or len(struck) <= (rules.max_polyphony or 128)
        elif kind == "NOTE_OFF":
            assert i < start or struck[value] < now, "without length, or silent"
            struck.pop(value)
        elif kind == "TIME_SHIFT":
            silent_since = silent_since if not struck else now + value
            now += value
            if i >= start:
                assert all(now - onset <= round(rules.max_note_s * 100) for onset in struck.values())
                assert struck or now - silent_since <= round(rules.max_silence_s * 100)
                assert now - struck_last <= round((rules.max_still_s or 3600) * 100)
        elif kind == "VELOCITY":
            assert last != "VELOCITY"
            velocity = True
        assert not (last == "VELOCITY" and kind != "NOTE_ON")
        last = kind


@given(st.lists(st.integers(5, 900), min_size=1, max_size=5), st.booleans())
def test_no_note_lasts_longer_than_the_seeds_longest(lasts, on_grid):
    """In hundredths of a second; on a grid a second is never too long, else four, and more than eight always are."""
    onset_s = 10.0 * np.arange(len(lasts))
    seed = Score(onset_s, onset_s + np.array(lasts) / 100, np.full(len(lasts), 50), np.full(len(lasts), 80))
    prompt, on = TOK.encode(seed), TOK.vocab.id("NOTE_ON", 70)
    now = build_grammar(TOK, Rules(max_still_s=None), [prompt], [0.5], [on_grid])
    now.update(np.array([on]))
    steps, wait = 0, TOK.vocab.id("TIME_SHIFT", 1)
    while now.legal()[0, wait]:
        now.update(np.array([wait]))
        steps += 1
    assert steps == min(max(*lasts, 100 if on_grid else 400), 800)


@settings(max_examples=20)
@given(
    scores(max_notes=12, max_onset_s=3.0),
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 3, 20]),
    st.builds(
        Rules,
        max_silence_s=st.sampled_from([0.05, 1.0, 5.0]),
        max_note_s=st.sampled_from([0.03, 1.0, 4.0]),
        max_still_s=st.sampled_from([None, 0.07, 1.0]),
        max_polyphony=st.sampled_from([None, 1, 3]),
        lowest=st.sampled_from([0, 60]),
        highest=st.sampled_from([61, 127]),
        scale=st.sampled_from([None, "C major"]),
    ),
)
def test_with_masks_whatever_a_model_says_the_music_is_whole(score, seed, favourites, rules):
    prompt = TOK.encode(score)
    now = build_grammar(TOK, rules, [prompt] * 2, [0.5] * 2)
    for row in drawn(now, 100, seed, favourites):
        whole = np.concatenate([prompt, row.astype(np.uint16)])
        check(whole, rules, start=len(prompt))
        music = TOK.decode(whole)
        assert (music.offset_s > music.onset_s).all()
        for pitch in np.unique(music.pitch):
            part = music.select(music.pitch == pitch)
            assert (part.onset_s[1:] >= part.offset_s[:-1] - 1e-9).all()
        assert TOK.normalise(music) == music


def test_ten_notes_begin_at_one_moment_or_as_many_as_in_the_seed():
    wide = Score([0.0] * 14 + [1.0], [0.5] * 14 + [1.5], [*range(40, 54), 60], [80] * 15)
    prompts = [TOK.encode(wide), TOK.encode(Score([0.0], [1.0], [60], [80]))]
    now = build_grammar(TOK, Rules(), prompts, [0.5, 0.5])
    on, wait = (VOCAB.mask(name) for name in ("NOTE_ON", "TIME_SHIFT"))
    begun = [0, 0]
    for pitch in range(80, 100):
        legal = now.legal()
        for row in range(2):
            begun[row] += bool(legal[row, VOCAB.id("NOTE_ON", pitch)])
            assert legal[row, wait].any()
            assert legal[row, on].any() == legal[row, VOCAB.id("VELOCITY", 3)]
        now.update(np.array([VOCAB.id("NOTE_ON", pitch)] * 2))
    assert begun == [14, 10]
    now.update(np.array([VOCAB.id("TIME_SHIFT", 1)] * 2))
    assert now.legal()[:, VOCAB.id("NOTE_ON", 20)].all()
