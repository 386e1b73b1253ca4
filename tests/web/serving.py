"""`musictx serve` as its own process, and what a stranger's program says to it; or only its page, in this process."""

import json
import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryFile
from threading import Thread
from unittest.mock import patch
from urllib.parse import urlsplit

API = "/gradio_api"


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

    def uploads(self):
        """The files that wait to be read."""
        return sorted(self.temporary.glob("musictx-*/uploads/*/*"))

    def end(self, number):
        """The exit status after a signal."""
        self.process.send_signal(number)
        return self.process.wait(30)


@contextmanager
def served(temporary, *settings):
    """The server, which the block ends with Ctrl-C; nothing stays in its temporary folder, and nothing went wrong that
    it would say on stderr."""
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
            yield Served(line.split()[0], process, temporary)
        finally:
            process.kill()  # or leaving the block would wait for ever
        errors.seek(0)
        said = errors.read()
        assert said == "interrupted\n", said
    assert [str(p) for p in temporary.rglob("*")] == []


@contextmanager
def hosted(studio, uploads):
    """The address of a page in this process, whose studio a test can change."""
    import uvicorn  # it comes with gradio, which takes seconds to import

    from musictx.web.gate import LOCAL, Gate
    from musictx.web.page import Page
    from musictx.web.server import Server, application, listen
    from musictx.web.uploads import Uploads

    with listen("127.0.0.1", 0) as door, patch.dict(os.environ, GRADIO_TEMP_DIR=str(uploads)):
        page = Page(studio, "models of a test", Uploads(uploads, studio.limits))
        gate = Gate(application(page), LOCAL, studio.limits.upload_bytes)
        address = f"http://127.0.0.1:{door.getsockname()[1]}/"
        config = uvicorn.Config(gate, ws="none", log_level="warning", timeout_graceful_shutdown=1)
        server = Server(config, page, address)
        thread = Thread(target=server.run, args=([door],))
        thread.start()
        try:
            yield address
        finally:
            server.should_exit = True
            thread.join()


def wish(length_s, variations=1):
    """What the page sends for Continue."""
    return [None, 2.0, "seconds", length_s, 8, 0.0, "chorale", 1.0, 0.95, True, variations, "", "", 0, 0, 127]


class Visitor:
    """A session with an example to continue."""

    def __init__(self, server):
        self.server, self.session = server, uuid.uuid4().hex
        config = json.loads(server.ask("/config")[1])
        self.numbers = {each["api_name"]: each["id"] for each in config["dependencies"]}
        self.all_done(self.join("safely", [None]))

    def join(self, name, data):
        body = {"data": data, "fn_index": self.numbers[name], "session_hash": self.session}
        status, answer = self.server.ask(f"{API}/queue/join", body)
        return status, json.loads(answer).get("event_id")

    def messages(self):
        """What the server says to this session."""
        at = urlsplit(self.server.address)
        connection = HTTPConnection(at.hostname, at.port, timeout=60)
        connection.request("GET", f"{API}/queue/data?session_hash={self.session}")
        answer = connection.getresponse()
        while line := answer.readline():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])

    def done(self, joined, last="process_starts"):
        """The messages of starts and ends, up to a kind."""
        assert joined[0] == 200
        kept = []
        for message in self.messages():
            if message["msg"] in ("process_starts", "process_completed"):
                kept.append(message)
            if message["msg"] == last:
                break
        return kept

    def all_done(self, joined):
        return self.done(joined, "close_stream")


def form(data, name="my tune.mid"):
    head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
    return head.encode() + data + b"\r\n--x--\r\n", {"Content-Type": "multipart/form-data; boundary=x"}


def upload(server, data):
    body, headers = form(data)
    return server.ask(f"{API}/upload?upload_id=1", body, **headers)


def as_input(path):
    return {"path": path, "meta": {"_type": "gradio.FileData"}}
