"""`musictx serve` as its own process, and what a stranger's program says to it."""

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile


@dataclass(frozen=True)
class Served:
    address: str
    process: subprocess.Popen[str]
    temporary: Path

    def ask(self, path, data=None, **headers):
        """Status and body. `data`: bytes, or what becomes JSON."""
        if data is not None and not isinstance(data, bytes):
            data, headers = json.dumps(data).encode(), {"Content-Type": "application/json"} | headers
        request = urllib.request.Request(self.address.rstrip("/") + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def end(self, number):
        """The exit status after a signal."""
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def served(temporary, *settings):
    """The server, ended by the block or by Ctrl-C after it; nothing stays in its temporary folder, and nothing went
    wrong that it would say on stderr."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "musictx", "serve", f"port={port}", *settings]
    there = os.environ | {"TMPDIR": str(temporary)}
    with (
        TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=there) as process,
    ):
        assert process.stdout is not None
        try:
            while ": trained on " in (line := process.stdout.readline()) or line.startswith("weights: "):  # the models
                pass
            assert line == f"http://127.0.0.1:{port}/ continues music until Ctrl-C\n"
            server = Served(line.split()[0], process, temporary)
            yield server
            if process.poll() is None:
                assert server.end(signal.SIGINT) == 130
        finally:
            process.kill()  # or leaving the block would wait for ever
        errors.seek(0)
        assert errors.read() in ("interrupted\n", "stopped by SIGTERM\n")
    assert [str(p) for p in temporary.rglob("*")] == []
