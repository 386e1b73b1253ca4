"""JSB chorales on the 16th grid (Boulanger-Lewandowski et al. 2012; Huang et al. 2017), official split."""

import json
from pathlib import Path

import numpy as np

from musictx.config.prepare import PrepareJsbConfig
from musictx.data.prepare import check_work, finish
from musictx.data.similar import signature
from musictx.data.source import Download, fetch
from musictx.data.store import Corpus, Manifest, Piece
from musictx.errors import ConfigError, StoreError, TokenError
from musictx.music.grid import N_VOICES, STEP_S, Grid, grid_to_score
from musictx.tokenizers.chorale import ChoraleTokenizer

CORPUS = Corpus(
    "JSB chorales, 16th grid",
    "public domain (the scores)",
    "Boulanger-Lewandowski et al., ICML 2012; Huang et al., Counterpoint by Convolution, ISMIR 2017",
)
TABLE = Download(
    "https://raw.githubusercontent.com/czhuang/JSB-Chorales-dataset/master/Jsb16thSeparated.json",
    "79294cc374f9252e95ef4b703161524c1c53dc1f712c236f00f1c1f5d54af5a7",
)
OFFICIAL = {"train": "train", "valid": "validation", "test": "test"}


def prepare_jsb(config: PrepareJsbConfig) -> Manifest:
    """The standard JSON file as a store; downloads it without a path. Raises StoreError for another file."""
    check_work(config)
    path = Path(config.path) if config.path else fetch(TABLE, Path(config.downloads))
    tokenizer, pieces, split_of = ChoraleTokenizer(), [], {}
    for part, chorales in read_table(path).items():
        for i, grid in enumerate(chorales):
            name = f"{part} {i:03d}"
            split_of[name] = OFFICIAL[part]
            try:
                ids = tokenizer.encode_grid(grid)
            except TokenError as error:
                raise StoreError(f"{path}: {name}: {error}") from None
            pieces.append(Piece(name, ids, len(grid) * STEP_S, signature(grid_to_score(grid))))
    return finish(pieces, [], tokenizer, CORPUS, lambda ps, _: [split_of[p.name] for p in ps], config)


def read_table(path: Path) -> dict[str, list[Grid]]:
    """The grids (steps, 4) of train, valid and test. Raises StoreError for another file, ConfigError for none."""
    shape = "Jsb16thSeparated.json: {train, valid, test}, each a list of chorales, each a list of [S, A, T, B]"
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        grids = {part: [np.array(chorale, dtype=np.float64) for chorale in raw[part]] for part in OFFICIAL}
        if not all(g.ndim == 2 and g.shape[1] == N_VOICES and (g % 1 == 0).all() for gs in grids.values() for g in gs):
            raise ValueError("a chorale is not a list of four whole numbers per step")
    except OSError as error:
        raise ConfigError("path", got=path, why=f"it cannot be read ({error.strerror})", allowed=shape) from None
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"{path} is not the JSB table ({error})", f"give {shape}") from None
    return {part: [g.clip(-1, 128).astype(np.int16) for g in gs] for part, gs in grids.items()}
