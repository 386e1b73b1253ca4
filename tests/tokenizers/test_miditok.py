import pickle
import sys
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ids, score_of

from musictx.errors import ConfigError, TokenError, UserError
from musictx.music.score import DRUMS, Score
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.miditok import KINDS
from musictx.tokenizers.miditok.tokens import train_bpe

pytest.importorskip("miditok")

Q = 0.5
TOKS = {name: build_tokenizer(name) for name in KINDS}
EACH = pytest.mark.parametrize("tok", TOKS.values(), ids=TOKS.keys())


score = partial(score_of, unit_s=Q, quarter_s=Q)


# a piano, a bass and drums, on the grid and in velocities that the tokens know; the last beat is a triplet
BAND = score(
    *((0, 1, 60, 63, 0), (0, 4, 33, 99, 33), (0, 0.5, 36, 127, DRUMS), (1, 2, 64, 63, 0), (2, 2.5, 38, 127, DRUMS)),
    *((4, 8, 31, 99, 33), (5 + 1 / 3, 5 + 2 / 3, 67, 71, 0), (5 + 2 / 3, 6, 67, 71, 0)),
)


def words(tok, tokens):
    return [tok.vocab.describe(int(i)) for i in tokens]


def heard(music):
    """The notes as a person would list them, times in twelfths of a quarter."""
    onset, length = (np.rint(t / Q * 12).astype(int) for t in (music.onset_s, music.offset_s - music.onset_s))
    return list(zip(onset, length, music.pitch, music.velocity, music.program, strict=True))


LITERALLY = {
    "miditok-remi": "Bar_None Position_0 Program_0 Pitch_60 Velocity_63 Duration_1.0.12 "
    "Program_33 Pitch_33 Velocity_99 Duration_4.0.12 "
    "Program_-1 PitchDrum_36 Velocity_127 Duration_0.6.12 Position_12 Program_0 Pitch_64",
    "miditok-tsd": "Program_-1 PitchDrum_36 Velocity_127 Duration_0.6.12 TimeShift_1.0.12 Program_0",
    "miditok-structured": "TimeShift_0.0.1 Program_33 Pitch_33 Velocity_99 Duration_4.0.12 "
    "TimeShift_0.0.1 Program_-1 PitchDrum_36 Velocity_127 Duration_0.6.12 TimeShift_1.0.12",
}


@EACH
def test_a_band_literally_and_back_as_it_was(tok):
    assert LITERALLY[tok.name] in " ".join(words(tok, tok.encode(BAND)))
    assert heard(tok.decode(tok.encode(BAND), Q)) == heard(BAND)
    assert tok.decode(tok.encode(BAND), Q).quarter_s == Q


@EACH
def test_what_the_grid_does_to_notes(tok):
    music = score((0.26, 0.26, 60, 1, 0), (1.04, 50, 62, 64, 0))
    assert heard(tok.normalise(music)) == [(3, 1, 60, 3, 0), (12, 192, 62, 63, 0)]
    copies = score((0, 3, 60, 31, 0), (0.01, 1, 60, 63, 0), (0, 1, 60, 63, 5))  # the longest and loudest
    assert heard(tok.normalise(copies)) == [(0, 12, 60, 63, 5), (0, 36, 60, 63, 0)]


def test_a_tempo_that_cannot_be_right_is_refused():
    with pytest.raises(TokenError, match="more than 100000 quarters"):
        TOKS["miditok-tsd"].encode(score_of((0, 60, 60), quarter_s=1e-6))


NOTE = st.sampled_from(["Program_0", "Program_-1", "Pitch_60", "PitchDrum_36", "Velocity_63", "Duration_1.0.12"])
TIME = {
    "miditok-remi": ["Bar_None", "Position_0", "Position_47"],
    "miditok-tsd": ["TimeShift_0.1.12", "TimeShift_16.0.12"],
    "miditok-structured": ["TimeShift_0.0.1", "TimeShift_16.0.12"],
}


@EACH
@given(data=st.data())
def test_the_right_events_in_any_order_are_music_and_time_never_runs_back(tok, data):
    kinds = st.one_of(NOTE, st.sampled_from(TIME[tok.name]))
    stream = np.array([tok.vocab.id(w) for w in data.draw(st.lists(kinds, max_size=60))], np.uint16)
    music = tok.decode(stream)
    if tok.name != "miditok-structured":  # which shortens waits
        assert tok.normalise(music) == music
    clock = [tok.seconds(stream[:n]) for n in range(len(stream) + 1)]
    assert clock == sorted(clock)
    assert (music.onset_s <= clock[-1] + 1e-9).all()


@EACH
def test_drums_are_never_transposed_and_beats_never_stretched(tok):
    stream = tok.encode(BAND)
    assert tok.pitch_range(stream) == (31, 67)
    moved = heard(tok.decode(tok.transpose(stream, 5), Q))
    expected = [(on, n, p if program == DRUMS else p + 5, v, program) for on, n, p, v, program in heard(BAND)]
    assert sorted(moved) == sorted(expected)
    with pytest.raises(TokenError, match="PAD, BOS and EOS"):
        tok.transpose(np.append(stream, tok.vocab.eos), 1)
    with pytest.raises(ConfigError, match=r"^stretch=1.05: "):
        tok.stretch(stream, 1.05)


def test_seconds_literally():
    tok = TOKS["miditok-remi"]
    stream = np.array([tok.vocab.id(w) for w in ["Position_12", "Bar_None", "Position_24", "Position_6"]])
    assert [tok.seconds(stream[:n], Q) for n in range(5)] == [0, 0.5, 2, 3, 3]


def test_vocabularies():
    assert [tok.vocab.size for tok in TOKS.values()] == [661, 804, 805]
    vocab = TOKS["miditok-remi"].vocab
    assert words(TOKS["miditok-remi"], [0, 1, 128, 129, 657, 658, 659, 660]) == [
        *("Bar_None", "Pitch_0", "Pitch_127", "Velocity_3", "Program_-1", "PAD", "BOS", "EOS"),
    ]
    assert vocab.encoding.startswith("miditok-remi/1 miditok 3.")
    assert len({tok.vocab.fingerprint for tok in TOKS.values()}) == 3


def test_without_the_package_one_line_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "miditok", None)
    with pytest.raises(UserError, match=r"pip install 'musictx\["):
        build_tokenizer("miditok-remi")
    with pytest.raises(UserError, match="'octuple' .* miditok-tsd, "):
        build_tokenizer("octuple")


def corpus(tok):
    rng = np.random.default_rng(0)
    pieces = []
    for _ in range(4):
        onset = np.sort(rng.integers(0, 400, 300)) / 4
        columns = (rng.choice(values, 300) for values in ([60, 62, 64, 67], [63, 71], [0, 33, DRUMS]))
        pieces.append(tok.encode(score(*zip(onset, onset + 0.5, *columns, strict=True))))
    return pieces


BPE = {name: train_bpe(name, corpus(tok), tok.vocab.size + 100) for name, tok in TOKS.items()}
PAIRS = pytest.mark.parametrize("name", list(KINDS))


@PAIRS
def test_bpe_says_the_same_in_fewer_ids(name):
    tok, bpe = TOKS[name], BPE[name]
    assert bpe.vocab.size == tok.vocab.size + 100
    assert len(bpe.encode(Score.empty())) == len(bpe.transpose(np.zeros(0, np.uint16), 1)) == 0
    assert words(bpe, [bpe.vocab.n_events - 1]) == ["BPE 99"]
    for piece in corpus(tok):
        short = bpe.apply_bpe(piece)
        assert short.dtype == np.uint16
        assert len(short) < 0.6 * len(piece)
        assert bpe.decode(short, Q) == tok.decode(piece, Q)
        assert bpe.seconds(short, Q) == tok.seconds(piece, Q)
        assert bpe.pitch_range(short) == tok.pitch_range(piece)
        np.testing.assert_array_equal(bpe.encode(tok.decode(piece, Q)), short)
        np.testing.assert_array_equal(bpe.apply_bpe(short), short)
        np.testing.assert_array_equal(bpe.transpose(short, 3), bpe.apply_bpe(tok.transpose(piece, 3)))
    with pytest.raises(UserError, match=f"{name} .*BPE"):
        bpe.trace(short, Q)


@PAIRS
@given(data=st.data())
def test_bpe_is_lossless_for_any_ids_and_decodes_any_ids(name, data):
    tok, bpe = TOKS[name], BPE[name]
    base = data.draw(ids(tok.vocab))
    base = base[base < tok.vocab.n_events]
    assert bpe.decode(bpe.apply_bpe(base)) == bpe.decode(base) == tok.decode(base)
    stream = data.draw(ids(bpe.vocab))
    assert (bpe.decode(stream).onset_s <= bpe.seconds(stream) + 1e-9).all()


@PAIRS
def test_the_ids_of_a_beginning_do_not_depend_on_what_follows(name):
    tok, bpe = TOKS[name], BPE[name]
    piece = corpus(tok)[0]
    clock = [tok.seconds(piece[:n]) for n in range(200)]
    border = next(n for n in range(150, 200) if clock[n] > clock[n - 1]) - 1
    whole, part = bpe.apply_bpe(piece), bpe.apply_bpe(piece[:border])
    np.testing.assert_array_equal(whole[: len(part)], part)


@PAIRS
def test_merges_are_deterministic_and_state_restores_them(name):
    tok, bpe = TOKS[name], BPE[name]
    again = build_tokenizer(name, train_bpe(name, corpus(tok), tok.vocab.size + 100).state)
    assert again.vocab.fingerprint == bpe.vocab.fingerprint != tok.vocab.fingerprint
    for other in (again, pickle.loads(pickle.dumps(bpe))):
        np.testing.assert_array_equal(other.encode(BAND), bpe.encode(BAND))


def test_merges_literally():
    music = score((0, 1, 60, 63, 0), (1, 2, 60, 63, 0))
    tok = TOKS["miditok-tsd"]
    bpe = train_bpe("miditok-tsd", [tok.encode(music)], 1000)
    assert bpe.state == "[[60,143],[672,801],[802,171]]"  # pitch + velocity, program before, duration after
    assert words(bpe, bpe.encode(music)) == ["BPE 2", "TimeShift_1.0.12", "BPE 2"]


def test_a_bpe_vocabulary_that_is_too_small_or_too_large_is_refused():
    for size in (600, 65536):
        with pytest.raises(ConfigError, match=f"^bpe_vocab={size}: give 661"):
            train_bpe("miditok-remi", [], size)
    assert train_bpe("miditok-remi", [], 661).state == ""


DOUBLING = "[[1,1]," + ",".join(f"[{658 + i},{658 + i}]" for i in range(60)) + "]"
DAMAGED = ["x", "[1]", "[[0,9999]]", "[[-1,0]]", '[["a","b"]]', "[" * 99999, DOUBLING]


@pytest.mark.parametrize("state", DAMAGED)
def test_damaged_merges_and_those_of_another_tokenizer_are_refused(state):
    with pytest.raises(UserError, match="BPE .*damaged"):
        build_tokenizer("miditok-remi", state)
    with pytest.raises(UserError, match="performance .*BPE"):
        build_tokenizer("performance", state)
