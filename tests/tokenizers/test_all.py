"""What every encoding keeps to, whatever its ids are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ids, scores

from musictx.errors import TokenError
from musictx.music.grid import grid_to_score
from musictx.music.score import Score
from musictx.tokenizers import TOKENIZERS, build_tokenizer
from musictx.tokenizers.miditok import KINDS

HYMNS = st.lists(st.lists(st.one_of(st.just(-1), st.integers(40, 80)), min_size=4, max_size=4), max_size=30).map(
    lambda rows: grid_to_score(np.array(rows, dtype=np.int16).reshape(-1, 4), 0.55)
)


@pytest.fixture(scope="module", params=list(TOKENIZERS))
def tok(request):
    if request.param in KINDS:
        pytest.importorskip("miditok")
    return build_tokenizer(request.param)


@given(data=st.data())
def test_what_is_written_is_written_again_as_it_is(tok, data):
    music = data.draw(HYMNS if tok.voices else scores())
    stream = tok.encode(music)
    once = tok.decode(stream, music.quarter_s)
    assert tok.normalise(once) == once
    np.testing.assert_array_equal(tok.encode(once), stream)


@given(data=st.data())
def test_any_ids_up_to_the_first_eos_are_a_score(tok, data):
    stream = data.draw(ids(tok.vocab))
    music = tok.decode(stream)
    assert (music.offset_s > music.onset_s).all()
    assert (music.onset_s <= tok.seconds(stream) + 1e-9).all()
    eos = np.flatnonzero(stream == tok.vocab.eos)
    assert tok.decode(stream[: eos[0]] if len(eos) else stream) == music


def test_nothing_is_nothing_and_ids_outside_the_vocabulary_are_refused(tok):
    nothing = np.zeros(0, np.uint16)
    assert len(tok.encode(Score.empty())) == len(tok.transpose(nothing, 1)) == 0
    assert tok.decode(nothing) == Score.empty()
    assert tok.pitch_range(nothing) is None
    assert tok.seconds(nothing) == 0
    with pytest.raises(TokenError, match=f"^id {tok.vocab.size} .* 0 to {tok.vocab.size - 1}$"):
        tok.decode(np.array([0, tok.vocab.size]))
