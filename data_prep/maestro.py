"""MAESTRO as a token store on its official split: python data_prep/maestro.py [path=ZIP-or-DIR]"""

from pathlib import Path

from musictx.app import hydra_app
from musictx.config.prepare import PrepareMaestroConfig
from musictx.data.corpora.maestro import prepare_maestro
from musictx.data.prepare import print_summary


def prepare(config: PrepareMaestroConfig) -> None:
    print_summary(Path(config.out), prepare_maestro(config))


if __name__ == "__main__":
    hydra_app("prepare_maestro", prepare)()
