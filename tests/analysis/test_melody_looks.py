"""`musictx attend` with a harmoniser: the weights behind its cross-attention, note by note, and both pictures."""

import re

import numpy as np
import pytest
import torch
from untrained import TOK, write_harmoniser

from musictx.analysis.heads import attention_to_melody, ids_by_height, last_beside
from musictx.commands.attend import attend
from musictx.config.app import settings
from musictx.errors import ConfigError, UserError
from musictx.generate.open_bundle import open_bundle
from musictx.model.encoder_decoder import DecoderBlock, EncoderDecoder
from musictx.model.readout import read_cross_attention
from musictx.music.grid import REST, grid_to_score
from musictx.music.write import write_midi

# a crotchet, a rest and a crotchet above, held voices below, a bass that moves
GRID = np.array([[72, 67, 60, 48]] * 4 + [[REST, 67, 60, 50]] * 4 + [[74, 67, 59, 50]] * 4, np.int16)


@pytest.fixture(scope="module")
def voices(tmp_path_factory):
    """The bundle of a harmoniser."""
    return write_harmoniser(tmp_path_factory.mktemp("any") / "any.safetensors")


def opened(voices):
    model = open_bundle(voices, continues=False).model
    assert isinstance(model, EncoderDecoder)
    for block in model.decoder:  # at the start all is looked at alike
        assert isinstance(block, DecoderBlock)
        torch.nn.init.normal_(block.cross.query.weight)
        torch.nn.init.normal_(block.cross.keys_values.weight)
    return model


def test_the_weights_are_those_that_the_layers_mix_their_values_by(voices):
    model, source, ids = opened(voices), torch.randint(0, 80, (1, 24)), torch.randint(0, 80, (1, 12))
    found = []
    for block in model.decoder:
        block.cross.project.register_forward_pre_hook(lambda _, given: found.append(given[0][0, 7]))
    with torch.inference_mode():
        weight = read_cross_attention(model, source, ids, 7)  # (L, H, S)
        values = model.encode(source).v[:, 0]  # (L, H, S, D)
        expected = (weight[:, :, None] @ values).flatten(1)  # (L, C)
    torch.testing.assert_close(torch.stack(found), expected)
    assert weight.shape == (2, 2, 6)
    torch.testing.assert_close(weight.sum(-1), torch.ones(2, 2))


def test_each_note_of_the_melody_has_the_weight_of_its_sixteenths(voices):
    model, ids = opened(voices), TOK.encode_grid(GRID)
    traced = TOK.trace(ids, 0.6)
    pitch, onset = traced.score.pitch.tolist(), traced.score.onset_s.round(3).tolist()
    moved = next(n for n, (p, s) in enumerate(zip(pitch, onset, strict=True)) if (p, s) == (50, 0.6))
    looks = attention_to_melody(model, TOK, ids, traced, moved, "cpu")
    melody = [n for n, p in enumerate(pitch) if p in (72, 74)]
    below = [n for n in range(len(pitch)) if n not in melody]
    assert (looks.weight[..., below] == 0).all()
    assert (looks.weight[..., melody] > 0).all()
    read = torch.from_numpy(np.append(TOK.vocab.bos, ids[: 4 * 4 + 3]).astype(np.int64))[None]
    soprano = torch.from_numpy(np.where(np.arange(48) % 4 == 0, ids, TOK.vocab.pad).astype(np.int64))[None]
    rows = read_cross_attention(model, soprano, read, 4 * 4 + 3).numpy()  # the bass of the fifth sixteenth
    assert looks.weight[..., melody[0]] == pytest.approx(rows[..., :4].sum(-1), abs=1e-6)
    assert looks.weight[..., melody[1]] == pytest.approx(rows[..., 8:].sum(-1), abs=1e-6)
    assert looks.sounding == pytest.approx(rows[..., 4], abs=1e-6)
    away = [4, 3, 2, 1, 0, 1, 2, 3, 4, 5, 6, 7]
    assert looks.steps_away == pytest.approx((rows * away).sum(-1), abs=1e-5)
    with pytest.raises(ConfigError, match=r"^at=…: "):
        attention_to_melody(model, TOK, ids, traced, melody[0], "cpu")
    assert pitch[last_beside(traced, TOK)] == 59
    alone = TOK.encode_grid(np.where(np.arange(4) == 0, GRID, REST).astype(np.int16))
    with pytest.raises(UserError, match="one line"):
        last_beside(TOK.trace(alone, 0.6), TOK)


@pytest.mark.parametrize("voice", [0, 2, 3])
def test_any_voice_may_be_the_melody_and_is_heard_alone(voices, voice):
    model, ids = opened(voices), TOK.encode_grid(GRID)
    traced = TOK.trace(ids, 0.6)
    note = last_beside(traced, TOK, voice)
    at = int(traced.struck_by[note])
    assert at % 4 != voice
    looks = attention_to_melody(model, TOK, ids, traced, note, "cpu", voice)
    hidden = torch.from_numpy(np.where(np.arange(48) % 4 == voice, ids, TOK.vocab.pad).astype(np.int64))[None]
    read = torch.from_numpy(np.append(TOK.vocab.bos, ids[:at]).astype(np.int64))[None]
    rows = read_cross_attention(model, hidden, read, at).numpy()
    assert rows.shape[-1] == len(GRID)
    assert looks.sounding == pytest.approx(rows[..., at // 4], abs=1e-6)
    of_melody = np.isin(traced.struck_by % 4, voice)
    assert (looks.weight[..., of_melody] > 0).all()
    assert (looks.weight[..., ~of_melody] == 0).all()
    with pytest.raises(ConfigError, match=r"^at=…: "):
        attention_to_melody(model, TOK, ids, traced, int(np.flatnonzero(of_melody)[0]), "cpu", voice)


def test_the_highest_note_of_each_sixteenth_is_the_melodys_whatever_voices_a_file_seems_to_have():
    crossed = np.array([[65, 72, 57, 53], [65, 72, 57, REST], [72, 60, 55, 48]], np.int16)
    score = grid_to_score(np.repeat(crossed, 4, axis=0), 0.6)
    grid = TOK.decode_grid(ids_by_height(TOK, score))
    assert grid[:4].tolist() == [[72, 65, 57, 53]] * 4
    assert (grid[:, 0] == 72).all()


def test_the_command_takes_any_voice_as_the_melody_and_says_what_it_cannot(tmp_path, voices, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_midi(grid_to_score(GRID, 0.6), tmp_path / "sung.mid")
    write_midi(grid_to_score(np.where(np.arange(4) < 2, GRID, REST), 0.6), tmp_path / "two.mid")
    say = [f"bundle={voices}", "midi=sung.mid", "out=look", "format=svg"]
    attend(settings("attend", *say, "voice=B"))
    said = capsys.readouterr().out
    assert re.search(r"^note \d+ of 7, at 1.20 s; \d+\.\d%.*the melody is the bass$", said, re.M)
    assert sorted(p.name for p in (tmp_path / "look").iterdir()) == ["sung-attention.svg", "sung-heads.svg"]
    for words, line in (
        (["voice=SA"], "^voice=SA: "),
        (["midi=two.mid", "voice=B"], "^voice=B: "),
        (["layer=5"], "layer=5: give 0 to 1"),
        (["at=note7"], "^at=…: note 7, .*1.20 s"),
    ):
        with pytest.raises(UserError, match=line):
            attend(settings("attend", *say, "overwrite=true", *words))
