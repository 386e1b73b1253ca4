"""Objectives: a window of ids as an example, and the loss of the model's answer."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np

from musictx.errors import ConfigError
from musictx.files import fits
from musictx.tokenizers import EventRange, Tokenizer, with_added

if TYPE_CHECKING:  # to read the objective of a bundle needs no PyTorch
    from torch import Tensor

NEXT_TOKEN = "next_token"


class Example(NamedTuple):
    """The example of a window, or a batch of examples (B, …)."""

    inputs: Sequence[Tensor]  # the model's inputs; the last one is the ids of its stream, (T,)
    targets: Tensor  # (T,) the id to predict at each place; PAD where nothing counts


class Objective(Protocol):
    """Built from the tokenizer with the added ids, and from `objective_settings=`."""

    added: tuple[EventRange, ...] = ()  # ids that it needs beyond the tokenizer's
    inputs: tuple[str, ...] = ("ids",)  # names of `Example.inputs`, as a kind of model has them
    continuous: bool = True  # examples may be cut to any length, and the next one continues the last
    continues: bool = True  # a model trained on it can continue a primer
    source_voices: int = 1  # that the model hears as one
    target_voices: int | None = None  # that the model writes as one step of a grid; None: it need not
    compared_by: str | None = None  # the default of `musictx evaluate`; None: the objective itself
    compared_with: ClassVar[Mapping[str, Any]] = {}  # its settings there
    tokenizer: Tokenizer

    # `rng` depends only on the window's number: several processes and a resumed run draw the same
    def example(self, window: Tensor, rng: np.random.Generator) -> Example:
        """The example of a window (T + 1,): BOS or the id before, then T ids, filled up with PAD. All chance comes from
        `rng`."""
        ...

    def loss(self, model: Callable[..., Tensor], example: Example, by_row: bool = False) -> tuple[Tensor, Tensor]:
        """The sum of nats and the number of tokens that count: of a batch (), or of each row (B,)."""
        ...


PARTS = (*(part for part in Objective.__annotations__ if part != "tokenizer"), "example", "loss")  # of its class


def find_objective(name: str) -> type[Any]:
    """The class that `objective=` names. Raises ConfigError."""
    module, _, cls = name.partition(":")
    names = sorted(info.name for info in iter_modules(__path__))
    if ":" not in name:
        if name not in names:
            allowed = f"one of {', '.join(names)}, or my_module:MyObjective"
            raise ConfigError("objective", got=name, allowed=allowed)
        module, cls = f"{__name__}.{name}", name.title().replace("_", "")
    elif os.getcwd() not in sys.path:  # as `python -m` does; last, so that it hides no package
        sys.path.append(os.getcwd())
    try:
        objective = getattr(import_module(module), cls, None)
    except Exception as error:  # a person's own file may raise anything
        why = f"{module} cannot be imported from this folder or the installed packages"
        raise ConfigError("objective", got=name, why=f"{why} ({type(error).__name__}: {error})") from None
    if not isinstance(objective, type):
        raise ConfigError("objective", got=name, why=f"{module} has no class {cls!r}")
    if missing := [part for part in PARTS if not hasattr(objective, part)]:
        why = f"{cls} has no {', '.join(missing)}"
        raise ConfigError("objective", got=name, why=why, hint="let it inherit those of NextToken")
    return objective


def build_objective(name: str, settings: Any, tokenizer: Tokenizer, cycle: int = 1) -> Objective:
    """The objective with `settings`; `cycle` is the model's. Raises ConfigError."""
    cls = find_objective(name)
    if not isinstance(settings, Mapping | None):
        hint = "as in 'objective_settings={name: 1}'"
        raise ConfigError("objective_settings", got=settings, allowed="names and values", hint=hint)
    defaults = {each.name: each.default for each in signature(cls).parameters.values()}
    parameters = list(defaults)[1:]
    allowed = [each for each in parameters if each != "cycle"]
    for setting, value in (settings or {}).items():
        if setting not in allowed:
            has = ", ".join(allowed) or "no settings"
            why = f"it is not a setting, objective={name} has {has}"
            raise ConfigError(f"objective_settings.{setting}", got=value, why=why)
        usual = defaults[setting]
        if ":" not in name and isinstance(usual, bool | float) and not fits(value, type(usual)):
            form = "true or false" if isinstance(usual, bool) else "a number"
            raise ConfigError(f"objective_settings.{setting}", got=value, allowed=form)
    model_settings = {"cycle": cycle} if "cycle" in parameters else {}
    built: Objective = cls(with_added(tokenizer, cls.added), **(settings or {}), **model_settings)
    return built
