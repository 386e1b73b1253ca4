"""Convolution: fixed distances, paths of d, log2 d and 1 layers; joined with attention it finds what followed."""

import pytest
import torch
import torch.nn.functional as F

from musictx.lessons import run
from musictx.lessons.convolution import WIDTH, Attention, Convolution, path


def test_only_joined_finds_what_followed():
    rows = {kind: [float(cell.replace(",", "")) for cell in cells] for kind, *cells in run("convolution", 0.1).rows}
    (least, *_), *_, (most, *_) = sorted(rows.values())
    assert most < 1.01 * least  # as many weights
    again = {kind: cells[3] for kind, cells in rows.items()}
    assert again["joined"] < again["attention"] - 0.05
    assert again["dilated"] < again["convolution"] - 0.05
    assert rows["convolution"][2] == pytest.approx(again["convolution"], abs=0.15)  # a return is news to it


def test_a_dilated_convolution_s_path_is_the_logarithm():
    assert [path("convolution", d) for d in (1, 5, 15)] == [1, 5, 15]
    assert [path("dilated", d) for d in (1, 2, 3, 4, 7, 8, 15, 16)] == [1, 2, 2, 3, 3, 4, 4, 5]
    assert [path("attention", d) for d in (1, 15)] == [1, 1]


def test_it_is_pytorch_s_convolution_and_attention_has_another_kernel_for_each_music():
    torch.manual_seed(0)
    x, ours = torch.randn(2, 9, WIDTH), Convolution(4)
    kernel = torch.stack([ours.before.weight, ours.now.weight], -1)  # (C, C, 2)
    theirs = F.conv1d(F.pad(x.mT, (4, 0)), kernel, ours.now.bias, dilation=4).mT
    torch.testing.assert_close(ours(x), theirs, atol=1e-5, rtol=1e-4)
    attention = Attention()
    attention(x)
    assert (attention.kernels[0, -1] - attention.kernels[1, -1]).abs().max() > 1e-3
