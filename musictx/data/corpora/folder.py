"""A folder or zip of MIDI files, nested, any names, as a store."""

import os
from pathlib import Path

from musictx.config.prepare import PrepareFolderConfig
from musictx.data.prepare import Assign, by_piece, check_work, prepare_midi
from musictx.data.source import MIDI_SUFFIXES, open_source
from musictx.data.store import Corpus, Manifest, own_folders
from musictx.errors import StoreError
from musictx.files import printable

OTHER = f"another kind of file: not named {', '.join(MIDI_SUFFIXES)}"


def prepare_folder(config: PrepareFolderConfig, assign: Assign | None = None) -> Manifest:
    """Reads every MIDI file in `config.path` into a store, split by piece, or as `assign` says. Raises StoreError,
    ConfigError."""
    path = Path(config.path)
    check_work(config)
    with open_source(path, ("",), own_folders(Path(config.out))) as found:
        named = [item.name.lower().endswith((*MIDI_SUFFIXES, os.sep)) for item in found]
        if not any(named):
            raise StoreError(f"no {', '.join(MIDI_SUFFIXES)} file in {path} or below it")
        return prepare_midi(
            [item for item, is_midi in zip(found, named, strict=True) if is_midi],
            Corpus(printable(config.corpus or path.resolve().stem), printable(config.licence)),
            assign or by_piece(config),
            config,
            passed_over=[(item.name, OTHER) for item, is_midi in zip(found, named, strict=True) if not is_midi],
        )
