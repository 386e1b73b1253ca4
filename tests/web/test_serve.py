"""musictx serve before the page is there: what it refuses, and where it listens."""

import socket
import subprocess
import sys

import pytest
from conftest import refused

from musictx.commands import serve as command
from musictx.commands.serve import ServeConfig
from musictx.config.app import settings
from musictx.errors import ConfigError
from musictx.web.gate import answered


def test_a_port_that_is_taken(world, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(["musictx", "serve", f"bundle={world.hymn_bundle}", f"port={port}"], tmp_path)
    assert line.startswith("error: ")
    assert f" 127.0.0.1 port {port}: " in line
    assert " port=" in line


def test_a_plain_install_says_what_to_install():
    script = "import sys; sys.modules |= dict.fromkeys(['gradio', 'starlette', 'uvicorn', 'fastapi'])\n"
    script += "sys.argv = ['musictx', 'serve']; from musictx.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.startswith("error: ")
    assert run.stderr.endswith(": pip install 'musictx[web]'\n")
    assert run.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "change", [{"port": 0}, {"port": 70000}, {"seconds": 0}, {"queue": -1}, {"upload_mb": 1e999}, {"uploads_mb": 0.5}]
)
def test_impossible_amounts(change):
    with pytest.raises(ConfigError, match=f"{next(iter(change))}="):
        command.check(ServeConfig(**change))


@pytest.mark.parametrize("word", ["allowed_hosts=music.example", "allowed_hosts=[music.example]"])
def test_one_host_or_a_list(word):
    given = settings("serve", "host=0.0.0.0", word)
    assert answered(given.host, given.allowed_hosts) == ("music.example",)
