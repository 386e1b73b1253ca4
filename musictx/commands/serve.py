"""musictx serve: open a page in the browser: drop music, continue it, hear it, see what the model looks at."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from musictx.commands import check_within
from musictx.config.command import Command
from musictx.config.train import AttentionConfig
from musictx.config.web import LIMITS, MB, Limits
from musictx.errors import ConfigError, UserError
from musictx.generate.filling import hears
from musictx.generate.open_bundle import check_device, choose_and_print, open_and_print
from musictx.model.packaged import HARMONISER, NAMES, absence, is_packaged
from musictx.model.weights import choose_weights, for_steps
from musictx.setting import setting


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
    at_once: int = setting(LIMITS.at_once, "people that the model serves at the same time; the others wait in line")
    queue: int = setting(LIMITS.queue, "people who may wait")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it is faster")
    attention: AttentionConfig = field(default_factory=AttentionConfig)


def serve(config: ServeConfig) -> None:
    limits = check(config)
    if find_spec("gradio") is None:
        raise UserError("the page needs the optional extra web", "pip install 'musictx[web]'")
    from musictx.web.gate import answered, listening  # of starlette, which comes with gradio

    address = listening(config.host)
    hosts = answered(address, config.allowed_hosts)
    device = check_device(config.device)
    # the browser and the pictures need a core: a step is small, and waits for the slowest thread
    torch.set_num_threads(max(torch.get_num_threads() - 1, 1))
    models = {Path(name).stem: open_and_print(name, device, config.attention.impl) for name in offered(config.bundle)}
    below = None  # bundle= offers only its own model
    if config.bundle is None and is_packaged(HARMONISER):
        below = open_and_print(HARMONISER, device, config.attention.impl, continues=False)
    weights = dict(zip(models, choose_and_print(config.weights, *(m.model for m in models.values())), strict=True))
    with ended_by_sigterm(), TemporaryDirectory(prefix="musictx-") as name:
        made, uploads = Path(name) / "made", Path(name) / "uploads"
        made.mkdir()
        os.environ["GRADIO_TEMP_DIR"] = str(uploads)  # when imported, gradio makes folders there, and others elsewhere
        from musictx.web.draw import Ready
        from musictx.web.server import run_page  # it takes seconds to import
        from musictx.web.studio import Studio

        ready = {
            name: Ready(for_steps(m.model, weights[name]), m.tokenizer, hears(m.header, m.model), m.header.sampling)
            for name, m in models.items()
        }
        if below:
            below = below._replace(model=for_steps(below.model, choose_weights(config.weights, below.model)))
        studio = Studio(ready, made, limits, below)
        named = models | ({HARMONISER: below} if below else {})
        said = "; ".join(f"{name}, {m.header.origin}" for name, m in named.items())
        run_page(studio, said, address, config.port, hosts, uploads)


def offered(bundle: str | None) -> list[str]:
    """The model that `bundle=` says, or those inside musictx; prints which of them this package lacks."""
    if bundle is not None:
        return [bundle]
    for name in NAMES:
        if not is_packaged(name):
            print(absence(name))
    return [name for name in NAMES if is_packaged(name)]


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Within it, SIGTERM unwinds as Ctrl-C does; the exit status is 143, as shells expect."""

    def leave(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # it may come again while the temporary folder is removed
        print("stopped by SIGTERM", file=sys.stderr)
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check(config: ServeConfig) -> Limits:
    """The limits of the server. Raises ConfigError for impossible amounts."""
    for name in ("seconds", "length_seconds", "variations", "upload_mb", "uploads_mb", "at_once", "queue"):
        if not 0 < getattr(config, name) < float("inf"):
            raise ConfigError(name, got=getattr(config, name), allowed="more than 0")
    if config.uploads_mb < config.upload_mb:
        raise ConfigError("uploads_mb", got=config.uploads_mb, allowed=f"at least upload_mb={config.upload_mb:g}")
    check_within(config, "port", 1, 2**16 - 1)
    return Limits(
        length_s=config.length_seconds,
        variations=config.variations,
        seconds=config.seconds,
        upload_bytes=int(config.upload_mb * MB),
        uploads_bytes=int(config.uploads_mb * MB),
        at_once=config.at_once,
        queue=config.queue,
    )


COMMAND = Command("serve", serve, ServeConfig, {"attention": "auto"})
