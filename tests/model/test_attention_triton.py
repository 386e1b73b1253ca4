"""The kernels against the definition: on a GPU compiled, elsewhere in Triton's interpreter."""

from collections import defaultdict
from unittest.mock import Mock

import pytest
import torch
from torch import Tensor

from musictx.errors import ConfigError
from musictx.model.attention import fused
from musictx.model.attention.fused import triton_attention
from musictx.model.attention.triton_tuning import INTERPRETED, TUNING, Card, Launch, Tuning, tuning_for
from musictx.proof.kernels import against_definition, leaves, random_inputs, results

pytest.importorskip("triton", reason="the package triton is not installed")
from triton.runtime.errors import OutOfResources

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    # Triton reads this where a kernel is defined; put back at once: other tests start programs that would inherit it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_INTERPRET", "1")
        import musictx.model.attention.triton_kernels  # noqa: F401  (defines the kernels, here and now)

# (Tq, Tk, D, M, tile): training, prefill behind a cache, single steps; tables shorter than, as long as, longer than T;
# M - 2, where tables end for the tiles, on both sides of a tile's edge
SHAPES = [
    *((1, 1, 59, 3, 16), (2, 2, 32, 2, 16), (33, 33, 59, 12, 16), (33, 33, 32, 18, 16), (33, 33, 32, 19, 16)),
    *((113, 113, 64, 40, 32), (129, 129, 59, 200, 64), (1, 9, 59, 9, 16), (1, 70, 32, 30, 16), (5, 12, 64, 6, 16)),
    *((20, 75, 32, 30, 16), (17, 64, 32, 1, 16), (20, 20, 128, 7, 16), (9, 9, 8, 5, 16)),
]


@pytest.fixture(autouse=True)
def interpreter(monkeypatch):
    if DEVICE == "cpu":
        from triton.runtime.interpreter import InterpretedFunction

        monkeypatch.setenv("TRITON_INTERPRET", "1")
        # a launch puts the interpreter's operations into triton.language; so would every call of a function inside the
        # kernel, again, which takes as long as all that the kernel computes
        monkeypatch.setattr(InterpretedFunction, "__call__", lambda self, *args: self.rewrite()(*args))


def tile(n) -> Tuning | None:
    """Tiles so small that short sequences take several; a GPU is held to the tuning that it is used with."""
    return Tuning(*[Launch(n, 4, 1)] * 4) if DEVICE == "cpu" else None


def inputs(tq, tk, d, m, *, dtype=torch.float32, rows=None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`rows`: B and H. Several of them where D is 59, or as asked: the interpreter takes as long again for each."""
    b, h = rows or ((1, 1) if d != 59 else (2, 3) if tk < 16 else (1, 2) if tk < 60 else (2, 1))
    q, k, v, rel = leaves(random_inputs(tq, tk, d, m, b, h), DEVICE, dtype)
    return q, k, v, rel


def assert_as_good_as_the_plain_formula(got, tensors):
    for outcome in against_definition(got, tensors, DEVICE):
        assert outcome.error <= outcome.limit, outcome


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *((shape, torch.float32) for shape in SHAPES),
        *((SHAPES[i], torch.bfloat16) for i in (2, 7, 9, 12)),
        (SHAPES[2], torch.float16),
    ],
)
def test_it_errs_at_most_twice_as_much_as_the_plain_formula(shape, dtype):
    *shape, n = shape
    tensors = inputs(*shape, dtype=dtype)
    assert_as_good_as_the_plain_formula(results(triton_attention, tensors, tuning=tile(n)), tensors)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((5, 12, 59, 4, 16), torch.float32), ((18, 18, 32, 9, 16), torch.bfloat16)]
)
def test_deterministic_gradients_are_the_same_in_every_bit(shape, dtype, monkeypatch):
    *shape, n = shape
    monkeypatch.setattr(fused, "SPLITS", 1 if dtype == torch.float32 else 8)
    tensors = inputs(*shape, dtype=dtype, rows=(2, 2) if shape[2] == 59 else None)
    one, two = (results(triton_attention, tensors, tuning=tile(n), deterministic=True) for _ in range(2))
    for a, b in zip(one, two, strict=True):
        assert torch.equal(a, b)
    assert_as_good_as_the_plain_formula(one, tensors)
    atomic = results(triton_attention, tensors, tuning=tile(n), deterministic=False)
    for a, b in zip(one[:4], atomic[:4], strict=True):
        assert torch.equal(a, b)  # nothing but the table's gradient is added atomically
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(one[4], atomic[4], rtol=4 * eps, atol=4 * eps * float(one[4].abs().max()))


def test_torchs_switch_for_deterministic_algorithms_is_followed(monkeypatch):
    attend = Mock(side_effect=fused.attend)
    monkeypatch.setattr(fused, "attend", attend)
    tensors = inputs(2, 2, 32, 2)
    triton_attention(*tensors)
    torch.use_deterministic_algorithms(True)
    try:
        triton_attention(*tensors)
    finally:
        torch.use_deterministic_algorithms(False)
    assert [call.args[5] for call in attend.call_args_list] == [False, True]


@pytest.mark.parametrize("tq", [18, 6])
def test_the_future_changes_no_bit_of_the_past_and_no_gradient_flows_to_it(tq):
    q, k, v, rel = inputs(tq, 18, 32, 5)
    out = triton_attention(q, k, v, rel, tuning=tile(16))
    other_k, other_v = (torch.cat([x[:, :, :15], -9 * x[:, :, 15:]], 2).detach() for x in (k, v))
    other = triton_attention(q, other_k, other_v, rel, tuning=tile(16))
    assert torch.equal(out[:, :, :-3], other[:, :, :-3])
    assert not torch.isclose(out[:, :, -3:], other[:, :, -3:]).any()
    for i in (0, tq // 2, tq - 1):
        position = 18 - tq + i
        for grad in torch.autograd.grad(out[:, :, i].sum(), (k, v), retain_graph=True):
            assert (grad[:, :, position + 1 :] == 0).all()
            if position:  # where one key has all the weight, its own gradient is 0
                assert (grad[:, :, : position + 1] != 0).any(-1).all()


def test_any_strides_are_read():
    g = torch.Generator(DEVICE).manual_seed(0)
    qkv = torch.randn(1, 18, 3, 2, 32, generator=g, device=DEVICE)
    q, k, v = qkv.permute(2, 0, 3, 1, 4)  # as a Transformer's projection leaves them
    rel = torch.randn(2, 32, 9, generator=g, device=DEVICE).transpose(1, 2)
    v = v.transpose(2, 3).contiguous().transpose(2, 3)  # not even D is contiguous
    tensors = [t.detach().requires_grad_() for t in (q, k, v, rel)]
    assert not any(t.is_contiguous() for t in tensors)
    got = results(triton_attention, tensors, tuning=tile(16), deterministic=True)
    assert_as_good_as_the_plain_formula(got, tensors)


# tile sizes of forward, queries, keys, table where a shipped tuning mixes them; SHAPES has each of them alone
MIXED = sorted({tuple(launch.block for launch in t) for sizes in TUNING.values() for t in sizes.values()})
MIXED = [blocks for blocks in MIXED if len(set(blocks)) > 1]


@pytest.mark.parametrize("blocks", MIXED)
def test_every_shipped_mix_of_tile_sizes_is_exact(blocks):
    tensors = inputs(70, 133, 16, 40)
    tuning = Tuning(*[Launch(n, 4, 1) for n in blocks])
    for deterministic in (False, True):
        got = results(triton_attention, tensors, tuning=tuning, deterministic=deterministic)
        assert_as_good_as_the_plain_formula(got, tensors)


def test_a_card_is_tuned_by_capability_and_shared_memory():
    known = {(87, 163): 80, (90, 227): 90, (103, 227): 100, (121, 99): 80}
    unknown = {(110, 227): 100, (140, 300): 100, (140, 226): 80}  # by their shared memory
    for (capability, shared_kb), generation in {**known, **unknown}.items():
        assert tuning_for(capability, shared_kb * 1024, 128, 2) is TUNING[generation][128, 2]


class Kernels:
    """In place of the module: a launch does nothing, but for one kernel the card has no room."""

    def __init__(self, large):
        self.large = large

    def __getattr__(self, name):
        def launch(*args, **options):
            if name == self.large:
                raise OutOfResources(115200, 101376, "shared memory")

        return defaultdict(lambda: launch)


@pytest.mark.parametrize("tuning", [None, INTERPRETED])
def test_a_card_older_than_ampere_is_refused_with_what_it_can_do(tuning, monkeypatch):
    monkeypatch.setattr(Card, "of", lambda _: Card("Tesla T4", 75, 65536))
    with pytest.raises(ConfigError, match="^impl=triton: "):
        triton_attention(*inputs(2, 2, 32, 2), tuning=tuning)


@pytest.mark.parametrize("kernel", ["forward", "key_gradient"])
def test_a_kernel_that_the_card_has_no_room_for_says_what_to_change(kernel, monkeypatch):
    monkeypatch.setattr(fused, "load_kernels", lambda: Kernels(kernel))
    text = "^impl=triton: .* 64 .*bfloat16 .* 115200 .* 101376: .*n_heads="
    with pytest.raises(ConfigError, match=text):  # through the backward pass too, where PyTorch's engine calls
        results(triton_attention, inputs(2, 2, 59, 2, dtype=torch.bfloat16), deterministic=True)


def test_both_operators_obey_the_rules_of_torch():
    q, k, v, rel = inputs(3, 5, 16, 2, rows=(2, 2))
    options = (0.25, True, [16, 4, 1] * 4)
    out, lse = fused.attend(q, k, v, rel, *options)
    assert not lse.requires_grad
    # what the compiler makes of them is the next test's
    utils = ("test_schema", "test_autograd_registration", "test_faketensor")
    torch.library.opcheck(fused.attend, (q, k, v, rel, *options), test_utils=utils)
    saved = [t.detach() for t in (torch.randn_like(out), q, k, v, rel, out, lse)]
    torch.library.opcheck(fused.backward, (*saved, *options), test_utils=utils)


def test_torch_compile_sees_through_it_in_one_graph():
    tensors = inputs(3, 5, 20, 2, rows=(2, 2))
    compiled = torch.compile(triton_attention, backend="aot_eager", fullgraph=True)
    got = results(compiled, tensors, deterministic=True)
    for a, b in zip(got, results(triton_attention, tensors, deterministic=True), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize(("missing", "here"), [("triton", "cpu"), ("nvidia", "an AMD GPU"), ("gpu", "cpu")])
def test_a_machine_that_cannot_is_refused(missing, here, monkeypatch):
    if missing == "gpu":
        monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(fused, "HAS_TRITON", missing != "triton")
    monkeypatch.setattr(torch.version, "hip", "7.0" if missing == "nvidia" else None)
    text = f"^impl=triton: .* {here}: "
    q, k, v, rel = (t.cpu() for t in inputs(2, 2, 32, 2))
    with pytest.raises(ConfigError, match=text):
        triton_attention(q, k, v, rel)


@pytest.mark.parametrize(
    ("d", "dtype", "dropout_p", "text"),
    [
        (32, torch.float32, 0.1, ""),
        (129, torch.float32, 0.0, ".* 1 to 128, not 129:"),
        (32, torch.float64, 0.0, ".*float32, float16 and bfloat16, not float64"),
    ],
)
def test_dropout_heads_too_large_and_numbers_too_wide_are_refused(d, dtype, dropout_p, text):
    with pytest.raises(ConfigError, match=f"^impl=triton: {text}"):
        triton_attention(*inputs(2, 2, d, 2, dtype=dtype), dropout_p)
