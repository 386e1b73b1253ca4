"""The gates of an LSTM: open and shut where the music asks for it, and by the formula as by PyTorch's kernel."""

import torch

from musictx.lessons import run
from musictx.lessons.gates import mark, train, unroll


def test_the_memory_takes_in_and_forgets_at_marked_notes_and_needs_its_gates():
    (*_, asked, others), *gates = run("gates", 0.1).rows
    share = {name: [float(x) for x in opened] for name, *opened, _, _ in gates}
    right = {name: (int(a.rstrip("%")), int(o.rstrip("%"))) for name, *_, a, o in gates}
    assert int(asked.rstrip("%")) > 85
    assert share["input"][1] > share["input"][0] + 0.3
    assert share["forget"][1] < share["forget"][0] - 0.3
    assert right["input"][0] < int(asked.rstrip("%")) - 10
    assert right["output"][1] < int(others.rstrip("%")) - 3


def test_the_formula_gives_what_the_kernel_gives_and_a_shut_input_gate_nothing():
    model = train(1)
    _, ids, _ = mark(torch.randint(0, 32, (3, 9)))
    logits, gates = unroll(model, ids)
    torch.testing.assert_close(logits, model(ids))
    assert gates.shape == (3, 9, 3, 32)
    shut = torch.tensor([0.0, 1.0, 1.0])[:, None]  # input, forget, output
    assert not unroll(model, ids, lambda now: now * shut)[0].any()


def test_a_note_that_asks_names_the_one_marked_last():
    kind, ids, named = mark(torch.arange(30).repeat(5, 1))  # each pitch is its own place
    for kinds, names in zip(kind.tolist(), named.tolist(), strict=True):
        last = 0
        for place, (each, name) in enumerate(zip(kinds, names, strict=True)):
            last = place if each == 1 else last
            assert name == (last if each == 2 else place)
    assert (ids == torch.arange(30) + 32 * kind).all()
