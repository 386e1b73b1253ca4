"""A folder or zip of MIDI files, nested, any names, as a store."""

import os
from functools import partial
from pathlib import Path

from musictx.config.prepare import PrepareFolderConfig
from musictx.data.prepare import assign_splits, check_fractions, check_work, prepare
from musictx.data.recipe import Recipe, encode_midi
from musictx.data.source import MIDI_SUFFIXES, open_source
from musictx.data.store import Corpus, Manifest, own_folders
from musictx.errors import StoreError
from musictx.files import printable
from musictx.tokenizers import build_tokenizer

OTHER = f"another kind of file: not named {', '.join(MIDI_SUFFIXES)}"


def prepare_folder(config: PrepareFolderConfig) -> Manifest:
    """Reads every MIDI file in `config.path` into a store, split by piece. Raises StoreError, ConfigError."""
    path, fractions = Path(config.path), (config.validation_fraction, config.test_fraction)
    check_work(config)
    check_fractions(*fractions, config.random_seed)
    recipe = Recipe(build_tokenizer(config.tokenizer.name), config.select, config.filters)
    with open_source(path, ("",), own_folders(Path(config.out))) as found:
        named = [item.name.lower().endswith((*MIDI_SUFFIXES, os.sep)) for item in found]
        if not any(named):
            raise StoreError(f"no {', '.join(MIDI_SUFFIXES)} file in {path} or below it")
        return prepare(
            [item for item, is_midi in zip(found, named, strict=True) if is_midi],
            partial(encode_midi, recipe=recipe),
            str(recipe),
            recipe.tokenizer,
            Corpus(printable(config.corpus or path.resolve().stem), printable(config.licence)),
            lambda _, keys: assign_splits(keys, *fractions, config.random_seed),
            config,
            {"seed": config.random_seed},
            [(item.name, OTHER) for item, is_midi in zip(found, named, strict=True) if not is_midi],
        )
