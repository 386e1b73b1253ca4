"""The JSB chorales of the literature as a token store: python data_prep/jsb.py [path=Jsb16thSeparated.json]"""

from pathlib import Path

from musictx.app import hydra_app
from musictx.config.prepare import PrepareJsbConfig
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.prepare import print_summary


def prepare(config: PrepareJsbConfig) -> None:
    print_summary(Path(config.out), prepare_jsb(config))


if __name__ == "__main__":
    hydra_app("prepare_jsb", prepare)()
