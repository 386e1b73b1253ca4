"""A folder or zip of MIDI files or scores, nested, any names, as a store."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from musictx.config.prepare import OwnFilesConfig, PrepareFolderConfig, PrepareScoresConfig
from musictx.data.prepare import Assign, by_piece, check_work, prepare, prepare_midi
from musictx.data.recipe import encode_score
from musictx.data.source import Item, no_file_error, open_source
from musictx.data.store import Corpus, Manifest, own_folders
from musictx.errors import ConfigError
from musictx.files import printable
from musictx.music.read import SUFFIXES
from musictx.tokenizers.score import ScoreTokenizer

OTHER = f"another kind of file: not named {', '.join(SUFFIXES)}"


def prepare_folder(config: PrepareFolderConfig, assign: Assign | None = None) -> Manifest:
    """Every MIDI file of `config.path` as a store, split by folders, by piece, or by `assign`. Raises StoreError,
    ConfigError."""
    return _prepare(config, assign, prepare_midi)


def prepare_scores(config: PrepareScoresConfig, assign: Assign | None = None) -> Manifest:
    """`prepare_folder` for notation, and for MIDI files whose notes lie on the grid of scores."""
    tokenizer = ScoreTokenizer()

    def make(items: Sequence[Item], *rest: Any, **more: Any) -> Manifest:
        return prepare(items, encode_score, f"scores {tokenizer.vocab.fingerprint}", tokenizer, *rest, **more)

    return _prepare(config, assign, make)


def _prepare(config: Any, assign: Assign | None, make: Callable[..., Manifest]) -> Manifest:
    path = Path(config.path)
    check_work(config)
    with open_source(path, ("",), own_folders(Path(config.out))) as files:
        is_midi = [item.name.lower().endswith((*SUFFIXES, os.sep)) for item in files]
        if not any(is_midi):
            raise no_file_error(path, ", ".join(SUFFIXES), [item.name for item in files])
        items = [item for item, midi in zip(files, is_midi, strict=True) if midi]
        return make(
            items,
            Corpus(printable(config.corpus or path.resolve().stem), printable(config.licence)),
            assign or own_split(config, [item.name for item in items]),
            config,
            unread=[(item.name, OTHER) for item, midi in zip(files, is_midi, strict=True) if not midi],
        )


def own_split(config: OwnFilesConfig, names: Sequence[str]) -> Assign:
    """Splits by the folders of the settings, or at random without these. Raises ConfigError for a folder without a
    file, a file in two, and no file for training."""
    held_out = {name: folder for name in ("validation", "test") if (folder := getattr(config, name)) is not None}
    if not held_out:
        return by_piece(config)
    sides = [side_of(name, held_out) for name in names]
    for name, folder in held_out.items():
        if not any(name in side for side in sides):
            why = "no MIDI file of path= is below it"
            raise ConfigError(name, got=folder, why=why, allowed="a folder inside path=, as it is written there")
    if any(len(side) > 1 for side in sides):
        raise ConfigError("test", got=config.test, why=f"files below it are below validation={config.validation} too")
    if all(sides):
        raise ConfigError("path", got=config.path, why="all its files are held out", hint="leave some for training")
    return lambda pieces, _: [(*side_of(piece.name, held_out), "train")[0] for piece in pieces]


def side_of(name: str, held_out: dict[str, str]) -> list[str]:
    """The splits whose folder has this file."""
    place = Path(name).parents
    return [split for split, folder in held_out.items() if Path(folder) in place]
