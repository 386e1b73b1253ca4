"""A file's bytes as music of the page."""

from musictx.errors import MidiError
from musictx.music.project import Project
from musictx.music.read import kind_of_notation, read_tracks, score_of, whole
from musictx.music.ticks import Tracks
from musictx.web.session import PageMusic, Reading

FIRST_TEMPO = "It is heard at its first tempo, since the model counts beats."


def read_music(data: bytes, source: str) -> PageMusic | str:
    """The music without drums and name, or why there is none; runs in a reader."""
    try:
        tracks = read_tracks(data, source)
        even = read_tracks(data, source, one_tempo=True) if tracks.tempo_map.changes else None
        written = score_of(data, source)[0] if kind_of_notation(data, source) else None
    except MidiError as error:
        return error.reason
    music = reading_of(tracks, data, source)
    if not len(music.score):
        only_drums = len(tracks.merge(drums=True)) > 0
        return "there are only drums in it" if only_drums else "there are no notes in it"
    beats = reading_of(even, data, source, FIRST_TEMPO) if even is not None else None
    whole_music = PageMusic("", music.score, music.meter, seconds_reading=music, beats_reading=beats)
    return whole_music._replace(project=music.project, written=written)


def reading_of(tracks: Tracks, data: bytes, source: str, remarks: str = "") -> Reading:
    """The notes without drums, and remarks on drums and pedal."""
    if any(track.is_drums and len(track.score) for track in tracks.tracks):
        remarks += " The model does not hear its drums; they sound."
    if pedal := tracks.remark():
        remarks += f" {pedal[0].upper()}{pedal[1:]}."
    project, parts = Project(whole(data, source), tracks.tempo_map), tuple(track.score for track in tracks.tracks)
    return Reading(tracks.merge(), tracks.meter(), remarks.strip(), project, parts)
