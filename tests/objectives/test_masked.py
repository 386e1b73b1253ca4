"""Hidden notes: whole, as many as asked, the same for the same number."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from proofs import learn
from torch.nn import functional

from musictx.errors import ConfigError
from musictx.model.build import build_model, model_config
from musictx.music.grid import REST
from musictx.music.score import Score
from musictx.objectives import build_objective
from musictx.objectives.masked import Masked, notes_of
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer

PIANO, GRID = build_tokenizer("performance"), ChoraleTokenizer()


def masked(settings) -> Masked:
    objective = build_objective("masked", settings, PIANO)
    assert isinstance(objective, Masked)
    return objective


def window_of(tokenizer, words, length=None):
    ids = [tokenizer.vocab.bos, *(tokenizer.vocab.id(type, int(value)) for type, value in map(str.split, words))]
    return torch.tensor(ids + [tokenizer.vocab.pad] * ((length or len(ids)) - len(ids)))


PHRASE = "VELOCITY 20,NOTE_ON 60,NOTE_ON 64,TIME_SHIFT 50,NOTE_OFF 60,NOTE_ON 60,TIME_SHIFT 50,NOTE_OFF 64,NOTE_OFF 60"


def test_a_note_is_its_beginning_and_its_end():
    ids = window_of(PIANO, PHRASE.split(","))[1:].numpy()
    assert notes_of(PIANO, ids).tolist() == [0, 1, 2, 3, 1, 5, 6, 2, 5]
    alone = window_of(PIANO, ["NOTE_OFF 60", "NOTE_ON 60"])[1:].numpy()  # a window may begin within a note
    assert notes_of(PIANO, alone).tolist() == [0, 1]


def test_a_note_of_a_grid_is_its_run_in_its_voice():
    steps = np.array([[72, 67, 64, 48], [72, 65, 64, 48], [72, 67, 64, 64]])
    assert notes_of(GRID, GRID.encode_grid(steps).astype(np.int64)).reshape(3, 4).tolist() == [
        [0, 1, 2, 3],
        [0, 5, 2, 3],
        [0, 9, 2, 11],
    ]
    rests = np.array([[72, REST, 64, 48], [72, REST, 64, 48]])
    assert notes_of(GRID, GRID.encode_grid(rests).astype(np.int64)).tolist() == [0, 1, 2, 3, 0, 5, 2, 3]


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ConfigError, match="^name=miditok-remi: "):
        build_objective("masked", {}, build_tokenizer("miditok-remi"))
    with pytest.raises(ConfigError, match="^objective_settings.share=15%: "):
        masked({"share": "15%"})
    with pytest.raises(ConfigError, match="^share=1: "):
        masked({"share": 1})


@given(number=st.integers(0, 2**32), kept=st.integers(0, 60))
def test_hidden_notes_are_whole_and_nothing_else_changes(number, kept):
    words = [*PHRASE.split(",")] * 8
    window = window_of(PIANO, words[:kept], 66)
    objective = masked({})
    (ids,), targets = objective.example(window, np.random.default_rng(number))
    again = objective.example(window, np.random.default_rng(number))
    assert torch.equal(ids, again.inputs[0])
    assert torch.equal(targets, again.targets)
    assert len(ids) == len(targets) == 65
    counts, music = targets != PIANO.vocab.pad, window[:-1]
    assert torch.equal(ids[~counts], music[~counts])
    assert torch.equal(targets[counts], music[counts])
    sounds = np.flatnonzero(music.numpy() < PIANO.vocab.n_events)
    note = notes_of(PIANO, music.numpy()[sounds])
    hidden = set(note[counts.numpy()[sounds]].tolist())
    assert not hidden & set(note[~counts.numpy()[sounds]].tolist())
    assert 0.15 * len(sounds) <= counts.sum() <= 0.15 * len(sounds) + 2
    short = objective.example(window[:2], np.random.default_rng(number))  # as the last window of a long piece may be
    assert (len(short.inputs[0]), len(short.targets)) == (1, 1)


def test_most_hidden_ids_are_mask_some_are_others_some_stay():
    window = window_of(PIANO, [*PHRASE.split(",")] * 200)
    objective = masked({"share": 0.5})
    (ids,), targets = objective.example(window, np.random.default_rng(0))
    counts = targets != PIANO.vocab.pad
    hidden = (ids[counts] == objective.mask).float().mean()
    stays = (ids[counts] == targets[counts]).float().mean()
    assert 0.75 < hidden < 0.85
    assert 0.07 < stays < 0.14
    assert 0.5 <= counts.sum() / len(ids) < 0.505


def test_an_encoder_learns_to_guess_hidden_notes_from_the_music_around_them():
    """Chromatic scales, each from another key: what is hidden follows from what is not, unless that is shuffled."""
    torch.manual_seed(0)
    objective, vocab, rng = masked({}), masked({}).tokenizer.vocab, np.random.default_rng(0)
    sizes = {"d_model": 32, "n_layers": 2, "n_heads": 2, "d_ff": 64, "dropout": 0.0, "max_distance": 16}
    model = build_model(model_config("encoder", sizes, vocab_size=vocab.size, pad=vocab.pad)).train()
    torch.nn.init.normal_(model.embed.weight, std=0.2)
    begin_s = np.arange(10) / 4

    def scales(rows):
        """Hidden scales and what is hidden (B, T) each."""
        keys = rng.integers(50, 58, rows)
        music = [PIANO.encode(Score(begin_s, begin_s + 0.25, key + np.arange(10), np.full(10, 80))) for key in keys]
        windows = torch.tensor(np.stack(music).astype(np.int64))
        pairs = [objective.example(window, rng) for window in windows]
        return torch.stack([pair.inputs[0] for pair in pairs]), torch.stack([pair.targets for pair in pairs])

    def batch():
        ids, targets = scales(16)
        asked = targets != vocab.pad
        return model(ids)[asked], targets[asked]

    learn(model, batch, 1e-2, 150)
    ids, targets = scales(32)
    mixed, known = ids.clone(), targets == vocab.pad
    mixed[known] = ids[known][torch.randperm(int(known.sum()))]
    with torch.no_grad():
        each = [functional.cross_entropy(model.eval()(x)[~known], targets[~known]) for x in (ids, mixed)]
    assert each[0] < 1 < 3 < each[1]
