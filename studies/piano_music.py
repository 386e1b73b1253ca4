"""The music of the piano model: MAESTRO, the performances of ASAP that it lacks, and the songs of POP909."""

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared import pieces_of

from musictx.commands.prepare import prepare
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.terminal import say
from musictx.tokenizers import Tokenizer

SCORED_S = 3600.0  # of MAESTRO's validation: so much is scored during training
ENDING_S = 15.0  # of a song, left out
ASAP = Corpus(  # its performances that are not in MAESTRO, and play no work of its validation and test
    "ASAP",
    "CC BY-NC-SA 4.0",
    "Foscarin et al., ASAP: a dataset of aligned scores and performances for piano transcription, ISMIR 2020",
)
WAYS: dict[str, tuple[str, dict[str, Any]]] = {  # of `musictx prepare`
    "maestro": ("maestro", {}),
    "asap": ("folder", {"corpus": ASAP.name, "licence": ASAP.licence}),
    "pop": ("pop909", {}),
}


def stores(archives: dict[str, Path], out: Path) -> dict[str, Store]:
    """A store for each of the archives `maestro`, `asap` and `pop`, unless it is there."""
    for name, path in archives.items():
        if (out / name / "manifest.json").exists():
            say(f"{out / name}: found, not made of {path} again")
        else:
            way, more = WAYS[name]
            prepare(way, "tokenizer=performance", path=str(path), out=str(out / name), **more)
    return {name: Store(out / name) for name in archives}


def all_three(maestro: Store, asap: Store, pop: Store, path: Path) -> Store:
    """A store with the training pieces of MAESTRO and POP909 and all performances of ASAP, and an hour of MAESTRO's
    validation. All of a song is one piano.

    Songs lose their endings. Songs are short: a quarter of their windows would have an ending, three times as many as
    MAESTRO's. A model that heard those ended MAESTRO's music early too."""
    if not (path / "manifest.json").exists():
        songs, own, pops = pieces_of(pop, "train"), maestro.manifest.corpus, pop.manifest.corpus
        corpus = Corpus(
            f"{own.name} and {ASAP.name} and {pops.name}",
            f"{own.licence} (POP909: {pops.licence})",
            "; ".join((own.citation, ASAP.citation, pops.citation)),
        )
        train = pieces_of(maestro, "train")
        train += [piece for name in asap.manifest.splits for piece in pieces_of(asap, name)]
        train += [without_ending(song, pop.tokenizer) for song in songs if song.seconds > ENDING_S]
        splits = {"train": train, "validation": spread(pieces_of(maestro, "validation"))}
        dropped = [entry for store in (maestro, asap, pop) for entry in store.manifest.dropped]
        dropped += [(song.name, f"not longer than {ENDING_S:g} s") for song in songs if song.seconds <= ENDING_S]
        write_store(path, maestro.tokenizer, corpus, splits, dropped)
    else:
        say(f"{path}: found, not made again")
    return Store(path)


def spread(pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces of `SCORED_S` in all: every 7th first, then those after them."""
    found, so_far_s = [], 0.0
    for piece in [piece for k in range(7) for piece in pieces[k::7]]:
        if so_far_s < SCORED_S:
            found.append(piece)
            so_far_s += piece.seconds
    return found


def without_ending(piece: Piece, tokenizer: Tokenizer) -> Piece:
    """An unfinished piece: all but its last `ENDING_S` seconds."""
    until_s = piece.seconds - ENDING_S
    n = bisect_right(range(len(piece.ids) + 1), until_s, key=lambda n: tokenizer.seconds(piece.ids[:n])) - 1
    return Piece(piece.name, piece.ids[:n], tokenizer.seconds(piece.ids[:n]), unfinished=True)
