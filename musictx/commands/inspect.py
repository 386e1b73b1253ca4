"""musictx inspect: what a MIDI file or a token store holds. musictx verify: whether a store is sound."""

import json
from argparse import ArgumentParser
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from musictx.config.app import in_one_line
from musictx.data.prepare import print_summary
from musictx.data.store import Store, verify_split
from musictx.errors import TokenError, UserError
from musictx.model.shipped import seed_path
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer, build_tokenizer
from musictx.viz.curves import count_music, draw_histograms

FIRST = 24  # tokens that are shown
MOST_PIECES = 2000  # of a large store every n-th piece is counted


def inspect_midi(path: Path, name: str) -> dict[str, Any]:
    """A MIDI file's tracks, and its music as tokens and back. Raises MidiError, ConfigError."""
    tokenizer = build_tokenizer(name)
    tracks = read_tracks(read_bytes(path), path, one_tempo=tokenizer.metrical)
    score = tracks.merge()
    facts: dict[str, Any] = {
        "file": str(path),
        "seconds": round(tracks.merge(drums=True).duration_s, 3),
        "quarters_per_minute": round(60 / tracks.quarter_s, 3),
        "tracks": [
            {
                "name": track.name,
                "program": "drums" if track.is_drums else track.program,
                "notes": len(track.score),
                "lowest": int(track.score.pitch.min()) if len(track.score) else None,
                "highest": int(track.score.pitch.max()) if len(track.score) else None,
                "pedal_presses": track.pedal_presses,
            }
            for track in tracks.tracks
        ],
        "tokenizer": name,
    }
    try:
        ids = tokenizer.encode(score)
    except TokenError as error:
        return facts | {"tokens": None, "why_not": str(error)}
    facts["tokens"] = len(ids)
    facts["first_tokens"] = [tokenizer.vocab.describe(int(i)) for i in ids[:FIRST]]
    facts["round_trip"] = round_trip(score, tokenizer)
    return facts


def round_trip(score: Score, tokenizer: Tokenizer) -> dict[str, float]:
    """What encoding and decoding does to notes: each beside the nearest of its pitch that comes back.

    Notes of one pitch struck in one step of the encoding's clock become one, so fewer may come back.
    """
    back = tokenizer.decode(tokenizer.encode(score), score.quarter_s)
    onset, velocity = [np.zeros(0)], [np.zeros(0)]
    for pitch in np.unique(score.pitch):
        sent, came = (s.select(s.pitch == pitch) for s in (score, back))
        if not len(came):
            continue
        right = np.searchsorted(came.onset_s, sent.onset_s).clip(1, max(len(came) - 1, 1))
        left = right - 1
        right = np.minimum(right, len(came) - 1)
        nearer_left = sent.onset_s - came.onset_s[left] <= came.onset_s[right] - sent.onset_s
        nearest = np.where(nearer_left, left, right)
        onset.append(np.abs(came.onset_s[nearest] - sent.onset_s))
        velocity.append(np.abs(came.velocity[nearest].astype(float) - sent.velocity))
    onset_s, loudness = np.concatenate(onset), np.concatenate(velocity)
    return {
        "notes": len(score),
        "notes_back": len(back),
        "largest_onset_error_s": round(float(onset_s.max(initial=0)), 5),
        "mean_velocity_error": round(float(loudness.mean()) if len(loudness) else 0.0, 3),
    }


def inspect_store(path: Path, png: Path) -> dict[str, Any]:
    """A store's manifest, and its histograms as numbers and as a picture. Raises StoreError."""
    store = Store(path)
    splits = [store.split(name) for name in store.manifest.splits]
    pieces = [split[i] for split in splits for i in range(len(split))]
    chosen = pieces[:: -(-len(pieces) // MOST_PIECES)]
    histograms = count_music([store.tokenizer.decode(ids) for ids in chosen], [len(ids) for ids in pieces])
    draw_histograms(f"{store.manifest.corpus.name}: {len(pieces):,} pieces", histograms, png)
    shown = {name: {"counts": c.tolist(), "edges": e.tolist()} for name, (c, e) in histograms.items()}
    return asdict(store.manifest) | {"histograms": shown, "pieces_counted": len(chosen), "png": str(png)}


def print_midi(facts: dict[str, Any]) -> None:
    print(f"{facts['file']}: {facts['seconds']:.2f} s, {facts['quarters_per_minute']:g} quarters a minute")
    table = Table("track", box=None, pad_edge=False)
    for heading in ("program", "notes", "pitches", "pedal presses"):
        table.add_column(heading, justify="right")
    for i, track in enumerate(facts["tracks"]):
        pitches = f"{track['lowest']} … {track['highest']}" if track["notes"] else ""
        name = track["name"] or f"({i + 1})"
        table.add_row(name, str(track["program"]), str(track["notes"]), pitches, str(track["pedal_presses"]))
    Console(highlight=False, markup=False).print(table)
    if facts["tokens"] is None:
        print(f"cannot be written in {facts['tokenizer']} tokens: {facts['why_not']}")
        return
    print(f"{facts['tokens']:,} {facts['tokenizer']} tokens: {', '.join(facts['first_tokens'])} …")
    back = facts["round_trip"]
    print(
        f"and back: {back['notes_back']:,} of {back['notes']:,} notes, onsets within "
        f"{back['largest_onset_error_s'] * 1000:.1f} ms, velocity off by {back['mean_velocity_error']:.2f} on average"
    )


def inspect_main() -> None:
    parser = ArgumentParser("musictx inspect", description="what a MIDI file or a token store holds")
    parser.add_argument("path", help="a MIDI file, or the folder of a store")
    parser.add_argument("--tokenizer", default="performance", help="for a MIDI file: write it in these tokens")
    parser.add_argument("--png", type=Path, help="for a store: the picture; default STORE-histograms.png beside it")
    parser.add_argument("--json", action="store_true", help="everything as JSON, for programs")
    args = parser.parse_args()

    def inspect() -> None:
        path = seed_path(args.path)
        if path.is_dir():
            beside = path.resolve().with_name(f"{path.resolve().name}-histograms.png")
            facts = inspect_store(path, args.png or beside)
            if not args.json:
                print_summary(path, Store(path).manifest)
                print(f"histograms: {facts['png']}")
        else:
            facts = inspect_midi(path, args.tokenizer)
            if not args.json:
                print_midi(facts)
        if args.json:
            print(json.dumps(facts, indent=1, ensure_ascii=False))

    in_one_line(inspect)


def verify_main() -> None:
    parser = ArgumentParser("musictx verify", description="reads a store again: fingerprint, offsets, ids, music")
    parser.add_argument("path", type=Path, help="the folder of a store")
    args = parser.parse_args()

    def verify() -> None:
        store = Store(args.path)
        if not store.manifest.splits:
            raise UserError(f"{args.path} has no splits: prepare the data again")
        lines = [verify_split(store, name) for name in store.manifest.splits if store.manifest.splits[name].pieces]
        print("\n".join([*lines, f"{args.path} is sound"]))

    in_one_line(verify)
