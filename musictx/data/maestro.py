"""MAESTRO (Hawthorne et al. 2019) as a store, on its official split."""

import csv
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from musictx.data.prepare import encode_files
from musictx.data.store import SPLITS, Corpus, Manifest, check_target, write_store
from musictx.errors import StoreError
from musictx.tokenizers import build_tokenizer

LICENCE = "CC BY-NC-SA 4.0"
CITATION = (
    "Hawthorne et al., Enabling Factorized Piano Music Modeling and Generation with the MAESTRO Dataset, ICLR 2019"
)


def prepare_maestro(path: Path, out: Path, tokenizer: str, *, workers: int, overwrite: bool) -> Manifest:
    """The archive, a zip or a folder, as a store. Raises StoreError when it is not MAESTRO or is incomplete."""
    check_target(out, overwrite)
    if path.is_dir():
        return _prepare(path, out, tokenizer, workers, overwrite)
    if not zipfile.is_zipfile(path):
        raise StoreError(f"path={path} is neither a folder nor a zip file: give MAESTRO's archive or its folder")
    with zipfile.ZipFile(path) as archive, TemporaryDirectory(prefix="musictx-") as folder:
        wanted = [n for n in archive.namelist() if n.endswith((".csv", ".mid", ".midi"))]
        archive.extractall(folder, wanted)
        return _prepare(Path(folder), out, tokenizer, workers, overwrite)


def _prepare(path: Path, out: Path, tokenizer: str, workers: int, overwrite: bool) -> Manifest:
    tables = sorted([*path.glob("maestro-v*.csv"), *path.glob("*/maestro-v*.csv")])
    if not tables:
        raise StoreError(f"no maestro-v*.csv in {path}: give the archive or folder as it was downloaded")
    table = tables[-1]
    with open(table, newline="", encoding="utf-8") as file:
        split_of = {row["midi_filename"]: row["split"] for row in csv.DictReader(file)}
    missing = [name for name in split_of if not (table.parent / name).is_file()]
    if missing:
        raise StoreError(f"{table.name} names {len(missing)} files that are not there, the first is {missing[0]}")
    files = [(name, table.parent / name) for name in sorted(split_of)]
    pieces, dropped = encode_files(files, tokenizer, workers)
    splits = {s: [p for p in pieces if split_of[p.name] == s] for s in SPLITS}
    corpus = Corpus(table.stem.replace("maestro-", "MAESTRO "), LICENCE, CITATION)
    return write_store(out, build_tokenizer(tokenizer), corpus, splits, dropped, overwrite=overwrite)
