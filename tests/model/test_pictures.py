"""The piano roll of ids is that of their notes; both models of pictures see all of it, and each note where it is."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from proofs import learn
from test_keys_in_sight import KEYS, TOK, stream

from musictx.analysis.trained_labels import Labeller, label_notes
from musictx.errors import ConfigError
from musictx.model.build import build_model, model_config
from musictx.model.roll import Picture, Roll
from musictx.model.se_resnet import read_channels
from musictx.model.vit import read_class_token
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.labels import with_labels
from musictx.training.start import keys_of

SIZES = {"d_model": 16, "dropout": 0.0, "n_frames": 48}
DEEP = {"n_layers": 2, "n_heads": 2, "d_ff": 32, "qk_norm": True, "value_residual": True}
ON, OFF, WAIT = (TOK.vocab.offsets[name] for name in ("NOTE_ON", "NOTE_OFF", "TIME_SHIFT"))
kinds = pytest.mark.parametrize("kind", ["vit", "se_resnet"])


def build(kind, far=True, **more):
    torch.manual_seed(0)
    sizes = SIZES | (DEEP if kind == "vit" else {}) | more
    model = build_model(model_config(kind, sizes, vocab_size=TOK.vocab.size, pad=TOK.vocab.pad), keys=KEYS).eval()
    for p in model.parameters() if far else ():  # far from the start, where a vision Transformer hardly looks
        torch.nn.init.normal_(p, std=0.2)
    return model


def picture(ids, n_frames=48) -> Picture:
    roll = Roll(TOK.vocab.size, n_frames)
    roll.learn(KEYS)
    seen: Picture = roll(torch.as_tensor(np.asarray(ids).astype(np.int64))[None])
    return seen


def by_definition(score, n_frames):
    """(2, 88, F), one note and one frame after the other; the encoding counts hundredths of a second."""
    roll = np.zeros((2, 88, n_frames), np.float32)
    for onset_s, offset_s, pitch in zip(score.onset_s, score.offset_s, score.pitch, strict=True):
        if 21 <= pitch <= 108:
            onset, offset = round(onset_s * 100), round(offset_s * 100)
            for f in range(n_frames):
                if 5 * f <= onset < 5 * f + 5:
                    roll[0, pitch - 21, f] = roll[1, pitch - 21, f] = 1
                if onset < 5 * f + 5 and offset > 5 * f:
                    roll[1, pitch - 21, f] = 1
    return roll


def test_a_roll_is_literally_this():
    """C4 for 0.12 s from 0.1 s on, struck again at once; the lowest key of a piano, and one below it; B after all."""
    ids = [TOK.vocab.bos, WAIT + 9, ON + 60, ON + 21, ON + 20, WAIT + 11, OFF + 60, ON + 60, WAIT + 12, OFF + 60]
    ids += [OFF + 21, OFF + 20, WAIT + 99, WAIT + 94, ON + 71, WAIT + 9, OFF + 71, TOK.vocab.pad]
    roll, key, frame, seen = picture(ids)
    assert roll.shape == (1, 2, 88, 48)
    struck = [[60 - 21, 2], [60 - 21, 4], [0, 2], [71 - 21, 46]]
    assert torch.nonzero(roll[0, 0]).tolist() == sorted(struck)
    sounds = [[39, f] for f in range(2, 7)] + [[0, f] for f in range(2, 7)] + [[50, 46], [50, 47]]
    assert torch.nonzero(roll[0, 1]).tolist() == sorted(sounds)
    at = torch.nonzero(seen[0])[:, 0].tolist()
    assert at == [2, 3, 7, 14]
    assert [(int(key[0, t]), int(frame[0, t])) for t in at] == [(39, 2), (0, 2), (39, 4), (50, 46)]


def test_a_note_without_an_end_sounds_to_the_end_and_other_music_lets_it_go():
    assert torch.nonzero(picture([ON + 60, WAIT + 14])[0][0, 1])[:, 1].tolist() == [0, 1, 2]
    assert torch.nonzero(picture([ON + 60])[0][0, 1])[:, 1].tolist() == [0]
    cut = picture([ON + 60, WAIT + 14, TOK.vocab.bos, WAIT + 99])
    assert torch.nonzero(cut[0][0, 1])[:, 1].tolist() == [0, 1, 2]
    assert not picture([OFF + 60, WAIT + 99])[0].any()


@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([16, 48, 96]))
def test_a_roll_is_that_of_its_notes(random_seed, n, n_frames):
    rng = np.random.default_rng(random_seed)
    onset_s = rng.integers(0, 300, n) / 100
    score = Score(onset_s, onset_s + rng.integers(1, 80, n) / 100, rng.integers(15, 115, n), np.full(n, 80))
    ids = TOK.encode(score)
    heard = TOK.decode(ids)  # where notes of one key overlap, the first ends
    assert np.array_equal(picture(ids, n_frames)[0][0].numpy(), by_definition(heard, n_frames))


@kinds
def test_an_answer_depends_on_all_notes_and_on_no_padding_nor_row_beside(kind):
    model, ids = build(kind), stream(40)
    alone = model(ids)
    assert alone.shape == (1, 40, TOK.vocab.size)
    filled = torch.cat([ids, torch.full((1, 9), TOK.vocab.pad)], 1)
    torch.testing.assert_close(model(filled)[:, :40], alone)
    torch.testing.assert_close(model(torch.cat([ids, stream(40, random_seed=2)]))[:1], alone)
    first, last = (torch.tensor([[ON + 60, WAIT + 9, OFF + 60, ON + 72, WAIT + late, OFF + 72]]) for late in (9, 30))
    assert not torch.isclose(model(first)[0, 0], model(last)[0, 0]).all()  # a later note, to an earlier one
    assert torch.isfinite(model(torch.full((2, 3), TOK.vocab.pad))).all()
    assert model.bfloat16()(ids).dtype is torch.bfloat16


@kinds
def test_a_note_has_an_answer_of_its_place_and_what_is_outside_that_of_the_whole(kind):
    ids = [ON + 60, ON + 64, WAIT + 19, OFF + 60, ON + 60, OFF + 64, WAIT + 99, WAIT + 99, WAIT + 99, ON + 70, ON + 12]
    logits = build(kind)(torch.tensor([ids]))[0]
    same = torch.isclose(logits[:, None], logits, atol=1e-5).all(-1)  # (T, T)
    notes = [0, 1, 4]
    for t in notes:
        assert same[t].sum() == 1  # in a vision Transformer these share one patch
    others = [t for t in range(len(ids)) if t not in notes]  # the last two: after the picture, below the piano
    assert same[others][:, others].all()


@kinds
def test_it_learns_which_of_two_notes_is_higher(kind):
    model, chance = build(kind, far=False, n_frames=16), torch.Generator().manual_seed(3)
    model.train()

    def batch():
        low = torch.randint(48, 56, (16,), generator=chance)
        high = low + torch.randint(1, 7, (16,), generator=chance)
        swap = torch.rand(16, generator=chance) < 0.5
        pair = torch.stack([torch.where(swap, high, low), torch.where(swap, low, high)], 1)
        ids = torch.cat([pair + ON, torch.full((16, 1), WAIT + 29)], 1)
        return model(ids)[:, 0], swap.long()

    assert learn(model, batch, 1e-2, 100) < 0.3  # 0.69 by chance


def test_what_the_class_token_looks_at_is_what_it_adds():
    model, ids, mixed = build("vit"), stream(40, rows=2), []
    for block in model.blocks:
        whole = block.attend.attend_to

        def attend_to(q, k, v, *more, whole=whole):
            one_hot = torch.eye(v.shape[2]).expand(*v.shape[:2], -1, -1)
            mixed.append(whole(q, k, one_hot, *more)[:, :, 0])  # (B, H, 1 + P · N)
            return whole(q, k, v, *more)

        block.attend.attend_to = attend_to
    found = read_class_token(model, ids)
    assert found.shape == (2, 2, 2, 11, 6)
    torch.testing.assert_close(found.flatten(3), torch.stack(mixed)[..., 1:])
    assert float(found.std()) > 1e-4


def test_gates_are_shares_of_channels_and_off_there_are_none():
    model, ids = build("se_resnet"), stream(40, rows=2)
    found = read_channels(model, ids)
    assert [share.shape for share in found] == [(2, c) for c in (4, 8, 16)]
    assert all(((share > 0) & (share < 1)).all() for share in found)
    last, x = model.blocks[2], torch.randn(2, 8, 22, 3)
    assert not torch.allclose(last(x), last.shortcut(x).relu(), atol=1e-3)
    last.gate.excite.bias.data.fill_(-50)  # the gate shut: the block adds nothing
    assert float(read_channels(model, ids)[-1].max()) < 1e-6
    torch.testing.assert_close(last(x), last.shortcut(x).relu())
    assert read_channels(build("se_resnet", gates=False), ids) == []


def test_each_note_of_slow_music_is_in_the_picture_that_answers():
    tokenizer = with_labels(build_tokenizer("performance"), 2)
    model: Any
    sizes, vocab = SIZES | DEEP | {"n_frames": 96}, tokenizer.vocab  # 4.8 s
    model = build_model(model_config("vit", sizes, vocab_size=vocab.size, pad=vocab.pad), keys=keys_of(tokenizer))
    ear: Any = Labeller(model, tokenizer)
    ear.read = lambda batch: model.roll(batch).seen[..., None].float().expand(-1, -1, 2)
    onset_s = np.cumsum(np.tile([0.4, 0.9, 3.7, 0.1], 12))
    slow = Score(onset_s, onset_s + 0.3, np.resize(np.arange(50, 70), len(onset_s)), [80] * len(onset_s), 0.5)
    assert label_notes(ear, slow, 256).min() == 1.0


def test_sizes_that_they_cannot_have_are_refused():
    for kind in ("vit", "se_resnet"):
        for wrong in (20, 4112):
            with pytest.raises(ConfigError, match=f"^n_frames={wrong}: .* 16 up to 4096"):
                build(kind, n_frames=wrong)
    with pytest.raises(ConfigError, match="^d_model=24: .* 16"):
        build("se_resnet", d_model=24)
