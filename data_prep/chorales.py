"""The Bach chorales that music21 ships, as a token store: python data_prep/chorales.py out=DIR"""

from pathlib import Path

from musictx.app import cores, hydra_app
from musictx.config import PrepareChoralesConfig
from musictx.data.chorales import prepare_chorales
from musictx.data.prepare import summary


def prepare(config: PrepareChoralesConfig) -> None:
    out = Path(config.out)
    manifest = prepare_chorales(
        out,
        validation_fraction=config.validation_fraction,
        test_fraction=config.test_fraction,
        seed=config.seed,
        workers=cores(config.workers),
        overwrite=config.overwrite,
    )
    print(summary(out, manifest))


if __name__ == "__main__":
    hydra_app("prepare_chorales", prepare)()
