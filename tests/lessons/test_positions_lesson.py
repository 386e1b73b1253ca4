"""Forms of position: without one a past is a set, sines are linear in the offset, a table has an end."""

import torch

from musictx.lessons import run
from musictx.lessons.positions import OneLook, binary, off_line, sines, turned
from musictx.model.position.absolute import sinusoidal


def test_only_distances_hold_where_training_never_was():
    right = {form: (float(near), float(far)) for form, near, far, _ in run("positions", 0.1).rows}
    assert right["none"][0] < 0.6
    assert right["learned"][0] > 0.85
    assert right["learned"][1] < 0.5
    assert min(right["relative"]) > 0.9


def test_without_positions_the_past_has_no_order():
    notes, again = torch.tensor([[60, 62, 64, 65]]), torch.tensor([[64, 60, 62, 65]])
    for form in ("none", "sines", "rotary", "relative"):
        torch.manual_seed(0)
        model = OneLook(form)
        same = torch.allclose(model(notes)[:, -1], model(again)[:, -1], atol=1e-6)
        assert same == (form == "none")


def test_sines_are_the_toolkit_s_and_linear_in_the_offset():
    t = torch.arange(64)
    torch.testing.assert_close(sines(t)[None], sinusoidal(t[None].double(), 32, torch.float32), atol=1e-4, rtol=0)
    assert off_line(sines(t)) < 1e-6
    assert off_line(binary(t)) > 0.1


def test_a_product_of_rotated_vectors_knows_only_their_distance():
    q, k = torch.randn(2, 1, 1, 32, generator=torch.Generator().manual_seed(0))
    products = [float(turned(q, torch.tensor([t + 3]))[0, 0] @ turned(k, torch.tensor([t]))[0, 0]) for t in (0, 5, 40)]
    torch.testing.assert_close(products, [products[0]] * 3, atol=1e-3, rtol=1e-3)
    assert abs(products[0] - float(q.flatten() @ k.flatten())) > 0.01
