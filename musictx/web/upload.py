"""A stranger's MIDI file as music: read by a process of its own, limited in time and memory, as corpora are."""

import re
from pathlib import Path
from typing import Any, NamedTuple, cast

from musictx.data.work.sandbox import Limits as ReaderLimits
from musictx.data.work.sandbox import run_batch
from musictx.errors import MidiError, UserError
from musictx.notes.read import read_tracks
from musictx.web.limits import Limits
from musictx.web.session import Heard, Music

NAME_LENGTH = 40


class Read(NamedTuple):
    played: Heard
    written: Heard | None
    tracks: int
    drums: bool


def read_upload(data: bytes, name: str, limits: Limits) -> Music:
    """Raises UserError that says in one line what is wrong with the file."""
    size = len(data)
    if size > limits.upload_bytes:
        raise UserError(f"{name}: {size / 2**20:.1f} MB; files up to {limits.upload_bytes / 2**20:g} MB are taken")
    if not size:
        raise UserError(f"{name}: the file is empty: give a MIDI file")
    allowed = ReaderLimits(limits.file_seconds, limits.memory_mb)
    read = cast(Read | str, run_batch(cast(Any, read_music), [data], allowed)[0])
    if isinstance(read, str):
        raise UserError(f"{name}: {read}")
    return Music(plain_name(name), *read.played, written=read.written, tracks=read.tracks, drums=read.drums)


def read_music(data: bytes) -> Read | str:
    """In the reader process: the music without drums, or why there is none."""
    try:
        tracks = read_tracks(data, "")
        changes = tracks.clock is not None and tracks.clock.changes
        even = read_tracks(data, "", one_tempo=True) if changes else None
    except MidiError as error:
        return error.reason
    score = tracks.merge()
    if not len(score):
        only_drums = len(tracks.merge(drums=True)) > 0
        return "there are only drums in it" if only_drums else "there are no notes in it: give one with music"
    sounding = [track for track in tracks.tracks if len(track.score)]
    melodic = sum(not track.is_drums for track in sounding)
    written = None if even is None else Heard(even.merge(), even.meter())
    return Read(Heard(score, tracks.meter()), written, melodic, melodic < len(sounding))


def plain_name(name: str) -> str:
    """A file's name without its suffix, of letters, digits and what does no harm in titles and in other names."""
    return " ".join(re.sub(r"[^\w.-]+", " ", Path(name).stem).split()).strip(".")[:NAME_LENGTH] or "music"
