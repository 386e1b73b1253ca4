"""What must be true of every model that continues music: causal, the same in steps, able to learn."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from proofs import BLOCKS, assert_cached_steps_equal_one_pass, assert_causal, learn, tokens
from test_position import ALL
from test_position import build as build_transformer
from test_recurrent import KINDS
from test_recurrent import build as build_recurrent

from musictx.errors import ConfigError
from musictx.model.build import build_model, model_config

TRANSFORMERS: list[dict[str, Any]] = [{"position": p, "clock": clock, **block} for p, clock in ALL for block in BLOCKS]
TRANSFORMERS += [{"attention": impl} for impl in ("reference", "skew", "chunked")] + [{"cycle": 4}, {"norm": "post"}]
CASES: list[tuple[Any, dict[str, Any]]] = [(build_transformer, case) for case in TRANSFORMERS]
CASES += [(build_recurrent, {"kind": kind}) for kind in KINDS]
NAMES = ["-".join(map(str, case.values())) for _, case in CASES]
every = pytest.mark.parametrize(("build", "case"), CASES, ids=NAMES)

FIRST = {"norm": "post", "mlp": "relu", "position": "sinusoidal"}  # as in Vaswani et al. 2017
FEW: list[tuple[str, dict[str, Any]]] = [("transformer", {})]
FEW += [("recurrent", KINDS[kind]) for kind in ("lstm", "rnn", "additive")]
few = pytest.mark.parametrize(("kind", "settings"), [*FEW, ("transformer", FIRST)])


def small(kind, settings, dropout=0.0):
    torch.manual_seed(0)
    own = {"d_attention": 5, "window": 7} if kind == "recurrent" else {"n_heads": 3, "d_ff": 48, "max_distance": 6}
    common = {"vocab_size": 23, "d_model": 24, "n_layers": 2, "dropout": dropout}
    return build_model(model_config(kind, common | own | settings))


@every
def test_no_logit_depends_on_a_later_token(build, case):
    assert_causal(build(**case), tokens(1, 10))


@every
@pytest.mark.parametrize("prefill", [1, 9, 36])  # far beyond the table, more than a block of queries
def test_cached_steps_equal_one_full_pass(build, case, prefill):
    assert_cached_steps_equal_one_pass(build(**case), tokens(3, prefill + 12), prefill)


@few
def test_it_learns_a_melody_by_heart(kind, settings):
    model, ids = small(kind, settings), torch.tensor([[1, 5, 9, 5, 2, 2, 7] * 5])
    lr = 1e-2 if kind == "transformer" else 3e-2
    assert learn(model, lambda: (model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()), lr, 120) < 0.2


@few
def test_dropout_acts_in_training_only(kind, settings):
    model, ids = small(kind, settings, dropout=0.5), tokens(1, 9)
    assert not torch.equal(model.train()(ids), model(ids))
    assert torch.equal(model.eval()(ids), model(ids))


@pytest.mark.parametrize(("kind", "settings"), FEW)
def test_an_untrained_model_knows_nothing(kind, settings):
    torch.manual_seed(0)
    model = build_model(model_config(kind, {"vocab_size": 391, "d_model": 256, **settings}))
    ids = tokens(2, 65, below=391)
    nll = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
    assert float(nll.detach()) == pytest.approx(math.log(391), rel=0.05)


@pytest.mark.parametrize(
    ("kind", "lengths"),
    [("transformer", [13]), ("encoder", [13]), ("encoder_decoder", [13, 12]), ("encoder_decoder", [12, 13])],
)
def test_learned_places_end(kind, lengths):
    model = small(kind, {"position": "learned", "max_positions": 12})
    model(*(tokens(1, 12) for _ in lengths))
    with pytest.raises(ConfigError, match="^max_positions=12: 13 tokens .*position=learned"):
        model(*(tokens(1, n) for n in lengths))


IMPOSSIBLE = {
    "transformer": [
        *(("d_model", 25), ("n_layers", 0), ("max_distance", 0), ("cycle", 0), ("trained_length", 0), ("conv", 0)),
        *(("conv", 65), ("conv", 10**9), ("mlp", "tanh"), ("norm", "sandwich"), ("position", "alibi")),
        *(("clock", "beats"), ("clock", "time"), ("dropout", 1.0), ("attention_dropout", 1.0), ("keyboard", "all")),
    ],
    "recurrent": [
        *(("vocab_size", 0), ("d_model", 0), ("n_layers", -1), ("d_attention", 0), ("window", 0), ("cell", "gru")),
        *(("dropout", 1.0), ("dropout", -0.1), ("keyboard", "all")),
    ],
    "encoder_decoder": [("n_encoder_layers", 0), ("target_group", 0), ("cycle", 6), ("clock", "time")],
    "recurrent_encoder_decoder": [("n_layers", 1), ("d_model", 13), ("cell", "rnn"), ("dropout", 1.0)],
}


@pytest.mark.parametrize(
    ("kind", "field", "value"), [(kind, *wrong) for kind, fields in IMPOSSIBLE.items() for wrong in fields]
)
def test_impossible_sizes_are_refused(kind, field, value):
    with pytest.raises(ConfigError, match=f"^{field}={value}: .*give"):
        build_model(model_config(kind, {"vocab_size": 9, field: value}))
