"""Files that pages sent, the work that the end waits for, and files that were made: each is bounded and goes."""

import asyncio
import os
import time
from threading import Event, Thread

import pytest

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.web import stage
from musictx.web.studio import Work

uploads = pytest.importorskip("musictx.web.uploads", reason="needs the extra web: pip install 'musictx[web]'")
Request = uploads.Request


def aged(place, by_s):
    then = time.time() - by_s
    os.utime(place, (then, then))


def test_a_file_that_no_page_takes_is_forgotten(tmp_path):
    kept = uploads.Uploads(tmp_path / "uploads", Limits())
    old, new = (kept._keep("a.mid", b"123") for _ in range(2))
    aged(old.parent, uploads.UNTAKEN_S + 1)
    kept.forget(uploads.UNTAKEN_S)
    assert (kept.take(old), kept.take(new), kept.take(new)) == (None, b"123", None)
    assert list(kept.folder.iterdir()) == []


@pytest.mark.parametrize("gone", [True, False])
def test_a_file_that_does_not_come_gives_up_its_room(tmp_path, monkeypatch, gone):
    monkeypatch.setattr(uploads, "ARRIVE_S", 0.01)
    kept = uploads.Uploads(tmp_path / "uploads", Limits())

    async def receive():
        if not gone:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    headers = [(b"content-length", b"1000"), (b"content-type", b"multipart/form-data; boundary=x")]
    scope = {"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}
    answer = asyncio.run(kept.receive(Request(scope, receive)))
    assert (answer.status_code, kept.arriving) == (408, 0)


def test_only_uploads_are_taken(tmp_path):
    kept = uploads.Uploads(tmp_path / "uploads", Limits())
    kept._keep("a.mid", b"123")
    for path in (tmp_path / "a.mid", kept.folder / "a.mid", kept.folder / "x" / "y" / "a.mid"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"not an upload")
        assert kept.take(path) is None
        assert path.exists()


def test_a_small_file_counts_for_its_place_too(tmp_path):
    kept = uploads.Uploads(tmp_path / "uploads", Limits())
    kept._keep("a.mid", b"1")
    assert kept.held() == 1 + 4096


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Für Elise.mid", "Für Elise.mid"),
        ("../../x.mid", "x.mid"),
        ("a\\b\0.mid", "a b .mid"),
        ("..", "music.mid"),
        ("", "music.mid"),
    ],
)
def test_a_name_stays_in_its_folder(given, name):
    assert uploads.plain_file_name(given) == name


def test_a_long_name_keeps_its_end(tmp_path):
    kept = uploads.Uploads(tmp_path / "uploads", Limits())
    path = kept._keep("ü" * 500 + ".mid", b"")
    assert path.is_file()
    assert path.suffix == ".mid"


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

    threads = [Thread(target=act), Thread(target=end)]
    threads[0].start()
    begun.wait()
    threads[1].start()
    while not work.ending:
        pass
    go.set()
    for thread in threads:
        thread.join()
    assert order == ["acted", "ended"]
    with pytest.raises(UserError, match="the server ends"), work.action():
        pass


def test_what_was_made_is_bounded_in_sum(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "KEEP_BYTES", 250)
    places = [stage.new_place(tmp_path) for _ in range(3)]
    for age_s, place in enumerate(reversed(places)):
        (place / "a.wav").write_bytes(bytes(100))
        aged(place, age_s)
    newest = stage.new_place(tmp_path)
    assert set(tmp_path.iterdir()) == {places[1], places[2], newest}
