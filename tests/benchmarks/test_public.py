"""The model of the public code is the same mathematics as ours, in another order."""

import torch
from public import PublicAttention, PublicConfig, PublicTraining, PublicTransformer

from musictx.model.attention.relative import reference

SIZES = {"d_model": 16, "n_layers": 2, "n_heads": 4, "d_ff": 24}
SMALL = PublicConfig(vocab_size=20, dropout=0.0, attention_dropout=0.0, max_sequence=12, **SIZES)


def model():
    torch.manual_seed(0)
    return PublicTransformer(SMALL).eval()


def test_its_attention_is_the_definition_with_one_table_for_all_heads():
    torch.manual_seed(0)
    for t in (1, 5, SMALL.max_sequence):
        attention = PublicAttention(SMALL).double()
        torch.nn.init.normal_(attention.table)
        x = torch.randn(t, 3, SMALL.d_model, dtype=torch.float64)
        q, k, v = (y.view(t, 3, 4, 4).permute(1, 2, 0, 3) for y in attention.qkv(x).chunk(3, -1))  # (B, H, T, D)
        rel = attention.table.flip(0).expand(4, -1, -1)  # (H, M, D), nearest first
        expected = attention.project(reference(q, k, v, rel).permute(2, 0, 1, 3).reshape(t, 3, -1))
        mask = torch.full((t, t), -torch.inf, dtype=torch.float64).triu(1)
        torch.testing.assert_close(attention(x, mask), expected)


def test_it_is_causal():
    ids = torch.randint(20, (2, 12), generator=torch.Generator().manual_seed(1))
    changed = ids.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % 20
    before, after = model()(ids), model()(changed)
    torch.testing.assert_close(before[:, :7], after[:, :7])
    assert not torch.isclose(before[:, 7:], after[:, 7:]).all(-1).any()


def test_it_learns():
    music = PublicTraining(model(), pad=19)
    ids = torch.randint(19, (4, 13), generator=torch.Generator().manual_seed(2))
    losses = [music.step(ids) for _ in range(60)]
    assert losses[-1] < losses[0]
    ids[:, 1:] = 19
    assert torch.tensor(music.step(ids)).isnan()  # padding is no target
