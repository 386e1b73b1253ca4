"""The limits of one person's request to the page in the browser."""

from typing import NamedTuple

MOST_STEPS = 20  # steps that can be undone


class Limits(NamedTuple):
    """Limits of one request; those of the queue and `uploads_bytes` are for all people together."""

    length_s: float = 60.0  # new music
    variations: int = 4
    seconds: float = 30.0  # time to draw
    upload_bytes: int = 2**20
    uploads_bytes: int = 2**25  # all people's files together, until they are read
    file_seconds: float = 10.0  # time to read a file
    memory_mb: int = 512
    music_s: float = 180.0  # length of a file's music
    notes: int = 5000  # notes in a file
    sounding_s: float = 3000.0  # duration of all its notes together: the synthesizer's work
    queue: int = 20  # requests that wait


LIMITS = Limits()
