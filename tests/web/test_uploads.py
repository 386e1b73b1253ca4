"""Files that pages sent, the work that the end waits for, and files that were made: each is bounded and goes."""

import asyncio
import os
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from serving import form

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.web import stage
from musictx.web.studio import Work

uploads = pytest.importorskip("musictx.web.uploads", reason="needs the extra web: pip install 'musictx[web]'")
Request = uploads.Request


def receive(kept, messages):
    """The status that a form's file gets; it comes in `messages`, or never."""

    async def come():
        return next(messages, None) or await asyncio.Event().wait()

    headers = [(b"content-length", b"1000"), (b"content-type", b"multipart/form-data; boundary=x")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
    return asyncio.run(kept.receive(Request(scope, come))).status_code


@pytest.mark.parametrize("messages", [[], [{"type": "http.disconnect"}]])
def test_a_file_that_does_not_come_gives_up_its_room(tmp_path, monkeypatch, messages):
    monkeypatch.setattr(uploads, "ARRIVE_S", 0.01)
    kept = uploads.Uploads(tmp_path / "uploads", Limits())
    assert (receive(kept, iter(messages)), kept.arriving) == (408, 0)


def test_files_are_bounded_in_sum(tmp_path):
    kept = uploads.Uploads(tmp_path / "uploads", Limits(uploads_bytes=10_000))
    body = {"type": "http.request", "body": form(bytes(900))[0], "more_body": False}
    assert [receive(kept, iter([body])) for _ in range(4)] == [200, 200, 503, 503]  # each takes 4096 bytes more
    assert kept.arriving == 0


def test_only_uploads_are_taken_and_only_once(tmp_path):
    kept = uploads.Uploads(tmp_path / "uploads", Limits())
    sent = kept.keep("a.mid", b"123")
    assert kept.n_bytes() == 3 + 4096  # a small file counts for its place too
    assert (kept.take(sent), kept.take(sent)) == (b"123", None)
    for path in (tmp_path / "a.mid", kept.folder / "a.mid", kept.folder / "x" / "y" / "a.mid"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"not an upload")
        assert kept.take(path) is None
        assert path.exists()


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Für Elise.mid", "Für Elise.mid"),
        ("../../x.mid", "x.mid"),
        ("a\\b\0.mid", "b .mid"),
        ("<b>$a$.mid", "b a .mid"),
        ("..", "music.mid"),
        ("", "music.mid"),
        ("ü" * 500 + ".mid", "ü" * 40 + ".mid"),
    ],
)
def test_a_name_does_no_harm_and_stays_in_its_folder(tmp_path, given, name):
    kept = uploads.Uploads(tmp_path / "uploads", Limits())
    path = kept.keep(given, b"")
    assert path.is_file()
    assert path.relative_to(kept.folder).parts[1:] == (name,)


def test_the_end_waits_for_what_is_under_way():
    work, begun, go, order = Work(), Event(), Event(), []

    def act():
        with work.action():
            begun.set()
            go.wait()
            order.append("acted")

    def end():
        work.end()
        order.append("ended")

    with ThreadPoolExecutor(2) as pool:
        pool.submit(act)
        begun.wait()
        pool.submit(end)
        while not work.ending:
            time.sleep(0.001)
        go.set()
    assert order == ["acted", "ended"]
    with pytest.raises(UserError, match="the server ends"), work.action():
        pass


def test_what_was_made_is_bounded_in_sum(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "KEEP_BYTES", 250)
    places = [stage.new_place(tmp_path, name) for name in "abc"]
    for age_s, place in enumerate(reversed(places)):
        (place / "a.wav").write_bytes(bytes(100))
        os.utime(place, (time.time() - age_s,) * 2)
    newest = stage.new_place(tmp_path, "d")
    assert set(tmp_path.iterdir()) == {places[1], places[2], newest}
