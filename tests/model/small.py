"""Small models in float64 with weights far from their start, where positions hardly count and tokens are alike."""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from proofs import BLOCKS, OTHER_BLOCK
from torch import Tensor

from musictx.model.build import build_model, model_config
from musictx.model.position import FORMS, timed_forms

V = 23  # ids
PACE = torch.linspace(0, 1.5, V)
SIZES: dict[str, Any] = {"vocab_size": V, "d_model": 24, "n_layers": 2, "dropout": 0.0}
ATTENDS: dict[str, Any] = {"n_heads": 3, "d_ff": 48, "max_distance": 6, "n_frequencies": 4}
# every form of position by both clocks, in turns with one of both blocks
FORMS_AND_CLOCKS = [*((form, "index") for form in FORMS), *((form, "time") for form in timed_forms())]
PLACES: list[dict[str, Any]] = [{"position": form, "clock": clock} for form, clock in FORMS_AND_CLOCKS]
CASES = [{**place, **BLOCKS[n % 2]} for n, place in enumerate(PLACES)]
CASES += [{"cycle": 4, **OTHER_BLOCK}]
RECURRENT: dict[str, dict[str, Any]] = {
    "lstm": {},
    "recall": {"recall": True, "d_attention": 5, "window": 7},
    "recall of 1": {"recall": True, "d_attention": 5, "window": 1},
    "residual": {"residual": True, "n_layers": 3},
    "residual, one layer": {"residual": True, "n_layers": 1},
    "residual, recall": {"residual": True, "recall": True, "d_attention": 5, "window": 7},
    "recall of all": {"recall": True, "d_attention": 5, "window": 80},
}


def named(case):
    """A case as the name of its test."""
    return "-".join(map(str, case.values())) if isinstance(case, dict) else str(case)


def untrained(kind: str = "transformer", pace: Tensor = PACE, **settings: Any) -> Any:
    """As training begins."""
    torch.manual_seed(0)
    sizes = SIZES if "recurrent" in kind else SIZES | ATTENDS
    return build_model(model_config(kind, sizes | settings), pace)


def build(kind: str = "transformer", pace: Tensor = PACE, **settings: Any) -> Any:
    model = untrained(kind, pace, **settings).double().eval()
    for p in model.parameters() if "recurrent" not in kind else ():
        if p.dim() > 1:
            torch.nn.init.normal_(p, std=0.3)
    return model


def recall_by_definition(
    recall: Any, h: Tensor, x: Tensor, before: Tensor, seen: Callable[[int, int], range]
) -> Tensor:
    """`Recall` of states h and inputs x (B, T, C), the state `before` them (B, C), a pair of `seen(b, t)` at a time."""
    rows = []
    for b, t in product(*map(range, h.shape[:2])):
        states, q = torch.cat([before[b][None], h[b]]), recall.query.weight @ h[b, t]
        scores = [q @ (recall.key.weight @ states[j]) / len(q) ** 0.5 for j in seen(b, t)]  # the state before input j
        rows.append(recall.value.weight @ (torch.stack(scores).softmax(0) @ x[b, [*seen(b, t)]]))
    return torch.stack(rows).view(h.shape)
