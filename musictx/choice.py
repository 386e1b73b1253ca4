"""Which model inside musictx plays where `bundle=` names none: the piano model, unless the seed is four voices on a
grid, which the chorale model continues."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musictx.errors import TokenError
from musictx.model.shipped import CHORALE, PIANO, shipped_bundle
from musictx.notes.grid import REST, score_to_grid
from musictx.notes.quantise import beside_grid, quantise
from musictx.notes.read import read_bytes, read_tracks
from musictx.notes.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer

ORNAMENTS = 0.05  # share of notes that may begin beside the grid; in the chorales of music21 it is 0.012 at most
FULL = 0.5  # share of the sounding sixteenths in which all four voices sound


class Choice(NamedTuple):
    bundle: str
    why: str


def choose_bundle(music: Score, name: object) -> Choice:
    """The name of a model for the music called `name`, and the reason."""
    otherwise = not_four_voices(music)
    if otherwise:
        return Choice(PIANO, f"{name} is not four voices on a grid: {otherwise}")
    beside = int(beside_grid(music).sum())
    but = f", but for {beside} of its {len(music)} notes" if beside else ""
    return Choice(CHORALE, f"{name} is four voices on a grid{but}")


def not_four_voices(music: Score) -> str:
    """Why the chorale encoding cannot take this music as it stands, or would hear less than four voices in it; an empty
    text where it is four voices on a grid, perhaps with a few ornaments beside it."""
    if not len(music):
        return "there are no notes"
    beside = np.flatnonzero(beside_grid(music))
    if len(beside) > ORNAMENTS * len(music):
        first = music.onset_s[beside[0]] / music.quarter_s
        return f"{len(beside)} of {len(music)} notes begin beside the sixteenths, the first at quarter {first:.2f}"
    try:
        grid = score_to_grid(quantise(music).score)
        ChoraleTokenizer().encode_grid(grid)
    except TokenError as error:
        return str(error).partition(";")[0]  # what is wrong, without what to do
    voices = (grid != REST).sum(axis=1)
    full = np.count_nonzero(voices == grid.shape[1]) / np.count_nonzero(voices)
    return f"all four sound in {full:.0%} of it" if full < FULL else ""


def name_bundle(bundle: str | None, seeds: Iterable[Path], drums: bool = False, *, played: bool = False) -> str:
    """What `bundle=` says; where it says nothing, the model for all of the seeds, the reason told in a line. They are
    read in beats, whatever their tempo does, or with `played` as they sound. Raises MidiError for a seed that cannot
    be read."""
    if bundle is not None:
        return bundle
    choice = Choice(PIANO, "there is no seed")
    for seed in seeds:
        music = read_tracks(read_bytes(seed), seed, one_tempo=not played).merge(drums)
        choice = choose_bundle(music, seed.name)
        if choice.bundle == PIANO:
            break
    shipped_bundle(choice.bundle)  # a package without it says so before anything is promised
    print(f"no bundle= is given: the {choice.bundle} model inside musictx plays, since {choice.why}")
    return choice.bundle
