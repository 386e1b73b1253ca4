"""What the page in the browser can be told."""

from dataclasses import dataclass, field
from typing import Any

from musictx.config.train import AttentionConfig


@dataclass
class ServeConfig:
    """musictx serve: a page on which people continue music. The limits are for one request of one person."""

    bundle: str | None = None  # piano or chorale, or a file that `musictx train` made; null: both of those
    host: str = "127.0.0.1"  # this machine alone; 0.0.0.0 or ::, whoever reaches it: needs allowed_hosts
    # what people call the server, one or a list as [music.example.org,192.168.1.5]: other names are refused;
    # where it listens for this machine alone, localhost, 127.0.0.1 and [::1] are allowed anyway
    allowed_hosts: Any = None
    port: int = 7860
    seconds: float = 30.0  # for drawing a continuation; what there is by then is shown
    length_seconds: float = 60.0  # most new music
    variations: int = 4  # most
    upload_mb: float = 1.0  # largest file
    uploads_mb: float = 32.0  # of all people's files together, until they are read
    file_seconds: float = 10.0  # for reading it
    memory_mb: int = 512  # for reading it
    at_once: int = 1  # people whom the model serves at the same time; the others wait in line
    queue: int = 20  # people who may wait
    device: str = "cpu"
    attention: AttentionConfig = field(default_factory=AttentionConfig)
