"""musictx serve: open a page in the browser: drop music, continue it, hear it, see what the model looks at."""

import copy
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from musictx.commands import check_within, open_and_print
from musictx.config.command import Command
from musictx.config.web import LIMITS, Limits
from musictx.errors import ConfigError, UserError
from musictx.generate.choose_bundle import FREE, check_licence
from musictx.generate.open_bundle import chosen_weights
from musictx.generate.open_player import INT8_REMARK, check_device, on_onnx, onnx_weights
from musictx.model.header import read_header
from musictx.model.onnx.player import open_player, open_source_player
from musictx.model.onnx.settings import can_play_source
from musictx.model.packaged import HARMONISER, NAMES, absence, bundle_path, is_packaged
from musictx.model.settings import AUTO
from musictx.model.steps import Player, SourcePlayer
from musictx.model.torch_steps import TorchPlayer, TorchSourcePlayer
from musictx.model.weights import for_steps
from musictx.setting import setting
from musictx.terminal import say


@dataclass
class ServeConfig:
    """musictx serve: open a page on which people continue and fill music. The limits are for one request of one
    person."""

    bundle: str | None = setting(
        None,
        "a model inside musictx, a file that `musictx train` made or a run's folder; null: all inside musictx, each "
        "for the music that suits it",
        path=True,
    )
    licence: str | None = setting(None, "free: only models whose weights may be sold; null: any")
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
    queue: int = setting(LIMITS.queue, "people who may wait")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("auto", "float32, bfloat16 or int8; auto: int8 where it is faster")


def serve(config: ServeConfig) -> None:
    limits = check(config)
    if find_spec("gradio") is None:
        raise UserError("the page needs the optional extra web", "pip install 'musictx[web]'")
    from musictx.web.gate import host_names, listen_address  # of starlette, which comes with gradio

    address = listen_address(config.host)
    hosts = host_names(address, config.allowed_hosts)
    device = check_device(config.device)
    torch.set_num_threads(1)  # as in `few_threads`; the page draws in threads of its own, which all begin with this
    names = {Path(name).stem: name for name in page_bundles(config.bundle, config.licence)}

    def continues(stem: str) -> bool:
        return config.bundle is not None or names[stem] != HARMONISER

    opened = {stem: open_and_print(name, device, continues=continues(stem)) for stem, name in names.items()}
    players, remarks = dict[str, Player](), list[str]()
    source_player: SourcePlayer | None = None
    for stem, each in opened.items():
        if on_onnx(each.header, device, config.weights):
            players[stem] = open_player(bundle_path(names[stem]), onnx_weights(config.weights), header=each.header)
            remarks += [INT8_REMARK] * (config.weights == AUTO)
        elif on_onnx(each.header, device, config.weights, able=can_play_source):
            source_player = open_source_player(
                bundle_path(names[stem]), onnx_weights(config.weights), header=each.header
            )
            remarks += [INT8_REMARK] * (config.weights == AUTO)
        else:
            weights, more = chosen_weights(config.weights, each.model)
            remarks += more
            plays: Any = for_steps(copy.deepcopy(each.model), weights)  # that of `opened` is read for its attention
            if continues(stem):
                players[stem] = TorchPlayer(plays, device)
            else:
                source_player = TorchSourcePlayer(plays, device)
    for line in dict.fromkeys(remarks):
        say(line)
    with sigterm_exit(), TemporaryDirectory(prefix="musictx-") as name:
        music_folder, uploads = Path(name) / "made", Path(name) / "uploads"
        music_folder.mkdir()
        os.environ["GRADIO_TEMP_DIR"] = str(uploads)  # when imported, gradio makes folders there, and others elsewhere
        from musictx.web.server import run_page  # it takes seconds to import
        from musictx.web.studio import Studio

        origins = "; ".join(f"{name}, {each.header.origin}" for name, each in opened.items())
        below = opened.pop(HARMONISER, None) if config.bundle is None else None
        studio = Studio(opened, music_folder, limits, below, players, source_player)
        run_page(studio, origins, address, config.port, hosts, uploads)


def page_bundles(bundle: str | None, licence: str | None = None) -> list[str]:
    """The models of the page: `bundle`, or those inside musictx, with a `licence` of free those that people may sell;
    prints a line for a missing one. Raises ConfigError for a `bundle` that they may not."""
    for name in NAMES:
        if bundle is None and not is_packaged(name):
            say(absence(name))
    names = [name for name in (*NAMES, HARMONISER) if is_packaged(name)] if bundle is None else [bundle]
    headers = {name: read_header(bundle_path(name)) for name in names}
    if bundle is None and licence == FREE:
        return [name for name in names if headers[name].is_free]
    check_licence(licence, names[0], headers[names[0]])
    return names


@contextmanager
def sigterm_exit() -> Iterator[None]:
    """Lets SIGTERM unwind the block as Ctrl-C does, with exit status 143."""

    def leave(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)  # it may come again while the temporary folder is removed
        say("stopped by SIGTERM", file=sys.stderr)
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def check(config: ServeConfig) -> Limits:
    """The limits of the server. Raises ConfigError for impossible amounts."""
    for name in ("seconds", "length_seconds", "variations", "queue"):
        if not 0 < getattr(config, name) < float("inf"):
            raise ConfigError(name, got=getattr(config, name), allowed="more than 0")
    check_within(config, "port", 1, 2**16 - 1)
    return Limits(config.length_seconds, config.variations, config.seconds, queue=config.queue)


COMMAND = Command("serve", serve, ServeConfig)
