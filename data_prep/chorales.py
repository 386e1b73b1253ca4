"""The Bach chorales that music21 ships, as a token store: python data_prep/chorales.py out=DIR"""

from pathlib import Path

from musictx.app import hydra_app
from musictx.config.prepare import PrepareChoralesConfig
from musictx.data.corpora.chorales import prepare_chorales
from musictx.data.prepare import print_summary


def prepare(config: PrepareChoralesConfig) -> None:
    print_summary(Path(config.out), prepare_chorales(config))


if __name__ == "__main__":
    hydra_app("prepare_chorales", prepare)()
