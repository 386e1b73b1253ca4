"""A folder of MIDI files as a token store: python data_prep/folder.py path=DIR out=DIR"""

from pathlib import Path

from musictx.app import cores, hydra_app
from musictx.config import PrepareFolderConfig
from musictx.data.folder import prepare_folder
from musictx.data.prepare import summary


def prepare(config: PrepareFolderConfig) -> None:
    out = Path(config.out)
    manifest = prepare_folder(
        Path(config.path),
        out,
        config.tokenizer.name,
        name=config.corpus or "",
        licence=config.licence,
        validation_fraction=config.validation_fraction,
        test_fraction=config.test_fraction,
        seed=config.seed,
        workers=cores(config.workers),
        overwrite=config.overwrite,
    )
    print(summary(out, manifest))


if __name__ == "__main__":
    hydra_app("prepare_folder", prepare)()
