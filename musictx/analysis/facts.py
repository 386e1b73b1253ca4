"""Facts of a MIDI file, a store and a bundle, for `musictx inspect`."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from musictx.analysis.part_writing_report import rules_report
from musictx.data.store import Store, verify_split
from musictx.errors import MidiError, StoreError, TokenError, UserError, counted
from musictx.music.read import read_bytes, read_tracks, score_of
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.score import ScoreTokenizer
from musictx.viz.curves import count_music, plot_histograms

FIRST = 24  # tokens that are shown
MOST_PIECES = 2000  # of a large store every n-th piece is counted


def midi_facts(path: Path, name: str) -> dict[str, Any]:
    """A MIDI file's tracks, and its music as tokens and back. Raises MidiError, ConfigError."""
    tokenizer, data = build_tokenizer(name), read_bytes(path)
    tracks = read_tracks(data, path, one_tempo=tokenizer.metrical)
    score = tracks.merge()
    facts: dict[str, Any] = {
        "file": str(path),
        "seconds": round(tracks.merge(drums=True).duration_s, 3),
        "quarters_per_minute": round(60 / tracks.quarter_s, 3),
        "tracks": [
            {
                "part": track.part,
                "name": track.name,
                "program": "drums" if track.is_drums else track.program,
                "notes": len(track.score),
                "lowest": int(track.score.pitch.min()) if len(track.score) else None,
                "highest": int(track.score.pitch.max()) if len(track.score) else None,
                "pedal_presses": track.pedal_presses,
                "pedal_forgotten": track.pedal_forgotten,
            }
            for track in tracks.tracks
        ],
        "discarded": dict(+tracks.repairs),
        "tokenizer": name,
    }
    try:
        if isinstance(tokenizer, ScoreTokenizer):  # a score has bars and parts that notes in seconds lack
            ids = tokenizer.encode_notation(score_of(data, path)[0])
        else:
            ids = tokenizer.encode(score)
    except (TokenError, MidiError) as error:
        return facts | {"tokens": None, "why_not": str(error)}
    facts["tokens"] = len(ids)
    facts["first_tokens"] = [tokenizer.vocab.describe(int(i)) for i in ids[:FIRST]]
    facts["round_trip"] = round_trip(score, tokenizer.decode(ids, score.quarter_s))
    return facts


def round_trip(score: Score, output: Score) -> dict[str, float]:
    """Each note beside the nearest of its pitch after encoding and decoding."""
    # notes of one pitch in one step of the clock become one, so fewer may come back
    onset, velocity = [np.zeros(0)], [np.zeros(0)]
    for pitch in np.unique(score.pitch):
        originals, copies = (s.select(s.pitch == pitch) for s in (score, output))
        if not len(copies):
            continue
        right = np.searchsorted(copies.onset_s, originals.onset_s).clip(0, len(copies) - 1)
        left = np.maximum(right - 1, 0)
        is_left = originals.onset_s - copies.onset_s[left] <= copies.onset_s[right] - originals.onset_s
        nearest = np.where(is_left, left, right)
        onset.append(np.abs(copies.onset_s[nearest] - originals.onset_s))
        velocity.append(np.abs(copies.velocity[nearest].astype(float) - originals.velocity))
    onset_s, loudness = np.concatenate(onset), np.concatenate(velocity)
    return {
        "notes": len(score),
        "notes_back": len(output),
        "largest_onset_error_s": round(float(onset_s.max(initial=0)), 5),
        "mean_velocity_error": round(float(loudness.mean()) if len(loudness) else 0.0, 3),
    }


def store_facts(path: Path, png: Path) -> dict[str, Any]:
    """A store's manifest, and its histograms as numbers and as a picture. Raises StoreError."""
    store = Store(path)
    hashes = [verify_split(store, name) for name, info in store.manifest.splits.items() if info.pieces]
    pieces = [ids for name in store.manifest.splits for ids in store.split(name)]
    if not pieces:
        raise StoreError(f"{path} has no pieces", "prepare the data again")
    sample = pieces[:: -(-len(pieces) // MOST_PIECES)]
    histograms = count_music([store.tokenizer.decode(ids) for ids in sample], [len(ids) for ids in pieces])
    plot_histograms(f"{store.manifest.corpus.name}: {counted(len(pieces), 'piece')}", histograms, png)
    counts = {name: {"counts": c.tolist(), "edges": e.tolist()} for name, (c, e) in histograms.items()}
    facts = {"histograms": counts, "pieces_counted": len(sample), "png": str(png), "whole": hashes}
    return asdict(store.manifest) | facts


def rules_facts(path: Path, beside: Store | None) -> dict[str, Any]:
    """The broken rules of part-writing in a MIDI file. Raises MidiError, StoreError; UserError unless in four
    voices."""
    from musictx.generate.choose_bundle import not_four_voices

    tracks = read_tracks(read_bytes(path), path, one_tempo=True)
    if why := not_four_voices(tracks.merge()):
        raise UserError(f"{path} is not four voices on a grid: {why}", "give a file of soprano, alto, tenor and bass")
    return {"file": str(path)} | rules_report(tracks, beside)


def bundle_facts(path: Path) -> dict[str, Any]:
    """A bundle's header, and its model in words. Raises BundleError."""
    from musictx.generate.open_bundle import open_bundle
    from musictx.model.build import describe_model  # PyTorch: a second for those who need it
    from musictx.objectives import NEXT_TOKEN

    opened = open_bundle(path, continues=False)
    facts = {"file": str(path), "described": describe_model(opened.model)} | asdict(opened.header)
    del facts["tokenizer_state"]  # merges by the thousand
    return facts | {"objective": facts["objective"] or {"name": NEXT_TOKEN}}
