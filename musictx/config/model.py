"""The schema of each kind of model: the fields of its config that a person sets."""

import dataclasses
from copy import copy
from functools import cache
from typing import Any, get_type_hints

from musictx.errors import ConfigError
from musictx.model.build import KINDS
from musictx.model.settings import one_of
from musictx.setting import setting

SCHEMA = "_schema"  # `transformer_schema` is what a preset of `conf/model/` begins with


class Settings:
    """Defaults for the kinds without these settings."""

    clock = "index"
    cycle = 1
    keyboard = "none"


def schemas() -> dict[str, type[Any]]:
    """The schema of every kind of model."""
    return {kind: schema_of(kind) for kind in KINDS}


def schema_of(kind: str) -> type[Any]:
    """The schema of a kind. Raises ConfigError for an unknown one."""
    config: Any = KINDS[one_of("model.kind", kind, KINDS)].config
    return _schema(kind, config)


@cache
def _schema(kind: str, config: Any) -> type[Any]:
    types = get_type_hints(config)
    rows: list[tuple[str, Any, Any]] = [("kind", str, setting(kind, "set by the preset"))]
    for each in dataclasses.fields(config):
        if "meaning" in each.metadata:
            rows.append((each.name, types[each.name], copy(each)))
    return dataclasses.make_dataclass(
        f"{kind}{SCHEMA}", rows, bases=(Settings,), namespace={"__doc__": config.__doc__, "__module__": __name__}
    )


def __getattr__(name: str) -> Any:
    """The schema of this name, for pickle."""
    if name.endswith(SCHEMA) and (kind := name.removesuffix(SCHEMA)) in KINDS:
        return schema_of(kind)
    raise AttributeError(name)


def check_settings(model: Any) -> None:
    """Raises ConfigError for other settings than those of the kind that they name."""
    kind = getattr(model, "kind", None)
    if kind is None or type(model) is not schema_of(kind):
        raise ConfigError(
            "model" if kind is None else "model.kind",
            got=model if kind is None else kind,
            why="these are not the settings of such a model",
            allowed="a preset, as in model=small or model=lstm",
            hint=f"begin one of your own with `defaults: [{next(iter(KINDS))}{SCHEMA}]`",
        )
