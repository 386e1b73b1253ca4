"""What must be true of every model that continues music: causal, the same in steps, able to learn."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from proofs import assert_cached_steps_equal_one_pass, assert_causal, learn, tokens
from small import CASES, RECURRENT, build, named, untrained

from musictx.errors import ConfigError

EVERY: list[dict[str, Any]] = [*CASES, {"attention": "reference"}, {"attention": "chunked"}, {"norm": "post"}]
EVERY += [{"kind": "recurrent", **case} for case in RECURRENT.values()]
every = pytest.mark.parametrize("case", EVERY, ids=named)

LEARN = ("lstm", "recall", "residual", "residual, recall")
FIRST = {"norm": "post", "mlp": "relu", "position": "sinusoidal"}  # as in Vaswani et al. 2017
FEW: list[dict[str, Any]] = [{}, FIRST, *({"kind": "recurrent", **RECURRENT[name]} for name in LEARN)]
few = pytest.mark.parametrize("case", FEW, ids=named)


@every
def test_no_logit_depends_on_a_later_token(case):
    assert_causal(build(**case), tokens(1, 10))


@every
@pytest.mark.parametrize("prefill", [1, 36])  # far beyond the table, more than a block of queries
def test_cached_steps_equal_one_full_pass(case, prefill):
    assert_cached_steps_equal_one_pass(build(**case), tokens(3, prefill + 9), prefill)


@few
def test_it_learns_a_melody_by_heart(case):
    model, ids = untrained(**case), torch.tensor([[1, 5, 9, 5, 2, 2, 7] * 5])
    lr = 3e-2 if "kind" in case else 1e-2
    assert learn(model, lambda: (model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()), lr, 120) < 0.2


@few
def test_dropout_acts_in_training_only(case):
    model, ids = untrained(**case, dropout=0.5), tokens(1, 9)
    assert not torch.equal(model.train()(ids), model(ids))
    assert torch.equal(model.eval()(ids), model(ids))


@few
def test_an_untrained_model_knows_nothing(case):
    if case is FIRST:
        pytest.skip("its sines are larger than its tokens")
    model, ids = untrained(**case, vocab_size=391, d_model=258), tokens(2, 33, below=391)
    nll = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert float(nll.detach()) == pytest.approx(math.log(391), rel=0.05)


@pytest.mark.parametrize(
    ("kind", "lengths"),
    [("transformer", [13]), ("encoder_decoder", [13, 12]), ("encoder_decoder", [12, 13])],
)
def test_learned_places_end(kind, lengths):
    model = untrained(kind, position="learned", max_positions=12)
    model(*(tokens(1, 12) for _ in lengths))
    with pytest.raises(ConfigError, match="^max_positions=12: 13 tokens .*position=learned"):
        model(*(tokens(1, n) for n in lengths))


IMPOSSIBLE: dict[str, list[tuple[str, Any]]] = {
    "transformer": [
        *(("d_model", 25), ("n_layers", 0), ("cycle", 0), ("trained_length", 0), ("conv", 65), ("conv", 10**9)),
        *(("mlp", "tanh"), ("norm", "sandwich"), ("position", "alibi"), ("clock", "beats"), ("clock", "time")),
        *(("dropout", 1.0), ("attention_dropout", 1.0), ("keyboard", "all")),
    ],
    "recurrent": [
        ("vocab_size", 0),
        ("n_layers", -1),
        ("window", 0),
        ("dropout", -0.1),
        ("weight_dropout", 1.0),
    ],
    "encoder_decoder": [("n_encoder_layers", 0), ("target_group", 0), ("cycle", 5)],
}


@pytest.mark.parametrize("kind", IMPOSSIBLE)
def test_impossible_sizes_are_refused(kind):
    for field, value in IMPOSSIBLE[kind]:
        with pytest.raises(ConfigError, match=f"^{field}={value}: .*give"):
            untrained(kind, **{field: value})
