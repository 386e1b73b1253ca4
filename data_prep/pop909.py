"""POP909 as a token store, split by song: python data_prep/pop909.py [path=ZIP-or-DIR]"""

from pathlib import Path

from musictx.app import hydra_app
from musictx.config.prepare import PreparePop909Config
from musictx.data.corpora.pop909 import prepare_pop909
from musictx.data.prepare import print_summary


def prepare(config: PreparePop909Config) -> None:
    print_summary(Path(config.out), prepare_pop909(config))


if __name__ == "__main__":
    hydra_app("prepare_pop909", prepare)()
