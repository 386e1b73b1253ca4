"""Hosts, origins and addresses that are host_names, asked of the gate alone."""

import asyncio

import pytest

from musictx.errors import ConfigError
from musictx.web.gate import LOCAL, host_names, listen_address

gate = pytest.importorskip("musictx.web.gate", reason="needs the extra web: pip install 'musictx[web]'")

HERE = host_names("127.0.0.1", [])


def refused(*headers, method="GET", path="/", hosts=HERE):
    """The status; None for a request that passes. Without `headers` it names this machine."""
    raw = [(name.encode(), value.encode("latin-1")) for name, value in headers or [("host", "localhost:7860")]]
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    answer = gate.Gate(None, hosts, 1000).refusal(scope)
    return answer and answer[0]


HOST = ("host", "localhost")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7860", "127.0.0.1:1", "127.0.0.1:65535", "[::1]", "[::1]:80"])
def test_this_machine_is_answered_at_any_port(host):
    assert refused(("host", host)) is None
    assert refused(HOST, ("origin", f"http://{host}")) is None


BAD_HOSTS = ["evil.example", "localhost.evil.example", "evil.example:7860", "localhost.", "localhost:", "localhost:0"]
BAD_HOSTS += ["localhost:65536", "localhost:x", "localhost:80:80", "a@localhost", "localhost/", " localhost", "::1"]
BAD_HOSTS += ["127.0.0.2", "127.1", "2130706433", "0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "", "null", "locälhost"]
BAD_HOSTS += ["localhost,evil.example", "localhost evil.example", "localhost:٣"]


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_another_host_is_not(host):
    host = host.encode().decode("latin-1")
    assert refused(("host", host)) == 421
    assert refused(HOST, ("origin", f"http://{host}")) == 421


def test_one_host_and_one_origin():
    for strange in ("null", "", "localhost", "file://localhost", "ftp://localhost", "http://localhost/x"):
        assert refused(HOST, ("origin", strange)) == 421, strange
    origin = ("origin", "http://localhost")
    for headers in ([origin], [HOST, HOST], [HOST, ("host", "evil.example")], [HOST, origin, origin]):
        assert refused(*headers) == 421, headers


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/gradio_api/file=http://example.org/x"),
        ("GET", "/gradio_api/file=HTTP://example.org/x"),
        ("GET", "/gradio_api/proxy=https://x.hf.space/"),
        ("GET", "/gradio_api//queue/data"),
        ("GET", "/gradio_api/run/go_on"),
        ("GET", "/docs"),
        ("POST", "/"),
        ("POST", "/gradio_api/queue/join/"),
        ("POST", "/gradio_api/heartbeat/x"),
        ("OPTIONS", "/gradio_api/queue/join"),
        ("DELETE", "/"),
    ],
)
def test_what_the_page_does_not_need_is_not_there(method, path):
    assert refused(method=method, path=path) == 404


def test_a_post_says_its_length_once():
    def post(path, *lengths, more=()):
        headers = HOST, *(("content-length", each) for each in lengths), *more
        return refused(*headers, method="POST", path=path)

    upload, join, chunked = "/gradio_api/upload", "/gradio_api/queue/join", ("transfer-encoding", "chunked")
    assert post(upload, str(1000 + gate.FORM_BYTES)) is None
    assert post(upload, str(1001 + gate.FORM_BYTES)) == post(join, str(gate.JOIN_BYTES + 1)) == 413
    for lengths in ([], ["-1"], ["٣"], ["9" * 5000], ["100", "100"]):
        assert post(join, *(each.encode().decode("latin-1") for each in lengths)) == 411, lengths
    assert post(upload, "100", more=[chunked]) == post(join, more=[chunked]) == refused(HOST, chunked) == 411


def heard(app):
    """What a request to the gate is host_names, in front of an application."""
    sent, bodies = [], iter([b"x" * 6000, b"y" * 6000, b"z" * 6000])
    headers = [(b"host", b"localhost"), (b"content-length", b"5")]
    scope = {"type": "http", "method": "POST", "path": "/gradio_api/upload", "headers": headers}

    async def receive():
        return {"type": "http.request", "body": next(bodies), "more_body": True}

    async def send(message):
        sent.append(message)

    asyncio.run(gate.Gate(app, HERE, 1000)(scope, receive, send))
    return sent


def test_more_than_is_allowed_does_not_arrive_whatever_its_length_says():
    arrived = []

    async def app(scope, receive, send):
        while (message := await receive())["type"] == "http.request":
            arrived.append(len(message["body"]))

    heard(app)
    assert arrived == [6000]
    assert gate.FORM_BYTES + 1000 < 12000


async def fails(scope, receive, send):
    raise ValueError("what a stranger sent")


async def says_so(scope, receive, send):  # a library's own word of an error
    await send({"type": "http.response.start", "status": 500, "headers": []})
    await send({"type": "http.response.body", "body": b"Internal Server Error"})


@pytest.mark.parametrize("app", [fails, says_so])
def test_an_error_is_a_line_without_what_a_stranger_sent(app, capsys):
    first, body = heard(app)
    assert (first["status"], body["body"]) == (400, b"this request does not come from the page\n")
    said = capsys.readouterr().err
    assert (said.startswith("a request failed: ValueError, test_gate.py:"), said.count("\n")) == (app is fails,) * 2


def test_elsewhere_only_the_hosts_that_a_person_allows():
    hosts = host_names("0.0.0.0", ["Music.Example.org", "2001:DB8::0:1"])
    assert hosts == ("music.example.org", "[2001:db8::1]")
    theirs = ("host", "music.example.org:443"), ("origin", "https://music.example.org")
    assert refused(*theirs, hosts=hosts) is None
    assert refused(HOST, hosts=hosts) == 421
    assert host_names("::1", ["proxy.example"]) == ("[::1]", *LOCAL, "proxy.example")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5", "127.0.0.2"])
def test_elsewhere_they_are_required(address):
    with pytest.raises(ConfigError, match=f"^host={address}: .* allowed_hosts="):
        host_names(address, [])


@pytest.mark.parametrize(
    "name", ["*", "http://music.example", "music.example:80", "", "a b", "x.", "[music]", "*.x.org"]
)
def test_a_host_is_a_name(name):
    with pytest.raises(ConfigError) as caught:
        host_names("0.0.0.0", [name])
    assert (caught.value.field, caught.value.got) == ("allowed_hosts", name)


def test_no_name_is_looked_up():
    assert listen_address("localhost") == "127.0.0.1"
    assert listen_address("[::1]") == listen_address("::1") == "::1"
    for name in ("music.example.org", "", "127.0.0.1:80", "*"):
        with pytest.raises(ConfigError) as caught:
            listen_address(name)
        assert (caught.value.field, caught.value.got) == ("host", name)
