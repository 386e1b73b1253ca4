"""The typed schemas under Hydra: each setting with its type and meaning.

The YAML files of `conf/` give the values; presets of one setting, and commands whose schema says all, are here. Hydra
refuses a key or type that is not here. Config stops at the
builders: training, the preparations and the benches take their own schema; models, tokenizers and sampling take none.
"""

from functools import cache
from typing import Any

from hydra.core.config_store import ConfigStore

from musictx.config.bench import (
    BenchAttentionConfig,
    BenchPositionsConfig,
    BenchPrepareConfig,
    BenchSamplingConfig,
    BenchTokensConfig,
    BenchTrainingConfig,
    CheckConfig,
)
from musictx.config.look import AttendConfig, InspectConfig, ListenConfig, RenderConfig, RunsConfig, VerifyConfig
from musictx.config.model import MODELS
from musictx.config.prepare import (
    PrepareChoralesConfig,
    PrepareFolderConfig,
    PrepareJsbConfig,
    PrepareMaestroConfig,
    PreparePop909Config,
)
from musictx.config.train import TrainConfig
from musictx.config.use import AccompanyConfig, CompareConfig, DemoConfig, EvaluateConfig, GenerateConfig, JamConfig
from musictx.config.web import ServeConfig

SCHEMAS = {
    "train": TrainConfig,
    "runs": RunsConfig,
    "generate": GenerateConfig,
    "accompany": AccompanyConfig,
    "jam": JamConfig,
    "evaluate": EvaluateConfig,
    "compare": CompareConfig,
    "demo": DemoConfig,
    "inspect": InspectConfig,
    "verify": VerifyConfig,
    "attend": AttendConfig,
    "render": RenderConfig,
    "listen": ListenConfig,
    "serve": ServeConfig,
    "check": CheckConfig,
    "bench_tokens": BenchTokensConfig,
    "bench_prepare": BenchPrepareConfig,
    "bench_attention": BenchAttentionConfig,
    "bench_positions": BenchPositionsConfig,
    "bench_sampling": BenchSamplingConfig,
    "bench_training": BenchTrainingConfig,
    "prepare_chorales": PrepareChoralesConfig,
    "prepare_folder": PrepareFolderConfig,
    "prepare_jsb": PrepareJsbConfig,
    "prepare_maestro": PrepareMaestroConfig,
    "prepare_pop909": PreparePop909Config,
}

# commands without a YAML of their own: the groups of each, and the preset that it begins with
PLAIN_COMMANDS: dict[str, dict[str, str]] = {
    "runs": {},
    "jam": {"sampler": "auto", "attention": "auto"},
    "evaluate": {"data": "performances", "attention": "auto"},
    "inspect": {"tokenizer": "performance"},
    "verify": {},
    "render": {},
    "serve": {"attention": "auto"},
    "check": {},
    "bench_tokens": {"tokenizer": "performance"},
    "bench_prepare": {},
    "bench_attention": {},
    "bench_sampling": {},
    "bench_training": {},
}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {  # group -> preset -> its values; longer ones are files of conf/
    "attention": {"auto": {}, **{impl: {"impl": impl} for impl in ("chunked", "reference", "skew", "triton")}},
    "tokenizer": {
        "performance": {"name": "performance"},
        "performance_melody": {"name": "performance-melody"},  # the track select.melody keeps its own events
        "chorale": {"name": "chorale"},
        "miditok": {"name": "miditok-remi"},  # or miditok-tsd, miditok-structured
    },
    "logger": {"csv": {"name": "csv"}, "wandb": {"name": "wandb"}},
    "filters": {"none": {}},
    "sampler": {
        "auto": {},  # the filters that the bundle names, else those of nucleus
        "nucleus": {"top_p": 0.98},  # Holtzman et al. 2020, whatever the bundle says
    },
}


@cache  # each takes milliseconds, and every command asks for all of them
def register_schemas() -> None:
    """Registers each schema with Hydra as `<app>_schema`, and each kind of model as `<kind>_schema` in the group
    `model`; the YAML names it first in its defaults. Registers the commands and presets that have no YAML."""
    store = ConfigStore.instance().store
    for name, schema in SCHEMAS.items():
        store(name=f"{name}_schema", node=schema)
    for kind, schema in MODELS.items():
        store(group="model", name=f"{kind}_schema", node=schema)
    for name, groups in PLAIN_COMMANDS.items():
        chosen = [{group: preset} for group, preset in groups.items()]
        store(name=name, node={"defaults": [f"{name}_schema", "quiet", *chosen, "_self_"]})
    for group, presets in PRESETS.items():
        for name, values in presets.items():
            store(group=group, name=name, node=values)
