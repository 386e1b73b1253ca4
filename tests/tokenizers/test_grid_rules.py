from itertools import combinations, groupby, pairwise, starmap

import numpy as np
import pytest
from drawing import drawn
from hypothesis import given, settings
from hypothesis import strategies as st

from musictx.errors import ConfigError
from musictx.music.grid import REST
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import Grammar, build_grammar
from musictx.tokenizers.rules import VOICE_RANGES, Rules

TOK = ChoraleTokenizer()
QUARTER_S = 0.6  # four steps


def grammar(*grids, **rules) -> Grammar:
    prompts = [TOK.encode_grid(np.array(grid, np.int16).reshape(-1, 4)) for grid in grids]
    return build_grammar(TOK, Rules(**rules), prompts, [QUARTER_S] * len(grids))


def sing(now, *pitches):
    for pitch in pitches:
        now.update(np.array([TOK.rest if pitch == REST else TOK.vocab.id("PITCH", pitch)]))
    return now


def legal(now, row=0):
    """Pitches, REST among them."""
    return TOK.pitch[np.flatnonzero(now.legal()[row])].tolist()


ALL = [*range(21, 109), REST]


@pytest.mark.parametrize(
    ("rules", "sung", "expected"),
    [
        ({}, [], ALL),
        ({"voice_order": True}, [60], [*range(21, 61), REST]),
        ({"voice_order": True}, [60, REST, 50], [*range(21, 51), REST]),
        ({"voice_order": True}, [60, REST, 50, 40], ALL),  # the next soprano
        *(
            ({"voice_ranges": True}, [low for low, _ in VOICE_RANGES[:voice]], [*range(low, high + 1), REST])
            for voice, (low, high) in enumerate(VOICE_RANGES)
        ),
        ({"max_polyphony": 2}, [60, REST], ALL),
        ({"max_polyphony": 2}, [60, REST, 50], [REST]),
        ({"lowest": 60, "highest": 72, "scale": "C pentatonic"}, [], [60, 62, 64, 67, 69, 72, REST]),
    ],
)
def test_what_a_voice_may_sing(rules, sung, expected):
    assert legal(sing(grammar([], **rules), *sung)) == expected


def test_no_two_voices_move_in_parallel_fifths_or_octaves():
    now = sing(grammar([[67, 60, 52, 48]], no_parallels=True), 69)
    assert set(ALL) - set(legal(now)) == {62, 76, 88, 100}  # the alto was a fifth below the soprano; what falls may be
    assert set(ALL) - set(legal(sing(now, 65))) == set()  # the tenor was neither with any
    fifths, octaves = {50, 62, 76, 88, 100}, {53, 65, 77, 89, 101}  # with the soprano, with the alto
    assert set(ALL) - set(legal(sing(now, 53))) == fifths | octaves


def test_where_no_voice_may_sing_the_rules_are_refused():
    with pytest.raises(ConfigError, match="from 21 to 108"):
        grammar([], highest=20)


def test_the_silence_of_all_voices_is_limited():
    now = sing(grammar([], max_silence_s=0.3), *[REST] * 8)  # two steps
    assert REST in legal(now)  # another voice may still sing
    assert REST not in legal(sing(now, REST, REST, REST))
    assert REST in legal(sing(now, 50, REST, REST, REST))
    after_motif = grammar([[60, -1, -1, -1], [-1] * 4, [-1] * 4], max_silence_s=0.3)
    assert REST not in legal(sing(after_motif, REST, REST, REST))


def test_one_voice_moves_before_all_have_been_still_for_too_long():
    chord = [60, 55, 50, 45]
    now = sing(grammar([chord], max_still_s=0.45), *chord * 2)  # three steps in all
    assert 60 in legal(now)  # the bass may still move
    assert 45 not in legal(sing(now, 60, 55, 50))
    assert 45 in legal(sing(now, 47, 60, 55, 50))
    moved = sing(grammar([chord] * 3, max_still_s=0.45), 60, 57, 50)
    assert 45 in legal(moved)


def test_a_voice_that_falls_silent_or_rests_is_no_move():
    three = [60, 55, 50, -1]
    resting = sing(grammar([three], max_still_s=0.45), *three * 2, 60, 55, 50)
    assert {REST, 60} & set(legal(resting)) == {60}  # the bass has to come in
    silent = sing(grammar([[60, 55, 50, 45]], max_still_s=0.45), *[60, 55, 50, REST] * 2, 60, 55, 50)
    assert {REST, 45} & set(legal(silent)) == {45}  # it fell silent, and that moved nothing
    nothing = sing(grammar([[-1] * 4], max_still_s=0.45), *[REST] * 11)
    assert REST not in legal(nothing)
    own = sing(grammar([three] * 8 + [[62, 55, 50, -1]], max_note_s=9.0), *[62, 55, 50, -1] * 6, 62, 55, 50)
    assert REST in legal(own)  # the seed stood for eight steps
    assert REST not in legal(sing(own, REST, 62, 55, 50))


def test_a_limit_of_whole_steps_loses_none_to_rounding():
    chord = [60, 55, 50, 45]
    for n in (2, 31):  # 31 * 0.15 / 0.15 is less than 31
        now = sing(grammar([chord], max_still_s=None, max_note_s=n * QUARTER_S / 4), *chord * (n - 2))
        assert 60 in legal(now)
        assert 60 not in legal(sing(now, *chord))


def test_a_held_note_is_limited():
    now = sing(grammar([], max_note_s=0.3), 60, 50, 50, 40, 60, 50, 50, 40)
    assert 60 not in legal(now)
    assert 60 in legal(sing(now, 61, 50, 50, 40))
    after_motif = grammar([[60, 55, 50, 45]] * 2, [[60, 55, 50, 45]], max_note_s=0.3)
    assert 60 not in legal(after_motif, 0)
    assert 60 in legal(after_motif, 1)


@settings(max_examples=20)
@given(
    st.integers(0, 10**6),
    st.sampled_from([0, 1, 4]),
    st.lists(st.lists(st.sampled_from([REST, 48, 60, 72]), min_size=4, max_size=4), max_size=5),
    st.builds(
        Rules,
        max_silence_s=st.sampled_from([0.15, 1.0]),
        max_note_s=st.sampled_from([0.15, 0.3, 5.0]),
        lowest=st.sampled_from([0, 55]),
        highest=st.sampled_from([60, 127]),
        scale=st.sampled_from([None, "C major"]),
        max_polyphony=st.sampled_from([None, 1, 2, 3, 9]),
        voice_order=st.booleans(),
        no_parallels=st.booleans(),
    ),
)
def test_with_masks_whatever_a_model_says_the_rules_hold(seed, favourites, grid, rules):
    prompt = TOK.encode_grid(np.array(grid, np.int16).reshape(-1, 4))
    now = build_grammar(TOK, rules, [prompt] * 2, [QUARTER_S] * 2)
    silence, longest = (max(int(s // 0.15), 1) for s in (rules.max_silence_s, rules.max_note_s))
    for row in drawn(now, 80, seed, favourites):
        new = TOK.decode_grid(row)
        sung = new[new != REST]
        assert rules.pitches()[sung].all()
        assert (new != REST).sum(1).max(initial=0) <= (rules.max_polyphony or 4)
        if rules.voice_order:
            for step in new:
                heard = step[step != REST]
                assert (np.diff(heard) <= 0).all()
        if rules.no_parallels:
            assert not any(starmap(_in_parallels, pairwise(np.append(TOK.decode_grid(prompt)[-1:], new, 0).tolist())))
        assert _longest_run((new == REST).all(1)) <= silence
        for voice in new.T:
            for pitch in np.unique(voice[voice != REST]):
                assert _longest_run(voice == pitch) <= longest
        music = TOK.decode(row, QUARTER_S)
        assert (music.offset_s > music.onset_s).all()


def _in_parallels(then, now):
    """Whether two of four voices move in parallel fifths or octaves, in one direction, from chord to chord."""
    for u, v in combinations(range(4), 2):
        if REST in (then[u], then[v], now[u], now[v]) or then[u] == now[u] or then[v] == now[v]:
            continue
        apart, was_apart = abs(now[u] - now[v]) % 12, abs(then[u] - then[v]) % 12
        if apart in (0, 7) and apart == was_apart and (now[u] > then[u]) == (now[v] > then[v]):
            return True
    return False


def _longest_run(flags):
    return max((len(list(run)) for flag, run in groupby(flags) if flag), default=0)


@pytest.mark.parametrize(("steps", "most"), [(4, 6), (8, 8), (40, 40), (200, 133)])  # 1 s to 20
def test_a_note_is_no_longer_than_the_seeds_longest(steps, most):
    """A model that would hold its chord for ever, after one that sounds so many steps of 0.15 s."""
    chord = [60, 55, 50, 45]
    seed = [[pitch + 1 for pitch in chord]] * steps + [chord]
    now, held = grammar(seed, max_still_s=None), 1
    while chord[0] in legal(now):
        sing(now, *chord)
        held += 1
    assert held == most
