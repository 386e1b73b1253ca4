"""POP909 (Wang et al. 2020): piano arrangements of 909 pop songs, as a store, split by song."""

import re
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

from musictx.config.prepare import PreparePop909Config
from musictx.data.prepare import assign_splits, check_fractions, check_work, prepare
from musictx.data.recipe import Recipe, encode_midi
from musictx.data.source import Download, Item, fetch, open_source
from musictx.data.store import Corpus, Manifest
from musictx.errors import StoreError
from musictx.tokenizers import build_tokenizer

CORPUS = Corpus(
    "POP909",
    "MIT",
    "Wang et al., POP909: A Pop-song Dataset for Music Arrangement Generation, ISMIR 2020",
)
ARCHIVE = Download("https://github.com/music-x-lab/POP909-Dataset/archive/refs/heads/master.zip", None)
SONG = re.compile(r"(?:^|/)(\d{3})/(?:(versions)/)?[^/]+\.mid$", re.IGNORECASE)


def prepare_pop909(config: PreparePop909Config) -> Manifest:
    """Writes the archive, a zip or a folder, as a store; downloads it without a path. All versions of a song, and songs
    that are near-duplicates of each other, share a split. Raises StoreError, ConfigError."""
    fractions = config.validation_fraction, config.test_fraction
    check_work(config)
    check_fractions(*fractions, config.random_seed)
    recipe = Recipe(build_tokenizer(config.tokenizer.name), config.select, config.filters)
    path = Path(config.path) if config.path else fetch(ARCHIVE, Path(config.downloads))
    with open_source(path, (".mid",)) as items:
        songs = [item for item in items if is_wanted(item, config.versions)]
        if not songs:
            hint = "give POP909 as it was downloaded"
            raise StoreError(f"no file of {path} lies in a folder like POP909/001", hint)
        return prepare(
            songs,
            partial(encode_midi, recipe=recipe),
            str(recipe),
            recipe.tokenizer,
            CORPUS,
            lambda pieces, keys: assign_splits(
                join([song_of(p.name) for p in pieces], keys), *fractions, config.random_seed
            ),
            config,
            {"seed": config.random_seed},
        )


def is_wanted(item: Item, versions: bool) -> bool:
    """A song's own file, or with `versions` one of its other versions."""
    match = SONG.search(item.name)
    return match is not None and (versions or match[2] is None)


def song_of(name: str) -> str:
    match = SONG.search(name)
    assert match is not None
    return match[1]


def join(songs: Sequence[str], keys: Sequence[str]) -> list[str]:
    """One key for all pieces that a song or a content key links, however long the chain."""
    label: dict[str, str] = {}

    def find(x: str) -> str:
        while label.setdefault(x, x) != x:
            x = label[x]
        return x

    for song, key in zip(songs, keys, strict=True):
        a, b = sorted((find(f"song {song}"), find(key)))
        label[b] = a
    return [sha256(find(key).encode()).hexdigest() for key in keys]
