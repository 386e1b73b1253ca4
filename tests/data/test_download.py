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
    """Serves CONTENT from where a Range asks; /breaks stops half-way the first time; /old knows no Range."""

    asked: ClassVar[list[tuple[str, int]]] = []

    def do_GET(self):
        start = int(self.headers.get("Range", "bytes=0-")[6:-1])
        self.asked.append((self.path, start))
        if self.path == "/none.zip":
            self.send_error(404)
            return
        if start >= len(CONTENT):
            self.send_error(416)
            return
        start = 0 if self.path == "/old.zip" else start
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(CONTENT) - start))
        self.end_headers()
        stop = len(CONTENT) // 2 if self.path == "/breaks.zip" and not start else len(CONTENT)
        self.wfile.write(CONTENT[start:stop])

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


def test_a_file_is_fetched_once(server, tmp_path):
    for _ in range(2):
        path = fetch(Download(f"{server}/a.zip", SHA), tmp_path / "new")
        assert path == tmp_path / "new" / "a.zip"
        assert path.read_bytes() == CONTENT
    assert Handler.asked == [("/a.zip", 0)]
    assert [p.name for p in path.parent.iterdir()] == ["a.zip"]


def test_a_broken_transfer_continues_where_it_stopped(server, tmp_path):
    download = Download(f"{server}/breaks.zip", SHA)
    with pytest.raises(StoreError, match=r"broke off"):
        fetch(download, tmp_path)
    assert (tmp_path / "breaks.zip.part").stat().st_size == len(CONTENT) // 2
    assert fetch(download, tmp_path).read_bytes() == CONTENT
    assert Handler.asked == [("/breaks.zip", 0), ("/breaks.zip", len(CONTENT) // 2)]


@pytest.mark.parametrize(("name", "part"), [("old.zip", b"something else"), ("a.zip", CONTENT)])
def test_a_server_that_cannot_resume_sends_all_and_a_whole_part_is_taken(server, tmp_path, name, part):
    (tmp_path / f"{name}.part").write_bytes(part)
    assert fetch(Download(f"{server}/{name}", SHA), tmp_path).read_bytes() == CONTENT


def test_another_file_than_promised_is_thrown_away(server, tmp_path):
    with pytest.raises(StoreError, match=rf"\(SHA-256 {SHA[:16]}…, not 0{{16}}…\)"):
        fetch(Download(f"{server}/a.zip", "0" * 64), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_file_and_no_network(server, tmp_path):
    with pytest.raises(StoreError, match=r"none.zip .*\(Not Found\)"):
        fetch(Download(f"{server}/none.zip", None), tmp_path)
    with pytest.raises(StoreError, match=r"\(.*refused.*\)"):
        fetch(Download("http://127.0.0.1:9/a.zip", None), tmp_path)
