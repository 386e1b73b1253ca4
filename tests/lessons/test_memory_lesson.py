"""Memory: two hops answer what one cannot, places are needed, and keys one note late save a hop."""

import torch

from musictx.lessons import run
from musictx.lessons.memory import MemoryNetwork, ask


def test_two_hops_find_the_note_after_and_one_does_not():
    rows = {name: [float(cell.rstrip("%")) for cell in cells if cell] for name, *cells in run("memory", 0.1).rows}
    assert rows["2 hops"][0] > 80
    assert rows["1 hop, keys a note late"][0] > 80
    for name in ("the commonest next note", "1 hop", "2 hops, no places"):
        assert rows[name][0] < 70
    assert min(rows["2 hops"][1:]) > 60  # one hop on the note asked, the other on its answer


def test_a_question_names_a_note_that_occurs_once_and_is_not_the_last():
    asked = ask(torch.tensor([[60, 62, 60, 64], [60, 60, 60, 64]]))
    assert asked.notes.tolist() == [[60, 62, 60, 64]]
    assert (asked.note(0).tolist(), asked.note(1).tolist()) == ([62], [60])


def test_without_places_the_order_of_a_melody_cannot_be_told():
    notes, question = torch.arange(60, 72)[None], torch.tensor([64])
    for places in (False, True):
        net = MemoryNetwork(2, places)
        same = torch.allclose(net(notes, question)[0], net(notes.flip(1), question)[0], atol=1e-4)
        assert same == (not places)
