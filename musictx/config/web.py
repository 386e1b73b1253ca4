"""What the page in the browser can be told, and what one person may ask of it."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from musictx.config.train import AttentionConfig
from musictx.setting import setting

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


LIMITS, MB = Limits(), 2**20


@dataclass
class ServeConfig:
    """musictx serve: a page on which people continue and fill music. The limits are for one request of one person."""

    bundle: str | None = setting(
        None,
        "piano, chorale, a file that `musictx train` made or a run's folder; null: piano and chorale, and the "
        "harmoniser beside them",
    )
    host: str = setting(
        "127.0.0.1", "127.0.0.1: this machine alone; 0.0.0.0 or ::, whoever reaches it, which needs allowed_hosts"
    )
    allowed_hosts: Any = setting(
        None,
        "what people call the server, one or a list as [music.example.org,192.168.1.5]: other names are refused; where "
        "it listens for this machine alone, localhost, 127.0.0.1 and [::1] are allowed anyway",
    )
    port: int = setting(7860, "of the page")
    seconds: float = setting(LIMITS.seconds, "for drawing a continuation; what there is by then is shown")
    length_seconds: float = setting(LIMITS.length_s, "most new music")
    variations: int = setting(LIMITS.variations, "most continuations at once")
    upload_mb: float = setting(LIMITS.upload_bytes / MB, "largest file")
    uploads_mb: float = setting(LIMITS.uploads_bytes / MB, "of all people's files together, until they are read")
    file_seconds: float = setting(LIMITS.file_seconds, "for reading a file")
    memory_mb: int = setting(LIMITS.memory_mb, "for reading a file")
    at_once: int = setting(LIMITS.at_once, "people whom the model serves at the same time; the others wait in line")
    queue: int = setting(LIMITS.queue, "people who may wait")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it pays")
    attention: AttentionConfig = field(default_factory=AttentionConfig)
