"""The server against programs that know its addresses: many requests at once, none of them the page's."""

import http.client
import json
import os
import signal
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest
from serving import served

WEB = find_spec("gradio")  # which takes seconds to import, and the server is its own process
pytestmark = pytest.mark.skipif(WEB is None, reason="needs the extra web: pip install 'musictx[web]'")

API = "/gradio_api"
QUEUE = 8
LONG, SHORT = 60.0, 3.0  # seconds of new music


def wish(length_s, variations=1):
    return [None, 2.0, length_s, 0.0, "model", 1.0, 0.95, variations, "", "", 0, 0, 127]


@pytest.fixture(scope="module")
def server(world, tmp_path_factory):
    settings = ["upload_mb=0.01", "uploads_mb=0.05", f"queue={QUEUE}", f"bundle={world.hymn_bundle}"]
    with served(tmp_path_factory.mktemp("server"), *settings) as server:
        yield server
        with_music = Visitor(server)
        assert with_music.done(with_music.join("go_on", wish(LONG, 4)))[0]["msg"] == "process_starts"
        assert server.end(signal.SIGTERM) == 143  # while the model works


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
        connection = http.client.HTTPConnection(at.hostname, at.port, timeout=60)
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


def at_once(function, things):
    with ThreadPoolExecutor(len(things)) as pool:
        return list(pool.map(function, things))


def made(server):
    return sorted(server.temporary.glob("musictx-*/made/*/*.wav"))


def test_nothing_goes_past_the_queue(server):
    visitor = Visitor(server)
    before = made(server)
    body = {"data": wish(SHORT), "fn_index": visitor.numbers["go_on"], "session_hash": visitor.session}
    for address in ("run/go_on", "api/go_on", "call/go_on", "call/v2/go_on", "component_server", "cancel"):
        status, text = server.ask(f"{API}/{address}", body)
        assert (status, text.partition(";")[0]) == (404, "there is no such address")
    assert made(server) == before


def test_the_model_works_on_one_request_at_a_time(server):
    visitor = Visitor(server)
    joined = at_once(lambda _: visitor.join("go_on", wish(SHORT)), range(6))
    assert [status for status, _ in joined] == [200] * 6
    said = visitor.all_done(joined[0])
    assert [each["msg"] for each in said] == ["process_starts", "process_completed"] * 6
    assert all(each["success"] for each in said[1::2])
    assert {each["event_id"] for each in said} == {event for _, event in joined}


def test_no_more_wait_than_the_queue_holds(server):
    visitors = [Visitor(server) for _ in range(3)]
    joined = at_once(lambda k: visitors[k % 3].join("go_on", wish(LONG, 4)), range(3 * QUEUE))
    statuses = [status for status, _ in joined]
    assert set(statuses) == {200, 503}
    for visitor in visitors:  # a person who leaves gives up the place
        next(visitor.messages())


def form(data, name="my tune.mid"):
    head = f'--x\r\nContent-Disposition: form-data; name="files"; filename="{name}"\r\n\r\n'
    return head.encode() + data + b"\r\n--x--\r\n", {"Content-Type": "multipart/form-data; boundary=x"}


def upload(server, data, name="my tune.mid"):
    body, headers = form(data, name)
    return server.ask(f"{API}/upload?upload_id=1", body, **headers)


def held(server):
    return sorted(server.temporary.glob("musictx-*/uploads/*/*"))


def as_input(path):
    return {"path": path, "meta": {"_type": "gradio.FileData"}}


def test_files_are_bounded_in_sum_and_gone_when_they_are_read(server, world):
    visitor = Visitor(server)
    answers = at_once(lambda _: upload(server, bytes(9000), "<b>tune.mid"), range(12))
    assert {status for status, _ in answers} == {200, 503}
    assert all("too many files" in text for status, text in answers if status == 503)
    paths = [json.loads(text)[0] for status, text in answers if status == 200]
    assert len(set(paths)) == len(paths) == len(held(server)) < 0.05 * 2**20 / 9000
    for path in paths:
        said = visitor.all_done(visitor.join("upload", [None, as_input(path)]))
        assert "&lt;b&gt;tune.mid: not a MIDI file" in json.dumps(said[-1]["output"])
    assert held(server) == []
    tune = as_input(json.loads(upload(server, world.hymn.read_bytes())[1])[0])
    for what in ("my tune: ", "my tune.mid: it waited"):  # what is read is gone
        assert what in json.dumps(visitor.all_done(visitor.join("upload", [None, tune]))[-1]["output"])
    assert held(server) == []


def test_a_file_whose_page_is_gone_goes_too(server):
    assert upload(server, b"nobody asks for this")[0] == 200
    folder = held(server)[0].parent
    os.utime(folder, (0, 0))  # long ago
    until = time.monotonic() + 20
    while folder.exists() and time.monotonic() < until:
        time.sleep(0.1)
    assert not folder.exists()


def test_a_body_is_bounded(server):
    assert upload(server, bytes(20_000))[0] == 413
    assert server.ask(f"{API}/queue/join", {"data": ["x" * 2**18]})[0] == 413
    body, headers = form(b"one")
    status, text = server.ask(f"{API}/upload", b"--x--", **headers)
    assert (status, "no file" in text) == (400, True)
    assert server.ask(f"{API}/upload", body[:-7] + body, **headers)[0] == 400  # two files
    assert server.ask(f"{API}/upload", b"{}", **{"Content-Type": "application/json"})[0] == 400
    assert held(server) == []


def test_an_action_that_the_page_lacks_or_a_long_name_is_refused(server):
    lacks = "no such action"
    for number, session, why in ((-1, "x", lacks), (9999, "x", lacks), (0, "x" * 65, "at most 64 letters")):
        asked = {"fn_index": number, "data": [None], "session_hash": session}
        status, text = server.ask(f"{API}/queue/join", asked)
        assert (status, why in json.loads(text)["detail"]) == (400, True)


def test_a_file_is_neither_fetched_nor_read_elsewhere(server):
    visitor = Visitor(server)
    folder = next(server.temporary.glob("musictx-*/uploads"))
    for path in ("http://example.invalid/x.mid", "/etc/hostname", "x.mid", "\0", f"{folder}/x.mid"):
        for name, data in (("upload", [None, as_input(path)]), ("go_on", [None, as_input(path), *wish(SHORT)[2:]])):
            said = visitor.all_done(visitor.join(name, data))
            assert said[-1]["success"] is False
            assert said[-1]["output"]["error"].startswith("this is no file ")


def test_another_site_gets_421(server):
    for site in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        assert server.ask(f"{API}/queue/join", {}, **site)[0] == 421
