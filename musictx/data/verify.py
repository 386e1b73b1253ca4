"""Is a store what its manifest says? Reads everything again."""

from hashlib import sha256

import numpy as np

from musictx.data.store import Store
from musictx.errors import StoreError

SAMPLE = 64  # pieces of each split that are decoded


def verify_split(store: Store, name: str) -> str:
    """Checks offsets, ids and checksum of one split and decodes a sample of its pieces; what was found, in a line.

    Raises StoreError at the first thing that is wrong. Opening the store has checked its fingerprint.
    """
    split, info, vocab = store.split(name), store.manifest.splits[name], store.tokenizer.vocab
    where = f"{store.path}: the {name} split"
    if info.sha256 and sha256(split.ids.tobytes()).hexdigest() != info.sha256:
        raise StoreError(f"{where} has changed since it was written; prepare the data again")
    wrong = np.flatnonzero(split.ids >= vocab.n_events)
    if len(wrong):
        piece = int(np.searchsorted(split.offsets, wrong[0], side="right")) - 1
        raise StoreError(
            f"{where} holds id {split.ids[wrong[0]]} in {split.names[piece]}, where music has ids below "
            f"{vocab.n_events}; prepare the data again"
        )
    chosen = np.unique(np.linspace(0, len(split) - 1, min(SAMPLE, len(split))).astype(int))
    notes = 0
    for i in chosen.tolist():
        score = store.tokenizer.decode(split[i])
        if not len(score):
            raise StoreError(f"{where}: {split.names[i]} decodes to no notes; prepare the data again")
        notes += len(score)
    return f"{name}: {len(split):,} pieces, {len(split.ids):,} ids, {len(chosen)} decoded to {notes:,} notes"
