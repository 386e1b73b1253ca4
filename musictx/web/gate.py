"""Lets in only requests of our own hosts and pages, to the few addresses that the page needs.

Gradio answers many more. Some run a handler at once, past its queue (/run, /api, /component_server), some free a place
in the queue while the handler still runs (/cancel), some fetch addresses for whoever asks (/file=http…, /proxy=).

Also says where the page listens, and under which names it answers: it never looks a name up.
"""

import re
from collections.abc import Iterable
from ipaddress import ip_address

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from musictx.errors import ConfigError

API = "/gradio_api"
UPLOAD, PROGRESS, JOIN = f"{API}/upload", f"{API}/upload_progress", f"{API}/queue/join"
SEEN = {"/", "/config", "/theme.css", "/favicon.ico", f"{API}/app_id", f"{API}/queue/data", PROGRESS}
BELOW = ("/assets/", "/static/", f"{API}/heartbeat/", f"{API}/file=/")
JOIN_BYTES = 2**18  # a long phrase of the keyboard is half of it
FORM_BYTES = 2**13  # around a file


class Gate:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], upload_bytes: int) -> None:
        self.app, self.hosts = app, hosts
        self.posts = {UPLOAD: upload_bytes + FORM_BYTES, JOIN: JOIN_BYTES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = self.refused(scope) if scope["type"] != "lifespan" else None
        if refused is None:
            await self.app(scope, receive, send)
            return
        status, why = refused
        # the rest of the body is not read: the connection closes
        answer = PlainTextResponse(f"{why}\n", status, headers={"Connection": "close"})
        await answer(scope, receive, send)

    def refused(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason; None for a request that may pass."""
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if len(named) != 1 or host_of(named[0]) not in self.hosts:
            return 421, "no page of this name is here; allowed_hosts= of musictx serve sets the names"
        if len(origins) > 1 or any(origin_host(origin) not in self.hosts for origin in origins):
            return 421, "another site's page may not use this one"
        method, path = scope["method"], scope["path"]
        if method in ("GET", "HEAD") and (path in SEEN or path.startswith(BELOW)):
            return None
        if method != "POST" or path not in self.posts:
            return 404, "there is no such address; only the page's queue reaches the model"
        length = dict(scope["headers"]).get(b"content-length", b"")
        if not length.isdigit() or len(length) > 20:
            return 411, "the request does not say how long it is: send Content-Length"
        if int(length) > self.posts[path]:
            return 413, f"{int(length)} bytes exceed the maximum allowed size: {self.posts[path]} bytes are taken"
        return None


LOCAL = ("localhost", "127.0.0.1", "[::1]")  # names of this machine in its own browsers
NAME = r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"
HOST = re.compile(rf"({NAME})(?::([0-9]{{1,5}}))?", re.ASCII | re.IGNORECASE)
ORIGIN = re.compile(rf"https?://({NAME})(?::([0-9]{{1,5}}))?", re.ASCII | re.IGNORECASE)


def listening(host: str) -> str:
    """The address to listen at. Raises ConfigError for names other than localhost, since they would need a look-up."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ip_address(host.removeprefix("[").removesuffix("]")))
    except ValueError:
        raise ConfigError(
            f"⟨host⟩={host}: give an address, such as 127.0.0.1, ::1 or 0.0.0.0; names are not looked up"
        ) from None


def answered(address: str, allowed: str | Iterable[object] | None) -> tuple[str, ...]:
    """The hosts that requests may name; the first is the one to tell people. On loopback these are this machine's own
    names; elsewhere other machines reach the page, so a person must give the names that they use. Raises
    ConfigError."""
    names = tuple(_plain(str(name)) for name in ([allowed] if isinstance(allowed, str) else allowed or ()))
    own = _plain(address)
    if own in LOCAL:
        return (own, *LOCAL, *names)
    if not names:
        raise ConfigError(
            f"other machines can reach ⟨host⟩={address}: give ⟨allowed_hosts⟩=, the names or addresses that people "
            "type, such as ⟨allowed_hosts⟩=[music.example.org,192.168.1.5]"
        )
    return names


def _plain(name: str) -> str:
    """A name or an address as a browser writes it."""
    try:
        address = ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        if re.fullmatch(NAME, name, re.ASCII | re.IGNORECASE) and not name.startswith("["):
            return name.lower()
        raise ConfigError(
            f"⟨allowed_hosts⟩={name!r}: give names or addresses, without http:// and without a port, such as "
            "music.example.org or 192.168.1.5"
        ) from None
    return f"[{address}]" if address.version == 6 else str(address)


def host_of(header: str) -> str | None:
    """The host that a Host header names; None if it names none, or an impossible port."""
    return _host(HOST.fullmatch(header))


def origin_host(header: str) -> str | None:
    """The host of the page that sent a request, by its Origin header; None for `null` and anything else."""
    return _host(ORIGIN.fullmatch(header))


def _host(match: re.Match[str] | None) -> str | None:
    if match is None or (match[2] and not 0 < int(match[2]) < 2**16):
        return None
    return match[1].lower()
