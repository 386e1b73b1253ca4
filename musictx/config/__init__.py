"""The typed schema under Hydra: what exists, of which type, and what it means.

The YAML files of `conf/` give the values; a key or type that is not here is refused. Config stops at the
builders: training, the preparations and the benches take their own; models, tokenizers and sampling see none.
"""

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
from musictx.config.look import AttendConfig, ListenConfig, RenderConfig
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
    "generate": GenerateConfig,
    "accompany": AccompanyConfig,
    "jam": JamConfig,
    "evaluate": EvaluateConfig,
    "compare": CompareConfig,
    "demo": DemoConfig,
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


def register_schemas() -> None:
    """Makes each schema known to Hydra as `<app>_schema`, and of each kind of model as `<kind>_schema` in the group
    `model`; the YAML names it first in its defaults."""
    for name, schema in SCHEMAS.items():
        ConfigStore.instance().store(name=f"{name}_schema", node=schema)
    for kind, schema in MODELS.items():
        ConfigStore.instance().store(group="model", name=f"{kind}_schema", node=schema)
