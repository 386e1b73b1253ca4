"""MAESTRO (Hawthorne et al. 2019), versions 1 to 3, as a store, on its official split."""

import csv
import io
from pathlib import Path

from musictx.config.prepare import PrepareMaestroConfig
from musictx.data.prepare import check_work, prepare_midi
from musictx.data.source import Download, Item, fetch, open_source
from musictx.data.store import SPLITS, Corpus, Manifest
from musictx.errors import ConfigError, StoreError

LICENCE = "CC BY-NC-SA 4.0"
CITATION = (
    "Hawthorne et al., Enabling Factorized Piano Music Modeling and Generation with the MAESTRO Dataset, ICLR 2019"
)
HOME = "https://storage.googleapis.com/magentadata/datasets/maestro"
CHECKSUMS = {
    "v1": ("v1.0.0", "f620f9e1eceaab8beea10617599add2e9c83234199b550382a2f603098ae7135"),
    "v2": ("v2.0.0", "ec2cc9d94886c6b376db1eaa2b8ad1ce62ff9f0a28b3744782b13163295dadf3"),
    "v3": ("v3.0.0", "70470ee253295c8d2c71e6d9d4a815189e35c89624b76d22fce5a019d5dde12c"),
}
ARCHIVES = {
    version: Download(f"{HOME}/{full}/maestro-{full}-midi.zip", sha256) for version, (full, sha256) in CHECKSUMS.items()
}


def prepare_maestro(config: PrepareMaestroConfig) -> Manifest:
    """The archive, zip or folder, as a store; downloads it without a path. Raises StoreError where it is not MAESTRO or
    lacks files of its table."""
    check_work(config)
    if config.path is None and config.version not in ARCHIVES:
        raise ConfigError("version", got=config.version, allowed=f"one of {', '.join(ARCHIVES)}")
    path = Path(config.path) if config.path else fetch(ARCHIVES[config.version], Path(config.downloads))
    with open_source(path, (".csv", ".mid", ".midi")) as items:
        files = {item.name: item for item in items}
        tables = sorted(n for n in files if n.rpartition("/")[2].startswith("maestro-v") and n.endswith(".csv"))
        if not tables:
            raise StoreError(f"no maestro-v*.csv in {path}", "give the archive or folder as it was downloaded")
        table = files[tables[-1]]
        split_of = read_table(table)
        folder = table.name.rpartition("/")[0]
        inside = {f"{folder}/{name}".lstrip("/"): name for name in split_of}
        missing = sorted(name for member, name in inside.items() if member not in files)
        if missing or not inside:
            first = f", {', '.join(missing[:3])}" + ", …" * (len(missing) > 3) if missing else ""
            what = f"{table.name} names {len(inside)} files, {len(missing)} of them missing{first}"
            raise StoreError(what, "get the archive again, or take what you have with musictx prepare folder")
        return prepare_midi(
            [files[member] for member in sorted(inside)],
            Corpus(Path(table.name).stem.replace("maestro-", "MAESTRO "), LICENCE, CITATION),
            lambda pieces, _: [split_of[inside[piece.name]] for piece in pieces],
            config,
        )


def read_table(table: Item) -> dict[str, str]:
    """The split of each MIDI file. Raises StoreError for another table than MAESTRO's."""
    try:
        rows = list(csv.DictReader(io.StringIO(table.load(2**26).decode("utf-8"))))
        split_of = {row["midi_filename"]: row["split"] for row in rows}
        if None in split_of:
            raise ValueError("a row is cut short")
    except (ValueError, KeyError, csv.Error) as error:
        raise StoreError(f"{table.name} is not MAESTRO's table: columns split and midi_filename ({error})") from None
    if wrong := sorted(set(split_of.values()) - set(SPLITS), key=str):
        raise StoreError(f"{table.name} has the split {wrong[0]!r}: MAESTRO's are {', '.join(SPLITS)}")
    return split_of
