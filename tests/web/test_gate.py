"""Hosts, origins and addresses that are answered, asked of the gate alone."""

import asyncio

import pytest

from musictx.errors import ConfigError
from musictx.web import gate
from musictx.web.gate import LOCAL, answered, listening

HERE = answered("127.0.0.1", [])


async def fails(*_):
    raise ValueError("what a stranger sent")


def refused(method="GET", path="/", hosts=HERE, **headers):
    """The status of a refusal, or None; several values make several headers."""
    named = {"host": "localhost:7860"} | {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [
        (name, each) for name, values in named.items() for each in ([values] if isinstance(values, str) else values)
    ]
    raw = [(name.encode(), value.encode("latin-1")) for name, value in pairs]
    scope = {"type": "http", "method": method, "path": path, "headers": raw}
    answer = gate.Gate(fails, hosts, 1000).refused(scope)
    return answer and answer[0]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:7860", "127.0.0.1:1", "[::1]", "[::1]:7860"])
def test_this_machine_is_answered_at_any_port(host):
    assert refused(host=host) is None
    assert refused(origin=f"http://{host}") is None


BAD_HOSTS = ["evil.example", "localhost.evil.example", "evil.example:7860", "localhost.", "localhost:", "localhost:x"]
BAD_HOSTS += ["localhost:80:80", "a@localhost", "localhost/", " localhost", "::1", "127.0.0.2", "127.1", "2130706433"]
BAD_HOSTS += ["0.0.0.0", "[::]", "[::ffff:127.0.0.1]", "", "null", "locälhost", "localhost,evil.example", "localhost:٣"]


@pytest.mark.parametrize("host", BAD_HOSTS)
def test_another_host_is_not(host):
    host = host.encode().decode("latin-1")
    assert refused(host=host) == 421
    assert refused(origin=f"http://{host}") == 421


@pytest.mark.parametrize(
    "origin", ["null", "", "localhost", "file://localhost", "ftp://localhost", "http://localhost/x"]
)
def test_another_origin_is_not(origin):
    assert refused(origin=origin) == 421


def test_one_host_and_one_origin():
    for hosts in ([], ["localhost"] * 2, ["localhost", "evil.example"]):
        assert refused(host=hosts) == 421
    assert refused(origin=["http://localhost"] * 2) == 421


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
    assert refused(method, path) == 404


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("upload", {"content_length": "1000"}, None),
        ("upload", {"content_length": str(1000 + gate.FORM_BYTES)}, None),
        ("upload", {"content_length": str(1001 + gate.FORM_BYTES)}, 413),
        ("queue/join", {"content_length": str(gate.JOIN_BYTES + 1)}, 413),
        ("queue/join", {}, 411),
        ("queue/join", {"content_length": "-1"}, 411),
        ("queue/join", {"content_length": "9" * 5000}, 411),
        ("queue/join", {"transfer_encoding": "chunked"}, 411),
        ("upload", {"content_length": "100", "transfer_encoding": "chunked"}, 411),
        ("upload", {"content_length": ["100", "100"]}, 411),
    ],
)
def test_a_post_says_once_how_long_it_is(path, headers, status):
    assert refused("POST", f"/gradio_api/{path}", **headers) == status


def test_an_error_is_a_line_without_what_a_stranger_sent(capsys):
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    for _ in range(2):  # once for each place
        asyncio.run(gate.Gate(fails, HERE, 1000)(scope, fails, fails))
    said = capsys.readouterr().err
    assert said.startswith("a request failed: ValueError, test_gate.py:")
    assert said.count("\n") == 1


def test_elsewhere_only_the_hosts_that_a_person_allows():
    hosts = answered("0.0.0.0", ["Music.Example.org", "2001:DB8::0:1"])
    assert hosts == ("music.example.org", "[2001:db8::1]")
    assert refused(host="music.example.org:443", origin="https://music.example.org", hosts=hosts) is None
    assert refused(host="localhost", hosts=hosts) == 421
    assert answered("::1", ["proxy.example"]) == ("[::1]", *LOCAL, "proxy.example")


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.168.1.5", "127.0.0.2"])
def test_elsewhere_they_are_required(address):
    with pytest.raises(ConfigError, match=f"^host={address}: .* allowed_hosts="):
        answered(address, [])


@pytest.mark.parametrize(
    "name", ["*", "http://music.example", "music.example:80", "", "a b", "x.", "[music]", "*.x.org"]
)
def test_a_host_is_a_name(name):
    with pytest.raises(ConfigError) as caught:
        answered("0.0.0.0", [name])
    assert (caught.value.field, caught.value.got) == ("allowed_hosts", name)


def test_no_name_is_looked_up():
    assert listening("localhost") == "127.0.0.1"
    assert listening("[::1]") == listening("::1") == "::1"
    for name in ("music.example.org", "", "127.0.0.1:80", "*"):
        with pytest.raises(ConfigError) as caught:
            listening(name)
        assert (caught.value.field, caught.value.got) == ("host", name)
