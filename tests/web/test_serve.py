"""musictx serve before the page is there: what it refuses, and where it listens."""

import asyncio
import signal
import socket
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from musictx.commands import serve as command
from musictx.commands.serve import ServeConfig
from musictx.config.app import settings
from musictx.errors import ConfigError, UserError
from musictx.generate.open_bundle import open_bundle
from musictx.model.build import can
from musictx.model.onnx.player import OnnxPlayer, OnnxSourcePlayer
from musictx.model.packaged import BUNDLES, NAMES, is_packaged
from musictx.web.gate import host_names


def test_a_port_that_is_taken():
    server = pytest.importorskip("musictx.web.server", reason="needs the extra web: pip install 'musictx[web]'")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UserError, match=f" 127.0.0.1 port {port}: .* port="):
            server.listen("127.0.0.1", port)


def test_sigterm_ends_as_ctrl_c_does():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as left, command.sigterm_exit():
        signal.raise_signal(signal.SIGTERM)
    assert left.value.code == 143
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_plain_install_says_what_to_install():
    script = "import sys; sys.modules |= dict.fromkeys(['gradio', 'starlette', 'uvicorn', 'fastapi'])\n"
    script += "sys.argv = ['musictx', 'serve']; from musictx.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.startswith("error: ")
    assert run.stderr.endswith(": pip install 'musictx[web]'\n")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "change", [{"port": 0}, {"port": 70000}, {"seconds": 0}, {"queue": -1}, {"length_seconds": 1e999}]
)
def test_impossible_amounts(change):
    with pytest.raises(ConfigError, match=f"{next(iter(change))}="):
        command.check(ServeConfig(**change))


@pytest.mark.parametrize("word", ["allowed_hosts=music.example", "allowed_hosts=[music.example]"])
def test_one_host_or_a_list(word):
    given = settings("serve", "host=0.0.0.0", word)
    assert host_names(given.host, given.allowed_hosts) == ("music.example",)


@pytest.mark.skipif(not all(map(is_packaged, BUNDLES)), reason="built without a model")
@pytest.mark.parametrize(("weights", "onnx"), [("auto", True), ("bfloat16", False)])
def test_onnx_runtime_plays_the_models_inside_musictx_where_it_can(weights, onnx, monkeypatch):
    server = pytest.importorskip("musictx.web.server", reason="needs the extra web: pip install 'musictx[web]'")
    opened: list[Any] = []
    monkeypatch.setattr(server, "run_page", lambda studio, *_: opened.append(studio))
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)  # those of all tests
    monkeypatch.setenv("GRADIO_TEMP_DIR", "")  # put back afterwards
    command.serve(ServeConfig(weights=weights))
    (studio,) = opened
    players = {name: isinstance(each.player, OnnxPlayer) for name, each in studio.playing.items()}
    assert players == dict.fromkeys(NAMES, onnx)
    assert isinstance(studio.harmoniser.player, OnnxSourcePlayer) == onnx
    assert can(studio.melody_model, "voices")  # of PyTorch, whose attention can be read


@pytest.mark.skipif(not all(map(is_packaged, BUNDLES)), reason="built without a model")
def test_a_free_page_has_no_model_whose_weights_may_not_be_sold():
    assert command.page_bundles(None) == ["piano", "chorale", "score", "harmoniser"]
    assert command.page_bundles(None, "free") == ["chorale", "score", "harmoniser"]
    assert command.page_bundles("score", "free") == ["score"]
    with pytest.raises(ConfigError, match="^licence=free: the weights of piano "):
        command.page_bundles("piano", "free")
    with pytest.raises(ConfigError, match="^licence=MIT: "):
        command.page_bundles(None, "MIT")


def test_what_a_page_keeps_for_people_is_bounded(world, tmp_path):
    server = pytest.importorskip("musictx.web.server", reason="needs the extra web: pip install 'musictx[web]'")
    from musictx.web.page import Page
    from musictx.web.studio import Studio
    from musictx.web.uploads import Uploads

    studio = Studio({"hymns": open_bundle(world.hymn_bundle)}, tmp_path)
    kept = server.application(Page(studio, "", Uploads(tmp_path / "sent", studio.limits))).routes[-1].app.state_holder
    for number in range(server.SESSIONS + 3):
        assert kept[str(number)]
    assert len(kept.session_data) == server.SESSIONS
    assert "0" not in kept


def test_a_session_that_is_in_use_is_not_the_first_to_be_forgotten():
    server = pytest.importorskip("musictx.web.server", reason="needs the extra web: pip install 'musictx[web]'")
    kept = server.gradio.queueing.LRUCache(2)

    async def push(body, **_):
        if body.session_hash not in kept:  # as gradio does
            kept[body.session_hash] = "messages"

    ask = server.safe_push(SimpleNamespace(push=push, pending_messages_per_session=kept))
    for name in ("mine", "another", "mine", "third"):
        asyncio.run(ask(SimpleNamespace(session_hash=name)))
    assert list(kept) == ["mine", "third"]
