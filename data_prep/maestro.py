"""MAESTRO as a token store on its official split: python data_prep/maestro.py path=ZIP-or-DIR"""

from pathlib import Path

from musictx.app import cores, hydra_app
from musictx.config import PrepareMaestroConfig
from musictx.data.maestro import prepare_maestro
from musictx.data.prepare import summary


def prepare(config: PrepareMaestroConfig) -> None:
    out = Path(config.out)
    manifest = prepare_maestro(
        Path(config.path),
        out,
        config.tokenizer.name,
        workers=cores(config.workers),
        overwrite=config.overwrite,
    )
    print(summary(out, manifest))


if __name__ == "__main__":
    hydra_app("prepare_maestro", prepare)()
