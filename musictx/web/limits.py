"""What one person may ask of a server that others use too."""

from typing import NamedTuple

MOST_STEPS = 20  # that can be undone


class Limits(NamedTuple):
    """Amounts for one request; those of the queue and `uploads_bytes` are for all people together."""

    length_s: float = 60.0  # of new music
    variations: int = 4
    seconds: float = 30.0  # for drawing
    upload_bytes: int = 2**20
    uploads_bytes: int = 2**25  # of all people together, until they are read
    file_seconds: float = 10.0  # for reading it
    memory_mb: int = 512
    music_s: float = 180.0  # of music to begin with
    notes: int = 5000  # in it
    sounding_s: float = 3000.0  # of all its notes together, which the player of its sound works through
    at_once: int = 1  # requests that the model works on
    queue: int = 20  # that wait
