"""The music of the score bundle: scores that are free for any use, as one store, split by work.

    python studies/score_music.py --songs … --keyboard … --chopin … --tunes … --hymns … --pop … --archive …

Nothing of MAESTRO is in the store: its table only says which works it holds out, and these are left out here. Editions
of one work, and near-duplicates, are on one side. A twentieth of the works is for validation, another for the test. The
name of a work's first piece says which, so that nearly all stay where they are when others come or go.
Music for two hands is in the training split twice, the second time with the right hand a bar ahead of the left.
"""

import csv
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path

from shared import options, pieces_of

from musictx.config.mistakes import in_one_line
from musictx.config.prepare import PrepareConfig
from musictx.data.corpora.pop909_scores import read_song
from musictx.data.prepare import prepare, print_summary
from musictx.data.recipe import Encoded, encode_score, encoded
from musictx.data.similar import Links
from musictx.data.source import Item, open_source
from musictx.data.store import Corpus, Piece, Store, write_store
from musictx.errors import MidiError
from musictx.terminal import say
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import LEFT, RIGHT

LICENCE = "CC BY 4.0"
CITATION = (
    "OpenScore Lieder (CC0 1.0); Polish keyboard scores and Chopin's first editions, Fryderyk Chopin Institute (CC BY "
    "4.0); OpenEWLD, (c) 2018 00sapo (MIT), Open Hymnal (public domain); POP909, Wang et al., ISMIR 2020 (MIT)"
)
SHARES = {0: "validation", 1: "test"}  # of twenty equal shares of the works; the others: train
OPUS = re.compile(r"Op\. ?(\d+)(?:,? Nos?\. ?(\d+))?")
NAMED = {"Nocturne in Db": (27, 2), "Polonaise-Fantasie": (61, 0)}  # titles of MAESTRO without an opus
SONGS = (
    "gretchen am spinnrade",
    "aufenthalt",
    "standchen",
    "erlkonig",
    "muller und der bach",
)  # that Liszt transcribed
SONG = b"song of POP909"
SUFFIXES = ".mxl", ".krn", ".abc"
AHEAD = " (right hand ahead)"


def held_out_opuses(maestro: Path) -> set[tuple[int, int]]:
    """Opus and number of Chopin's works in MAESTRO's validation and test; number 0: the whole opus."""
    with zipfile.ZipFile(maestro) as archive:
        table = next(name for name in archive.namelist() if name.endswith(".csv"))
        rows = list(csv.DictReader(io.StringIO(archive.read(table).decode())))
    titles = [
        row["canonical_title"] for row in rows if row["split"] != "train" and "Chopin" in row["canonical_composer"]
    ]
    found = {NAMED[title] for title in titles if title in NAMED}
    return found | {(int(opus), int(number or 0)) for title in titles for opus, number in OPUS.findall(title)}


def is_held_out(name: str, opuses: set[tuple[int, int]]) -> bool:
    """Whether MAESTRO holds out the work of a file."""
    if name.startswith("chopin"):
        opus, number = opus_of(name)
        return (opus, number) in opuses or (opus, 0) in opuses
    return "Schubert" in name and any(song in plain(name) for song in SONGS)


def opus_of(name: str) -> tuple[int, int]:
    """Opus and number of a first edition, as 010_1-6-1b-KI-005; 0 where it has none."""
    stem = name.rpartition("/")[2].removesuffix(".krn")
    opus, number = re.match(r"\d+", stem), re.search(r"-(\d{3})(?!\d)", stem)
    volume = re.match(r"\d+_(\d)-1-", stem)  # 034_2-1-BH-002: its number is that of the volume
    return int(opus[0]) if opus else 0, int(number[1]) if number else int(volume[1]) if volume else 0


def plain(name: str) -> str:
    """A name as letters of ASCII, in lower case."""
    letters = name.lower().translate(str.maketrans("äöüéèáłńśźżćęąó", "aoueealnszzceao"))
    return " ".join(re.findall("[a-z0-9]+", letters.replace("ß", "ss")))


def works_of(name: str, titles: dict[str, str]) -> set[str]:
    """What the editions of one work have in common: one of these. A hymn has a title and the names of its tune."""
    if name.startswith("chopin"):
        return {f"chopin {opus_of(name)[0] or name}"}
    if name.startswith("polish"):
        return {titles.get(name, name)}
    parts = name.removesuffix(AHEAD).split("/")
    if name.startswith("lieder"):
        return {plain(" ".join([parts[0], parts[-4], parts[-2]]))}
    if name.startswith(("openewld", "open-hymnal")):
        title = parts[-1].rpartition(".")[0].replace("_", " ")
        return {plain(each) for each in (title.split("-") if name.startswith("open-h") else [title])} - {"untitled"}
    return {name}


def titles_of(keyboard: Path) -> dict[str, str]:
    """Composer and work of each Polish score, by its name here."""
    with zipfile.ZipFile(keyboard) as archive:
        table = next(name for name in archive.namelist() if name.endswith("SELECTION.tsv"))
        rows = csv.DictReader(io.StringIO(archive.read(table).decode()), delimiter="\t")
        folder = table.rpartition("/")[0]
        return {
            f"{folder}/{row['path']}": plain(f"{row['composer']} {row['work'] or row['title'] or row['path']}")
            for row in rows
        }


def assign(pieces: Sequence[Piece], keys: Sequence[str], titles: dict[str, str]) -> list[str]:
    """The split of each piece: pieces of one work, or with one key, share it."""
    links, first = Links(), dict[str, int]()
    for n, piece in enumerate(pieces):
        for key in (f"key {keys[n]}", *(f"work {work}" for work in works_of(piece.name, titles))):
            links.join(n, first.setdefault(key, n))
    leaders = [pieces[links.first(n)].name for n in range(len(pieces))]
    return [SHARES.get(int.from_bytes(sha256(name.encode()).digest()) % 20, "train") for name in leaders]


def songs_of_pop909(songs: Path, annotations: Path | None) -> Iterator[Item]:
    """Each song of POP909, its MIDI file, beats and key in one; the `annotations` lie beside the songs, or apart."""
    with zipfile.ZipFile(songs) as midi, zipfile.ZipFile(annotations or songs) as notes:
        for name in midi.namelist():
            if found := re.fullmatch(r"POP909/(\d{3})/\1\.mid", name):
                texts = [notes.read(f"POP909/{found[1]}/{table}.txt") for table in ("beat_midi", "key_audio")]
                data = SONG + b"".join(len(x).to_bytes(4, "big") + x for x in (midi.read(name), *texts))
                yield Item(name, sha256(data).hexdigest(), partial(_given, data))


def _given(data: bytes, limit: int) -> bytes:
    return data


def encode(data: bytes, source: str) -> Encoded:
    """A score, or a song of POP909, as (ids, seconds, signature), or the reason to leave it out."""
    if not data.startswith(SONG):
        return encode_score(data, source)
    file, parts = io.BytesIO(data[len(SONG) :]), []
    while size := file.read(4):
        parts.append(file.read(int.from_bytes(size, "big")))
    try:
        return encoded(read_song(parts[0], parts[1].decode(), parts[2].decode(), source)[0])
    except MidiError as error:
        return error.reason


def with_right_hand_ahead(store: Store, out: Path) -> Store:
    """A store with music for two hands in its training split once more, with the right hand a bar ahead."""
    tokenizer, manifest = ScoreTokenizer(), store.manifest
    splits = {name: pieces_of(store, name) for name in manifest.splits}
    for piece in list(splits["train"]):
        slots = {each.slot for each in tokenizer.placed(piece.ids)[0]}
        if slots == {RIGHT, LEFT}:
            ids = tokenizer.encode_notation(tokenizer.decode_notation(piece.ids), ahead=RIGHT)
            splits["train"].append(replace(piece, name=piece.name + AHEAD, ids=ids))
    write_store(out, tokenizer, manifest.corpus, splits, manifest.dropped, manifest.extra, overwrite=True)
    return Store(out)


def main() -> None:
    names = ("archive", "songs", "keyboard", "chopin", "tunes", "hymns", "pop", "annotations", "out")
    args = options(__doc__, *names, out=Path("outputs/score_music")).parse_args()
    opuses, titles = held_out_opuses(args.archive), titles_of(args.keyboard)
    corpus = Corpus("scores that are free for any use", LICENCE, CITATION)
    with ExitStack() as files:
        items = [*songs_of_pop909(args.pop, args.annotations)]
        for path in (args.songs, args.keyboard, args.chopin, args.tunes, args.hymns):
            items += files.enter_context(open_source(path, SUFFIXES))
        kept = [item for item in items if not is_held_out(item.name, opuses)]
        say(f"{len(items) - len(kept)} scores are of works that MAESTRO holds out, and are left out")
        config = PrepareConfig(out=str(args.out / "works"), overwrite=True)
        tokenizer = ScoreTokenizer()
        recipe = f"{Path(__file__).name} {tokenizer.vocab.fingerprint}"
        sides = partial(assign, titles=titles)
        manifest = prepare(sorted(kept, key=lambda item: item.name), encode, recipe, tokenizer, corpus, sides, config)
    print_summary(args.out / "works", manifest)
    store = with_right_hand_ahead(Store(args.out / "works"), args.out / "store")
    print_summary(store.path, store.manifest)


if __name__ == "__main__":
    with in_one_line():
        main()
