import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import split_of

from musictx.data.dataset import CarriedWindows, RandomCrops
from musictx.errors import ConfigError
from musictx.tokenizers import build_tokenizer

TOK = build_tokenizer("chorale")
VOCAB = TOK.vocab


def stream_of(lengths, length, batch_size, transpose=0, seed=0):
    pieces = [np.full(n, 20 + i, np.uint16) for i, n in enumerate(lengths)]  # piece i is pitch 20 + i all through
    crops = RandomCrops(split_of(*pieces), TOK, length, seed, transpose)
    return CarriedWindows(crops, batch_size)


@given(
    st.lists(st.integers(1, 12).map(lambda n: 4 * n), min_size=1, max_size=6),
    st.sampled_from([4, 8, 16]),
    st.integers(1, 3),
    st.integers(0, 2),
)
def test_an_epoch_has_every_token_of_every_piece_once(lengths, length, batch_size, epoch):
    try:
        stream = stream_of(lengths, length, batch_size)
    except ConfigError:  # more rows than windows
        assert sum(-(-(n + 1) // length) for n in lengths) < batch_size
        return
    targets = torch.cat([stream[epoch * len(stream) + i][0][1:] for i in range(len(stream))])
    counts = torch.bincount(targets, minlength=VOCAB.size)
    assert counts[20 : 20 + len(lengths)].tolist() == lengths
    assert counts[VOCAB.eos] == len(lengths)
    assert counts[VOCAB.bos] == 0


def test_the_end_of_an_unfinished_piece_teaches_no_eos():
    pieces = [np.full(8, 20 + i, np.uint16) for i in range(3)]
    stream = CarriedWindows(RandomCrops(split_of(*pieces, unfinished=[0, 2]), TOK, 8, 0), 1)
    targets = torch.cat([stream[i][0][1:] for i in range(len(stream))])
    assert torch.bincount(targets, minlength=VOCAB.size)[[20, 21, 22, VOCAB.eos]].tolist() == [8, 8, 8, 1]


def test_each_row_continues_where_its_last_window_ended_or_begins_again():
    stream = stream_of([40, 8, 24, 16, 60], 8, 2)
    for row in range(2):
        last = None
        for step in range(stream.steps):
            ids, fresh = stream[step * 2 + row]
            if fresh:
                assert step == 0 or ids[0] in (VOCAB.bos, VOCAB.pad)
            else:
                assert ids[0] == last  # the last target is the next input
            last = ids[-1]


def test_epochs_differ_and_an_item_is_a_function_of_its_number():
    a, b = stream_of([40, 8, 24, 16, 60], 8, 2, transpose=3), stream_of([40, 8, 24, 16, 60], 8, 2, transpose=3)
    one = [a[i][0].tolist() for i in range(len(a))]
    two = [a[len(a) + i][0].tolist() for i in range(len(a))]
    assert one != two
    assert [b[len(b) + i][0].tolist() for i in range(len(b))] == two
