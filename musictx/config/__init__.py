"""Hydra's registry of commands: their schemas, and the presets of a single setting; `conf/` has the longer ones."""

from functools import cache
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from musictx.config.command import Command

PRESETS: dict[str, dict[str, dict[str, Any]]] = {  # group -> preset -> its values; longer ones are files of conf/
    "attention": {"auto": {}, **{impl: {"impl": impl} for impl in ("chunked", "reference", "skew", "triton")}},
    "tokenizer": {
        "performance": {"name": "performance"},
        "chorale": {"name": "chorale"},
        "score": {"name": "score"},  # parts in bars: stores of musictx prepare scores
        "miditok": {"name": "miditok-remi"},  # or miditok-tsd, miditok-structured
    },
    "logger": {name: {"name": name} for name in ("csv", "tensorboard", "wandb")},
    "filters": {"none": {}},
    "sampler": {
        "auto": {},  # the filters that the bundle names, else those of nucleus
        "nucleus": {"top_p": 0.98},  # Holtzman et al. 2020, whatever the bundle says
    },
}


@cache
def register_presets() -> None:
    """Registers the presets without YAML."""
    store = ConfigStore.instance().store
    for group, presets in PRESETS.items():
        for name, values in presets.items():
            store(group=group, name=name, node=values)


def unfreeze(settings: DictConfig) -> None:
    """Lets settings within a command's take other values, also of a frozen class."""
    for name in settings:
        if not OmegaConf.is_missing(settings, name) and OmegaConf.is_dict(inner := settings[name]):
            OmegaConf.set_readonly(inner, None)
            unfreeze(inner)


def register(command: Command) -> None:
    """Registers a command's schema and, without its YAML in `conf/`, its first presets; each kind of model becomes the
    preset `<kind>_schema`."""
    register_presets()
    store = ConfigStore.instance().store
    if "model" in command.groups:
        from musictx.config.model import schemas  # with all models, which take a second

        for kind, schema in schemas().items():
            store(group="model", name=f"{kind}_schema", node=schema)
    settings = OmegaConf.structured(command.schema)
    unfreeze(settings)
    store(name=f"{command.name}_schema", node=settings)
    if command.name != "train":
        presets = [{group: preset} for group, preset in command.groups.items()]
        node = {"defaults": [f"{command.name}_schema", "quiet", *presets, "_self_"]}
        store(name=command.name, node=node | {"hydra": {"job": {"name": command.name}}})
