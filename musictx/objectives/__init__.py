"""What a model is trained for: what a window of ids becomes, and what the model's answer to it costs.

Training, validation, `musictx evaluate`, batch sizing and the benches all ask the same objective. `objective=infill`
is the class `Infill` of `musictx/objectives/infill.py`, and `objective=my_module:Mine` one of a person's own
(docs/extending.md).
"""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from musictx.errors import ConfigError
from musictx.tokenizers import EventRange, Tokenizer, with_added

NEXT_TOKEN = "next_token"
PARTS = ("added", "inputs", "continuous", "continues", "example", "loss")  # of a class that is an objective


class Example(NamedTuple):
    """What a window becomes, or a batch of them (B, …)."""

    inputs: Sequence[Tensor]  # what the model is called with; the last are the ids that it reads on, (T,)
    targets: Tensor  # (T,) the id that it is to find at each place; PAD where nothing counts


class Objective(Protocol):
    """Made of the tokenizer, which knows the added ids then, and of `objective_settings=`."""

    added: tuple[EventRange, ...]  # ids that it needs beyond the tokenizer's
    inputs: tuple[str, ...]  # names of `Example.inputs`, as a kind of model has them
    continuous: bool  # examples may be cut in pieces of any length, which go on from one to the next
    continues: bool  # a model that has learnt it goes on from a beginning
    tokenizer: Tokenizer

    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        """Of a window (T + 1,): BOS or the id before, then T ids, filled up with PAD. All chance comes out of `rng`,
        which is a function of the window's number: several processes and a run that goes on draw the same."""
        ...

    def loss(
        self, model: Callable[..., Tensor], example: Example, label_smoothing: float = 0.0, by_row: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Nats in all, and how many tokens they are of: of a batch of examples (), or of each row of it (B,)."""
        ...


def find_objective(name: str) -> type[Any]:
    """The class that `objective=` names. Raises ConfigError."""
    module, _, cls = name.partition(":")
    known = sorted(found.name for found in iter_modules(__path__))
    if ":" not in name:
        if name not in known:
            raise ConfigError(f"objective={name}: choose one of {', '.join(known)}, or give my_module:MyObjective")
        module, cls = f"{__name__}.{name}", name.title().replace("_", "")
    elif os.getcwd() not in sys.path:  # as `python -m` has it; last, so that nothing of it stands before a package
        sys.path.append(os.getcwd())
    try:
        found = getattr(import_module(module), cls, None)
    except Exception as error:  # whatever a person's own file does
        raise ConfigError(
            f"objective={name}: {module} cannot be imported from this folder or from what is installed "
            f"({type(error).__name__}: {error})"
        ) from None
    if not isinstance(found, type):
        raise ConfigError(f"objective={name}: {module} has no class {cls!r}")
    if missing := [part for part in PARTS if not hasattr(found, part)]:
        raise ConfigError(f"objective={name}: {cls} has no {', '.join(missing)}: let it inherit those of NextToken")
    return found


def build_objective(name: str, settings: Any, tokenizer: Tokenizer, cycle: int = 1) -> Objective:
    """The objective over the tokenizer's ids and those that it adds; `settings` are names with values, or None. One
    that has a parameter `cycle` is told the model's. Raises ConfigError."""
    cls = find_objective(name)
    if not isinstance(settings, Mapping | None):
        raise ConfigError(f"objective_settings={settings}: give names and values, 'objective_settings={{name: 1}}'")
    parameters = list(signature(cls).parameters)[1:]
    allowed = [each for each in parameters if each != "cycle"]
    for setting in settings or {}:
        if setting not in allowed:
            has = ", ".join(allowed) or "no settings"
            raise ConfigError(f"objective_settings.{setting} is not a setting: objective={name} has {has}")
    known = {"cycle": cycle} if "cycle" in parameters else {}
    built: Objective = cls(with_added(tokenizer, cls.added), **(settings or {}), **known)
    return built
