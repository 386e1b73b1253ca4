from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from test_carried_windows import VOCAB, stream_of

from musictx.data.datamodule import GlobalBatches, ResumableLoader


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 30), st.integers(0, 3))
def test_processes_share_the_batches_of_one_with_all_of_their_rows(world_size, batch_size, n_items, epoch):
    parts = [GlobalBatches(n_items, batch_size, rank, world_size) for rank in range(world_size)]
    whole = GlobalBatches(n_items, batch_size * world_size)
    for batches in (*parts, whole):
        batches.set_epoch(epoch)
    assert [list(chain(*rows)) for rows in zip(*parts, strict=True)] == list(whole)
    seen = [i for rows in whole for i in rows]
    assert seen == list(range(epoch * n_items, epoch * n_items + len(whole) * batch_size * world_size))


@pytest.mark.parametrize(("world_size", "workers"), [(2, 0), (3, 2)])
def test_every_token_of_carried_pieces_is_seen_once_by_all_processes_and_workers(world_size, workers):
    lengths, batch_size = [40, 8, 24, 16, 60], 2
    stream = stream_of(lengths, 8, batch_size * world_size)
    targets = []
    for rank in range(world_size):
        loader = ResumableLoader(stream, GlobalBatches(len(stream), batch_size, rank, world_size), workers)
        for ids, _ in loader:
            targets += ids[:, 1:].flatten().tolist()
    counts = torch.bincount(torch.tensor(targets), minlength=VOCAB.size)
    assert counts[20 : 20 + len(lengths)].tolist() == lengths
    assert counts[VOCAB.eos] == len(lengths)


def test_a_loader_continues_in_the_epoch_that_it_was_stopped_in_and_in_no_other():
    stream = stream_of([40, 8, 24], 8, 2)
    make = lambda: ResumableLoader(stream, GlobalBatches(len(stream), 2))  # noqa: E731
    loader, again = make(), make()
    expected = {}
    for epoch in (1, 2):
        loader.batches.set_epoch(epoch)
        expected[epoch] = [ids.tolist() for ids, _ in loader]
    loader.batches.set_epoch(1)
    reading = iter(loader)
    for _ in range(2):
        next(reading)
    again.load_state_dict(loader.state_dict())
    unread, reading = iter(again), iter(again)  # Lightning makes more iterators than it reads, before it sets the epoch
    again.batches.set_epoch(1)
    assert [ids.tolist() for ids, _ in reading] == expected[1][2:]
    again.batches.set_epoch(2)
    assert [ids.tolist() for ids, _ in unread] == expected[2]


def test_the_global_generator_is_left_alone_and_each_epoch_has_new_windows():
    before, batches = torch.get_rng_state(), GlobalBatches(5, 2)
    list(ResumableLoader(stream_of([40], 8, 2), batches))
    assert torch.equal(torch.get_rng_state(), before)
    assert list(batches) == [[0, 1], [2, 3]]  # the fifth is less than a batch
    batches.set_epoch(2)
    assert list(batches) == [[10, 11], [12, 13]]
    assert len(batches) == 2
