"""The settings of the page in the browser, and the limits of one person's request."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from musictx.config.train import AttentionConfig
from musictx.setting import setting

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
    at_once: int = 1  # requests that the model works on
    queue: int = 20  # requests that wait


LIMITS, MB = Limits(), 2**20


@dataclass
class ServeConfig:
    """musictx serve: open a page on which people continue and fill music. The limits are for one request of one
    person."""

    bundle: str | None = setting(
        None,
        "piano, chorale, a file that `musictx train` made or a run's folder; null: piano and chorale, and the "
        "harmoniser beside them",
    )
    host: str = setting(
        "127.0.0.1", "127.0.0.1: only this machine; 0.0.0.0 or :: for everybody who reaches it, with allowed_hosts"
    )
    allowed_hosts: Any = setting(
        None,
        "the server's names, one or a list as [music.example.org,192.168.1.5]: other names are refused; if it listens "
        "only for this machine, localhost, 127.0.0.1 and [::1] are allowed anyway",
    )
    port: int = setting(7860, "port of the page")
    seconds: float = setting(LIMITS.seconds, "time to draw a continuation; the page shows what is drawn by then")
    length_seconds: float = setting(LIMITS.length_s, "most new music")
    variations: int = setting(LIMITS.variations, "most continuations at once")
    upload_mb: float = setting(LIMITS.upload_bytes / MB, "largest file")
    uploads_mb: float = setting(LIMITS.uploads_bytes / MB, "all people's files together, until they are read")
    file_seconds: float = setting(LIMITS.file_seconds, "most time to read a file")
    memory_mb: int = setting(LIMITS.memory_mb, "most memory to read a file")
    at_once: int = setting(LIMITS.at_once, "people that the model serves at the same time; the others wait in line")
    queue: int = setting(LIMITS.queue, "people who may wait")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it is faster")
    attention: AttentionConfig = field(default_factory=AttentionConfig)
