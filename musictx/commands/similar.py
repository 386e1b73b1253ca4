"""musictx similar: find the pieces and passages of a store that sound like a MIDI file."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import MISSING

from musictx.analysis.embedding import Embedder, Passage
from musictx.analysis.similarity import MOST_PASSAGES, PASSAGE_S, Match, open_index, piece_names
from musictx.commands import check_way, check_within, open_and_print, print_table
from musictx.config.command import Command
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import check_new, only_new, replacing, write_json
from musictx.generate.open_player import check_device
from musictx.generate.seeds import fit_grid
from musictx.model.packaged import CHORALE, PIANO, bundle_path, seed_path
from musictx.model.tensors import tensors_hash
from musictx.music.read import read_bytes, read_tracks
from musictx.music.write import write_midi
from musictx.setting import setting
from musictx.terminal import say
from musictx.viz.piano_roll import piano_roll

DRAWN = 4  # of the nearest passages, in the picture


@dataclass
class SimilarConfig:
    """musictx similar: find the pieces and passages of a store that sound like a MIDI file, in any key and tempo."""

    midi: str = setting(MISSING, "a MIDI file; or elise, gymnopedie, chorale", path=True)
    store: str = setting(MISSING, "the music to search: a folder that `musictx prepare` made", path=True)
    out: str = setting(
        "outputs/similar", "a folder for the picture, the nearest passages as MIDI, and similar.json", folder=True
    )
    bundle: str | None = setting(
        None, "the model that listens; null: chorale for a store of four voices, else piano", path=True
    )
    most: int = setting(10, "how many pieces and passages to name")
    passage_seconds: float = setting(PASSAGE_S, "length of a passage")
    passages: int = setting(MOST_PASSAGES, "at most so many passages of the store are heard, spread over its music")
    drums: bool = setting(False, "include the file's drums")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")


def similar(config: SimilarConfig) -> None:
    device = check_device(config.device)
    source, out = seed_path(config.midi), Path(config.out)
    for name in ("most", "passages", "passage_seconds"):
        check_within(config, name, 1)
    files = [out / "similar.json", out / f"{source.stem}.png"]
    check_new(config.overwrite, *files, *(out / f"{source.stem}-{n + 1}.mid" for n in range(min(config.most, 1000))))
    check_way("out", config.out, out)
    data = read_bytes(source)  # reports a missing file before the model loads
    store = Store(Path(config.store))
    bundle = config.bundle or (CHORALE if store.tokenizer.voices else PIANO)
    model, tokenizer, _ = open_and_print(bundle, device, continues=False)
    embedder = Embedder(model, tokenizer, bundle=bundle)
    tracks = read_tracks(data, source, one_tempo=tokenizer.metrical)
    music = fit_grid(tracks.merge(config.drums), tokenizer, source, say)
    passages = embedder.passages(music, config.passage_seconds)
    if not passages:
        raise UserError(f"{source}: no passage of four notes that the model can read", "give more music")
    vectors = embedder.vectors([part for _, part in passages])
    names, model_sha256 = piece_names(store), tensors_hash(bundle_path(bundle))
    index, remark = open_index(store, embedder, model_sha256, config.passage_seconds, config.passages)
    if remark:
        say(remark)
    if index.is_uniform:
        say("the passages heard of the store are all alike: likeness has nothing to compare with; give more passages=")
    pieces = index.pieces(vectors, names, config.most)
    rows = index.passages(vectors, names, config.most)
    pairs = [(near, at) for at, row in zip(passages, rows, strict=True) for near in row]
    best = sorted(pairs, key=lambda pair: -pair[0].likeness)[: config.most]
    print_table(["likeness", "piece"], [(f"{near.likeness:.3f}", near.name) for near in pieces])
    table = [(f"{near.likeness:.3f}", f"{at.from_s:.1f} s", f"{near.from_s:.1f} s", near.name) for near, at in best]
    print_table(["likeness", "of", "is like", "in"], table)
    write(out, source.stem, store, pieces, best, config.passage_seconds)
    say(f"{out}: the nearest passages as a picture, as MIDI files and in similar.json; likeness 1 is the same")


def write(
    out: Path, stem: str, store: Store, pieces: list[Match], best: list[tuple[Match, Passage]], length_s: float
) -> None:
    """Writes the picture, the passages as MIDI files, and the figures."""
    all_ids = [ids for split in store.manifest.splits for ids in store.split(split)]
    scores = []
    for n, (near, _) in enumerate(best):
        piece = store.tokenizer.decode(np.asarray(all_ids[near.number]))
        scores.append(piece.clip(near.from_s, near.from_s + length_s))
        with replacing(out / f"{stem}-{n + 1}.mid") as partial:
            write_midi(scores[-1], partial)
    first = best[0][1]
    panels = [(f"{stem}, from {first.from_s:.1f} s", first.score, np.inf)]
    for (near, passage), score in zip(best[:DRAWN], scores, strict=False):
        like = f"like {passage.from_s:.1f} s: {near.likeness:.2f}, {near.name[-80:]} from {near.from_s:.1f} s"
        panels.append((like, score, 0.0))
    piano_roll(panels, out / f"{stem}.png")
    rows = [near._asdict() | {"of_s": passage.from_s} for near, passage in best]
    write_json(out / "similar.json", {"pieces": [near._asdict() for near in pieces], "passages": rows})


COMMAND = Command("similar", only_new(similar), SimilarConfig, main="midi")
