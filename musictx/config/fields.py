"""The keys of a command for the fields in a library's errors: temperature is sampler.temperature."""

import sys
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints

from musictx.config.command import find
from musictx.config.train import TrainConfig

OTHERWISE = {  # what has another name among the settings, or no schema
    "plain": "objective_settings.plain",
    "Continue.window": "window",
    **{f"Length.{name}": f"length_{name}" for name in ("seconds", "bars", "notes", "tokens")},
}


@cache
def setting_keys(command: str) -> Mapping[str, str]:
    """Each field's key in the settings of a command, or else of `musictx train`, which many errors advise."""
    keys = OTHERWISE | _keys(TrainConfig) | _keys(find(command).schema)
    return keys | {"TransformerConfig.attention": keys["impl"]}  # the kernel, which a person gives as `impl`


def _keys(schema: type[Any]) -> dict[str, str]:
    """Keys by field and Class.field: first of settings outside groups; a field of two groups needs its class."""
    keys: dict[str, str] = {}
    settings = get_type_hints(schema)
    for group, hint in settings.items():
        for kind in _schemas(group, hint):
            for name in (field.name for field in fields(kind)):
                key = f"{group}.{name}"
                keys[f"{kind.__name__}.{name}"] = key
                keys[name] = key if keys.get(name, key) == key else name
    return keys | {name: name for name in settings}


def _schemas(group: str, hint: Any) -> list[type[Any]]:
    if group == "model":  # its preset chooses one
        if "musictx.model.build" not in sys.modules:
            return []  # it takes a second to import, and without it no model has refused a setting
        from musictx.config.model import schemas

        return list(schemas().values())
    return [hint] if is_dataclass(hint) and isinstance(hint, type) else []
