"""A folder or zip of MIDI files as a token store: python data_prep/folder.py path=DIR-or-ZIP out=DIR"""

from pathlib import Path

from musictx.app import hydra_app
from musictx.config.prepare import PrepareFolderConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.prepare import print_summary


def prepare(config: PrepareFolderConfig) -> None:
    print_summary(Path(config.out), prepare_folder(config))


if __name__ == "__main__":
    hydra_app("prepare_folder", prepare)()
