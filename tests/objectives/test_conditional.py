"""Pairs of a melody and the rest, cut by track: what is read, what is asked for."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import scores

from musictx.data.dataset import batch_of
from musictx.errors import ConfigError
from musictx.music.score import Score
from musictx.objectives import build_objective
from musictx.objectives.conditional import by_track
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import MelodyTokenizer, PerformanceTokenizer
from musictx.tokenizers.performance.melody import VOICE

SONG = MelodyTokenizer()
RNG = np.random.default_rng(0)


def asked(window):
    inputs, targets = build_objective("conditional", None, SONG).example(window, RNG)
    return [x.tolist() for x in inputs], targets.tolist()


@pytest.mark.parametrize("tokenizer", [PerformanceTokenizer(), ChoraleTokenizer()])
def test_ids_that_mark_no_melody_are_refused(tokenizer):
    with pytest.raises(ConfigError, match="^objective=conditional: .*: choose .* or objective=voices for chorales"):
        build_objective("conditional", None, tokenizer)


SPECIALS = (SONG.vocab.pad, SONG.vocab.bos, SONG.vocab.eos)


def song(text) -> torch.Tensor:
    """Ids of `M60+` and `m60+`, the melody's and the other notes begun (+) or ended (-), `v9`, `V9` and waits, `100`;
    the specials as they are called."""
    kinds = {"M": "MELODY_ON", "m": "NOTE_ON", "V": "MELODY_VELOCITY", "v": "VELOCITY"}

    def id_of(word):
        if word in ("PAD", "BOS", "EOS"):
            return SONG.vocab.id(word)
        if word[0] not in kinds:
            return SONG.vocab.id("TIME_SHIFT", int(word))
        kind = kinds[word[0]].replace("_ON", "_OFF" if word[-1] == "-" else "_ON")
        return SONG.vocab.id(kind, int(word[1:].rstrip("+-")))

    return torch.tensor([id_of(word) for word in text.split()])


WINDOW = "BOS V20 M72+ v10 m48+ 50 M72- 80 m48- M74+ 30 M74- EOS PAD"
MELODY = "V20 M72+ 50 M72- 80 M74+ 30 M74-"
REST = "v10 m48+ 100 30 m48-"


def test_the_melody_goes_in_and_the_rest_comes_out_each_with_waits_its_own():
    (source, ids), targets = asked(song(WINDOW))
    assert source == song(MELODY).tolist()
    assert targets == song(REST).tolist()  # the last wait is cut short by the window's end: no one is asked for it
    assert ids == song("BOS v10 m48+ 100 30").tolist()


def test_windows_begin_inside_held_notes_and_end_between_events():
    """What is before takes the place of BOS; whole shifts at the end are certain, what is left of them is not."""
    (source, ids), targets = asked(song("m50+ 30 M72- 100 100 70"))
    assert source == song("30 M72- 100 100").tolist()
    assert (ids, targets) == (song("m50+ 100 100").tolist(), song("100 100 100").tolist())


def test_a_window_without_a_melody_or_without_the_rest_asks_for_no_more_than_it_has():
    for text, heard, asked_for in (
        ("BOS v9 m48+ 20 m48- EOS", "PAD", "v9 m48+ 20 m48-"),
        ("BOS V9 M72+ 20 M72- EOS", "V9 M72+ 20 M72-", "PAD"),
        ("BOS 40 EOS PAD", "PAD", "PAD"),
    ):
        (source, ids), targets = asked(song(text))
        assert (source, targets) == (song(heard).tolist(), song(asked_for).tolist())
        assert len(ids) == len(targets)


songs = st.builds(
    lambda score, sung: replace(score, program=np.where(np.resize(sung, len(score)), VOICE, 0)),
    scores(max_notes=20, max_onset_s=6.0),
    st.lists(st.booleans(), min_size=1, max_size=20),
)


def timed(ids):
    """(step, id) of each event of music, in order."""
    step = np.cumsum(np.rint(SONG.pace[ids] * 100).astype(int))
    return [(int(at), int(i)) for at, i in zip(step, ids, strict=True) if i < SPECIALS[0] and not SONG.pace[i]]


@given(songs, songs)
def test_neither_part_shows_through_the_other(music, other):
    """With another melody the rest is the same, and with another rest the melody, wait for wait. Only the silence after
    the window's last event may differ."""
    found = []
    for sung, rest in ((music, music), (other, music), (music, other)):
        both = [sung.select(sung.program == VOICE), rest.select(rest.program != VOICE)]
        ids = SONG.encode(Score.merge(both))
        found.append(by_track(torch.tensor([SPECIALS[1], *ids.tolist()]), SONG))
    (melody, rest), (_, same_rest), (same_melody, _) = found
    assert timed(rest.numpy()) == timed(same_rest.numpy())
    assert timed(melody.numpy()) == timed(same_melody.numpy())


def test_a_batch_has_sources_and_targets_of_their_own_lengths():
    objective = build_objective("conditional", None, SONG)
    examples = [objective.example(song(text), RNG) for text in (WINDOW, "BOS v9 m48+ 20 m48- EOS")]
    (source, ids), targets = batch_of(examples, SPECIALS[0])
    assert (source.shape, ids.shape, targets.shape) == ((2, 8), (2, 5), (2, 5))
    assert source[1].tolist() == [SPECIALS[0]] * 8
