"""musictx serve: a page in the browser that continues music with a bundle's model."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from musictx.config.app import hydra_app
from musictx.config.fields import in_keys
from musictx.config.web import Limits, ServeConfig
from musictx.errors import ConfigError, UserError
from musictx.model.shipped import HARMONISER, NAMES, absence, is_shipped
from musictx.model.weights import choose_weights, for_steps
from musictx.playing.filling import hears
from musictx.playing.opening import Opened, check_device, open_told, weights_told


def serve(config: ServeConfig) -> None:
    limits = check(config)
    if find_spec("gradio") is None:
        raise UserError("the page needs the optional extra web: pip install 'musictx[web]'")
    from musictx.web.gate import answered, listening  # of starlette, which comes with gradio

    address = listening(config.host)
    hosts = answered(address, config.allowed_hosts)
    device = check_device(config.device)
    # the browser and the pictures need a core: a step is small, and waits for the slowest thread
    torch.set_num_threads(max(torch.get_num_threads() - 1, 1))
    models = {Path(name).stem: open_told(name, device, config.attention.impl) for name in offered(config.bundle)}
    below = None  # bundle= offers only its own model
    if config.bundle is None and is_shipped(HARMONISER):
        below = open_told(HARMONISER, device, config.attention.impl, continues=False)
    weights = dict(zip(models, weights_told(config.weights, *(m.model for m in models.values())), strict=True))
    with ended_by_sigterm(), TemporaryDirectory(prefix="musictx-") as name:
        made, uploads = Path(name) / "made", Path(name) / "uploads"
        made.mkdir()
        os.environ["GRADIO_TEMP_DIR"] = str(uploads)  # when imported, gradio makes folders there, and others elsewhere
        from musictx.web.draw import Ready
        from musictx.web.harmonise import Harmoniser
        from musictx.web.server import run_page  # it takes seconds to import
        from musictx.web.studio import Studio

        ready = {
            name: Ready(for_steps(m.model, weights[name]), m.tokenizer, hears(m.header, m.model))
            for name, m in models.items()
        }
        voices = None
        if below:
            model = for_steps(below.model, choose_weights(config.weights, below.model))
            voices = Harmoniser(model, below.tokenizer, below.header)
        own = {name: m.header.sampling for name, m in models.items()}
        studio = Studio(ready, made, limits, voices, own)
        said = title(models | ({HARMONISER: below} if below else {}))
        with in_keys(None):  # people on the page type no keys
            run_page(studio, said, address, config.port, hosts, uploads)


def offered(bundle: str | None) -> list[str]:
    """The model that `bundle=` says, or those inside musictx; prints which of them this package lacks."""
    if bundle is not None:
        return [bundle]
    for name in NAMES:
        if not is_shipped(name):
            print(absence(name))
    return [name for name in NAMES if is_shipped(name)]


def title(models: dict[str, Opened]) -> str:
    """Every model's name, corpus and licence."""
    return "; ".join(f"{name}, {opened.header.origin}" for name, opened in models.items())


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
    for name in (
        "seconds",
        "length_seconds",
        "variations",
        "upload_mb",
        "uploads_mb",
        "file_seconds",
        "memory_mb",
        "at_once",
        "queue",
    ):
        if not 0 < getattr(config, name) < float("inf"):
            raise ConfigError(f"{name}={getattr(config, name)}: give more than 0")
    if config.uploads_mb < config.upload_mb:
        raise ConfigError(f"uploads_mb={config.uploads_mb:g}: give at least upload_mb={config.upload_mb:g}")
    if not 0 < config.port < 2**16:
        raise ConfigError(f"port={config.port}: give 1 to {2**16 - 1}")
    return Limits(
        length_s=config.length_seconds,
        variations=config.variations,
        seconds=config.seconds,
        upload_bytes=int(config.upload_mb * 2**20),
        uploads_bytes=int(config.uploads_mb * 2**20),
        file_seconds=config.file_seconds,
        memory_mb=config.memory_mb,
        at_once=config.at_once,
        queue=config.queue,
    )


main = hydra_app("serve", serve)

if __name__ == "__main__":
    main()
