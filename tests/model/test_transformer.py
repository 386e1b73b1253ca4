import pytest
import torch
import torch.nn.functional as F
from proofs import tokens
from small import build

from musictx.model.steps import newest
from musictx.model.transformer import ShortConv, Transformer, TransformerConfig


def test_the_first_transformer_is_pytorchs():
    model = build(norm="post", mlp="relu", position="none")
    ids = tokens(2, 9)
    x, future = model.embed(ids), torch.ones(9, 9).triu(1).bool()
    names = {"self_attn.in_proj_": "qkv", "self_attn.out_proj.": "project", "linear1.": "up", "linear2.": "down"}
    names |= {"norm1.": "norm_1", "norm2.": "norm_2"}
    for block in model.blocks:
        layer = torch.nn.TransformerEncoderLayer(24, 3, 48, 0.0, batch_first=True).double()
        own = block.state_dict()
        for theirs, ours in names.items():
            for end in ("weight", "bias"):
                own[theirs + end] = own.pop(f"{ours}.{end}")
        layer.load_state_dict(own)
        x = layer(x, src_mask=future)
    torch.testing.assert_close(model(ids), x @ model.embed.weight.T)


def test_the_token_after_bos_has_place_0_and_places_repeat():
    model = build(cycle=4, position="none", n_layers=1)
    with torch.no_grad():
        model.place.weight.copy_(torch.arange(4.0).double()[:, None].expand(4, 24))
        model.embed.weight.zero_()
    seen = []
    model.dropout.register_forward_hook(lambda module, x, y: seen.append(y[0, :, 0].tolist()))
    model(tokens(1, 9))
    assert seen == [[3, 0, 1, 2, 3, 0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("n_ids", "at_most", "period", "start"),
    [(100, 40, 1, 60), (100, 40, 4, 63), (103, 40, 4, 63), (104, 40, 4, 67), (100, 40, 16, 63), (100, 8, 16, 95)],
)
def test_long_pieces_are_read_from_the_token_before_a_whole_period(n_ids, at_most, period, start):
    assert newest(n_ids, at_most, period) == start


def test_music_that_continues_for_ever_is_heard_no_farther_back_than_in_training():
    assert build(max_distance=6).window == 12
    assert build(max_distance=6, trained_length=40).window == 40
    assert build(position="learned", max_positions=9).window == 9


def test_a_full_cache_says_so():
    model = build()
    with pytest.raises(ValueError, match="5 tokens .* cache of 4:"):
        model.prefill(tokens(1, 5), model.init_state(1, 4))


def test_projections_into_the_stream_start_smaller():
    model = Transformer(TransformerConfig(vocab_size=50, n_layers=8))
    std = {name: float(p.detach().std()) for name, p in model.named_parameters() if p.dim() == 2}
    assert std["blocks.0.down.weight"] == pytest.approx(0.02 / 4, rel=0.05)
    assert std["blocks.0.up.weight"] == pytest.approx(0.02, rel=0.05)


def test_the_convolution_is_causal_and_of_each_channel():
    torch.manual_seed(0)
    conv, x, before = ShortConv(3, 5), torch.randn(2, 7, 5), torch.randn(2, 2, 5)
    torch.nn.init.normal_(conv.weight)
    kernel = conv.weight.T[:, None]  # (C, 1, W)
    for start in (before, None):
        padded = torch.cat([before if start is not None else torch.zeros(2, 2, 5), x], 1)
        want = x + F.conv1d(padded.mT, kernel, groups=5).mT
        torch.testing.assert_close(conv(x, start), want)
