"""The choice of a packaged model: chorale for four voices on a grid, piano for all else."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musictx.errors import TokenError
from musictx.model.packaged import CHORALE, PIANO, packaged_bundle
from musictx.music.grid import REST, beside_grid, quantise, score_to_grid
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.tokenizers.chorale import ChoraleTokenizer

ORNAMENTS = 0.05  # share of notes that may begin beside the grid; at most 0.012 in the chorales of music21
FULL = 0.5  # share of the sounding sixteenths in which all four voices sound


class Choice(NamedTuple):
    bundle: str
    why: str  # "" where a person names the bundle

    @property
    def remark(self) -> str:
        if not self.why:
            return ""
        return f"no bundle= is given: the {self.bundle} model inside musictx plays, since {self.why}"


def choose_bundle(music: Score, name: object) -> Choice:
    """The model for the music called `name`, and the reason."""
    otherwise = not_four_voices(music)
    if otherwise:
        return Choice(PIANO, f"{name} is not four voices on a grid: {otherwise}")
    beside = int(beside_grid(music).sum())
    but = f", except for {beside} of its {len(music)} notes" if beside else ""
    return Choice(CHORALE, f"{name} is four voices on a grid{but}")


def not_four_voices(music: Score) -> str:
    """The reason why music is not four voices on a grid, but for a few ornaments; "" if it is."""
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
        return error.what  # the mistake, without the advice
    voices = (grid != REST).sum(axis=1)
    full = np.count_nonzero(voices == grid.shape[1]) / np.count_nonzero(voices)
    return f"all four sound in {full:.0%} of it" if full < FULL else ""


def name_bundle(bundle: str | None, seeds: Iterable[Path], drums: bool = False, *, played: bool = False) -> Choice:
    """The bundle that a person names, or else the one that suits all seeds; `played` ones in seconds, not beats. Raises
    MidiError for an unreadable seed."""
    if bundle is not None:
        return Choice(bundle, "")
    choice = Choice(PIANO, "there is no seed")
    for seed in seeds:
        music = read_tracks(read_bytes(seed), seed, one_tempo=not played).merge(drums)
        choice = choose_bundle(music, seed.name)
        if choice.bundle == PIANO:
            break
    packaged_bundle(choice.bundle)  # raises here if the package lacks it, before a line promises it
    return choice
