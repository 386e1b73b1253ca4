import numpy as np
import pytest
import torch
from strategies import split_of

from musictx.data.dataset import RandomCrops, batch_of
from musictx.errors import ConfigError
from musictx.objectives import Example
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer

PERFORMANCE, CHORALE = build_tokenizer("performance"), ChoraleTokenizer()


def scale(n):
    """A piece that counts: NOTE_ON 0, 1, 2 … so that every window says where it was cut."""
    return np.arange(n) % 128


def test_a_window_is_a_function_of_seed_and_index_alone():
    split = split_of(scale(100), scale(60))
    a, b = (RandomCrops(split, PERFORMANCE, 16, random_seed=1) for _ in range(2))
    assert all(torch.equal(a[i], b[i]) for i in (0, 7, 1000))
    assert any(not torch.equal(a[i], RandomCrops(split, PERFORMANCE, 16, random_seed=2)[i]) for i in range(5))


def test_windows_are_whole_slices_with_bos_and_eos_only_at_the_ends():
    vocab = PERFORMANCE.vocab
    crops = RandomCrops(split_of(scale(100)), PERFORMANCE, 16, random_seed=0)
    seen = np.zeros(100)
    begins = ends = 0
    for i in range(400):
        window = crops[i].numpy()
        assert window.shape == (17,)
        body = window[window < vocab.n_events]
        assert (np.diff(body) == 1).all()
        seen[body] += 1
        if window[0] == vocab.bos:
            begins += 1
            assert body[0] == 0
        if vocab.eos in window:
            ends += 1
            assert body[-1] == 99
            assert window[-1] == vocab.eos
        assert vocab.pad not in window
    assert begins > 20
    assert ends > 5
    assert seen.min() > 0.4 * seen.mean()


def test_the_end_of_an_unfinished_piece_is_seen_and_teaches_no_eos():
    vocab = PERFORMANCE.vocab
    whole = RandomCrops(split_of(scale(100)), PERFORMANCE, 16, random_seed=0)
    cut = RandomCrops(split_of(scale(100), unfinished=[0]), PERFORMANCE, 16, random_seed=0)
    ends = 0
    for i in range(200):
        window, other = whole[i], cut[i]
        assert torch.equal(other, window.where(window != vocab.eos, vocab.pad))
        ends += 99 in other
    assert ends > 5
    short = RandomCrops(split_of(scale(5)), PERFORMANCE, 10, random_seed=0)[0].tolist()
    assert short == [vocab.bos, 0, 1, 2, 3, 4, vocab.eos, *[vocab.pad] * 4]


def test_transposition_stays_inside_the_vocabulary_and_uses_the_whole_range():
    grid = np.tile(np.array([[107, 100, 90, 80]], np.int16), (8, 1))
    crops = RandomCrops(split_of(CHORALE.encode_grid(grid)), CHORALE, 32, random_seed=0, transpose=3)
    tops = {max(int(t) for t in crops[i] if t < 88) + 21 for i in range(200)}
    assert tops == {104, 105, 106, 107, 108}


def test_stretched_windows_stay_full():
    stream = np.tile([60, 256 + 40, 188, 256 + 20], 200)
    crops = RandomCrops(split_of(stream), PERFORMANCE, 64, random_seed=0, stretch=[0.95, 1.0, 1.05])
    gaps = set()
    for i in range(100):
        window = crops[i].numpy()
        assert (window == PERFORMANCE.vocab.pad).sum() <= 1
        gaps |= set(window[(window >= 256) & (window < 356)] - 255)
    assert {38, 41, 43} <= gaps


@pytest.mark.parametrize("factor", [0.75, 1.0, 1.33])
@pytest.mark.parametrize("n", [50, 100])  # ids of a piece; windows are of 64
def test_the_end_of_a_stretched_piece_is_seen_too(factor, n):
    stream = np.tile([60, 256 + 40, 188, 256 + 20], n // 2)
    crops = RandomCrops(split_of(stream), PERFORMANCE, 64, random_seed=0, stretch=[factor])
    windows = [crops[i].tolist() for i in range(100)]
    assert sum(PERFORMANCE.vocab.eos in window for window in windows) >= 10
    assert sum(PERFORMANCE.vocab.bos in window for window in windows) >= 10


def test_impossible_augmentation_and_lengths_are_refused():
    split = split_of(scale(10))
    for stretch in ([], [1.0, 0.74], [1.34], [float("nan")]):
        with pytest.raises(ConfigError, match=r"^stretch=\[.*\]: .*0\.75 to 1\.33"):
            RandomCrops(split, PERFORMANCE, 8, random_seed=0, stretch=stretch)
    with pytest.raises(ConfigError, match="^stretch=1.05: chorale "):
        RandomCrops(split, CHORALE, 8, random_seed=0, stretch=[1.0, 1.05])
    with pytest.raises(ConfigError, match="^length=12: .* 16 ids: give 16 "):  # some tokens would never be drawn
        RandomCrops(split, CHORALE, 12, random_seed=0, cycle=16)


@pytest.mark.parametrize(("length", "cycle"), [(4, 1), (9, 1), (16, 8), (17, 16), (39, 16)])
@pytest.mark.parametrize("n_ids", [36, 40])
def test_every_chorale_token_and_the_end_are_drawn(length, cycle, n_ids):
    crops = RandomCrops(split_of(np.arange(n_ids)), CHORALE, length, random_seed=0, cycle=cycle)  # every id once
    windows = [crops[i].numpy() for i in range(200)]
    targets = {int(t) for window in windows for t in window[1:]}
    assert targets - {CHORALE.vocab.pad} == {*range(n_ids), CHORALE.vocab.eos}
    period = max(cycle, 4)
    assert {int(w[0]) for w in windows} <= {CHORALE.vocab.bos, *range(period - 1, n_ids, period)}


def test_a_batch_fills_up_inputs_and_targets_each_to_its_longest():
    rows = [([1, 2, 3], [4, 5], [6, 7]), ([8], [9, 9, 9], [7, 7, 7])]
    examples = [Example((torch.tensor(source), torch.tensor(ids)), torch.tensor(to)) for source, ids, to in rows]
    (source, ids), targets = batch_of(examples, 0)
    assert source.tolist() == [[1, 2, 3], [8, 0, 0]]
    assert ids.tolist() == [[4, 5, 0], [9, 9, 9]]
    assert targets.tolist() == [[6, 7, 0], [7, 7, 7]]
