"""POP909 (Wang et al. 2020): piano arrangements of 909 pop songs, as a store, split by song."""

import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from musictx.config.prepare import PreparePop909Config
from musictx.data.prepare import by_piece, check_work, prepare_midi
from musictx.data.source import Download, fetch, open_source
from musictx.data.store import Corpus, Manifest
from musictx.errors import StoreError

CORPUS = Corpus(
    "POP909",
    "MIT",
    "Wang et al., POP909: A Pop-song Dataset for Music Arrangement Generation, ISMIR 2020",
)
ARCHIVE = Download("https://github.com/music-x-lab/POP909-Dataset/archive/refs/heads/master.zip", None)
SONG = re.compile(r"(?:^|/)\d{3}/[^/]+\.mid$", re.IGNORECASE)  # other versions are in a folder below


def prepare_pop909(config: PreparePop909Config) -> Manifest:
    """The archive, zip or folder, as a store; downloads it without a path. Raises StoreError, ConfigError."""
    check_work(config)
    path = Path(config.path) if config.path else fetch(ARCHIVE, Path(config.downloads))
    with open_source(path, (".mid",)) as items:
        songs = [item for item in items if SONG.search(item.name)]
        if not songs:
            hint = "give POP909 as it was downloaded"
            raise StoreError(f"no file of {path} lies in a folder like POP909/001", hint)
        return prepare_midi(songs, CORPUS, lambda pieces, keys: by_piece(config)(pieces, key_hashes(keys)), config)


def key_hashes(keys: Sequence[str]) -> list[str]:
    """Hashes of the keys, whose order is that of the splits of all earlier stores."""
    return [sha256(key.encode()).hexdigest() for key in keys]
