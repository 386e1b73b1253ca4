import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from musictx.data.source import Download, fetch
from musictx.errors import StoreError

CONTENT = bytes(range(256)) * 4000
SHA = sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Serves CONTENT; /breaks.zip stops half-way the first time."""

    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.path)
        if self.path == "/none.zip":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        half = self.asked == ["/breaks.zip"]
        self.wfile.write(CONTENT[: len(CONTENT) // 2] if half else CONTENT)

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    Handler.asked.clear()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True).start()  # seconds until it sees its end
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    httpd.server_close()


def test_a_file_is_fetched_once_and_a_broken_transfer_leaves_nothing(server, tmp_path):
    download = Download(f"{server}/breaks.zip", SHA)
    with pytest.raises(StoreError, match=r"broke off"):
        fetch(download, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
    for _ in range(2):
        assert fetch(download, tmp_path / "new").read_bytes() == CONTENT
    assert Handler.asked == ["/breaks.zip"] * 2
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["breaks.zip"]


@pytest.mark.parametrize(
    ("name", "digest", "said"),
    [
        ("a.zip", "0" * 64, rf"\(SHA-256 {SHA[:16]}…, not 0{{16}}…\)"),
        ("none.zip", None, r"none.zip .*\(Not Found\)"),
    ],
)
def test_another_file_than_promised_and_none(server, tmp_path, name, digest, said):
    with pytest.raises(StoreError, match=said):
        fetch(Download(f"{server}/{name}", digest), tmp_path)
    assert list(tmp_path.iterdir()) == []
