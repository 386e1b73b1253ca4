"""The gate of the page: only its own hosts, and the addresses that it needs.

Gradio answers many more. Some run a handler at once, past its queue (/run, /api, /component_server), or free a place in
the queue while the handler runs (/cancel). Others fetch addresses for anybody (/file=http…, /proxy=)."""

import re
import sys
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from traceback import extract_tb

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from musictx.errors import ConfigError
from musictx.terminal import say

API = "/gradio_api"
UPLOAD, PROGRESS, JOIN = f"{API}/upload", f"{API}/upload_progress", f"{API}/queue/join"
GET_PATHS = {"/", "/config", "/theme.css", "/favicon.ico", f"{API}/app_id", f"{API}/queue/data", PROGRESS}
BELOW = ("/assets/", "/static/", f"{API}/heartbeat/", f"{API}/file=/")
JOIN_BYTES = 2**18  # a long phrase of the keyboard is half of it
FORM_BYTES = 2**13  # around a file


class Gate:
    """An ASGI application in front of another one."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], upload_bytes: int) -> None:
        self.app, self.hosts = app, hosts
        self.posts = {UPLOAD: upload_bytes + FORM_BYTES, JOIN: JOIN_BYTES}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        refusal, has_begun, has_failed = self.refusal(scope), False, False

        async def watch(message: Message) -> None:
            nonlocal has_begun, has_failed
            has_failed = has_failed or message.get("status") == 500
            if not has_failed:
                has_begun = True
                await send(message)

        if refusal is None:
            try:
                await self.app(scope, at_most(self.posts.get(scope["path"], 0), receive), watch)
            except Exception:  # a request that the libraries do not expect
                has_failed = True
                say_failure()
            if has_begun or not has_failed:
                return
            refusal = 400, "this request does not come from the page"
        status, why = refusal
        # the rest of the body is not read: the connection closes
        answer = PlainTextResponse(f"{why}\n", status, headers={"Connection": "close"})
        await answer(scope, receive, send)

    def refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason; None for a request that may pass."""
        headers = Headers(scope=scope)
        hosts, origins, lengths = map(headers.getlist, ("host", "origin", "content-length"))
        if len(hosts) != 1 or host_of(hosts[0]) not in self.hosts:
            return 421, "no page of this name is here; allowed_hosts= of musictx serve sets the names"
        if len(origins) > 1 or any(host_of(origin, "https?://") not in self.hosts for origin in origins):
            return 421, "another site's page may not use this one"
        if "transfer-encoding" in headers or len(lengths) > 1:
            return 411, "the request does not say once how long it is: send Content-Length, and no Transfer-Encoding"
        method, path = scope["method"], scope["path"]
        if method in ("GET", "HEAD") and (path in GET_PATHS or path.startswith(BELOW)):
            return None
        if method != "POST" or path not in self.posts:
            return 404, "there is no such address; only the page's queue reaches the model"
        if not lengths or not re.fullmatch("[0-9]{1,20}", lengths[0]):
            return 411, "the request does not say how long it is: send Content-Length"
        if (length := int(lengths[0])) > self.posts[path]:
            return 413, f"{length} bytes exceed the maximum allowed size: {self.posts[path]} bytes are taken"
        return None


def at_most(n_bytes: int, receive: Receive) -> Receive:
    """A receiver of at most `n_bytes`; a longer body ends as if its sender had gone."""
    n_read = 0

    async def receive_more() -> Message:
        nonlocal n_read
        message = await receive()
        n_read += len(message.get("body", b""))
        return message if n_read <= n_bytes else {"type": "http.disconnect"}

    return receive_more


FAILURES = set[str]()


def say_failure() -> None:
    """Prints the kind and place of the error at hand, once a place; its text can hold a stranger's words."""
    kind, _, trace = sys.exc_info()
    if kind is None:
        return
    last = extract_tb(trace)[-1]
    line = f"a request failed: {kind.__name__}, {Path(last.filename).name}:{last.lineno}"
    if line not in FAILURES:
        FAILURES.add(line)
        say(line, file=sys.stderr, flush=True)


LOCAL = ("localhost", "127.0.0.1", "[::1]")  # names of this machine in its own browsers
NAME = r"\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*"


def listen_address(host: str) -> str:
    """The address to listen at. Raises ConfigError for names but localhost, which would need a look-up."""
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        allowed = "an address, such as 127.0.0.1, ::1 or 0.0.0.0"
        raise ConfigError("host", got=host, why="names are not looked up", allowed=allowed) from None


def host_names(address: str, allowed: str | Iterable[object] | None) -> tuple[str, ...]:
    """The hosts that requests may name, the first for show: this machine's own on loopback, else those of a person.
    Raises ConfigError."""
    names = tuple(_plain(str(name)) for name in ([allowed] if isinstance(allowed, str) else allowed or ()))
    own = _plain(address)
    if own in LOCAL:
        return (own, *LOCAL, *names)
    if not names:
        allowed = "the names or addresses that people type as allowed_hosts=[music.example.org,192.168.1.5]"
        raise ConfigError("host", got=address, why="other machines can reach it", allowed=allowed)
    return names


def _plain(name: str) -> str:
    """A name or an address in a browser's form."""
    try:
        address = ip_address(name.strip("[]"))
    except ValueError:
        if re.fullmatch(NAME, name, re.ASCII | re.IGNORECASE) and not name.startswith("["):
            return name.lower()
        allowed = "names or addresses, without http:// and without a port, such as music.example.org or 192.168.1.5"
        raise ConfigError("allowed_hosts", got=name, allowed=allowed) from None
    return f"[{address}]" if address.version == 6 else str(address)


def host_of(header: str, before: str = "") -> str | None:
    """The host of a header after the pattern `before`; None for none, or an impossible port."""
    match = re.fullmatch(rf"{before}({NAME})(?::([0-9]{{1,5}}))?", header, re.ASCII | re.IGNORECASE)
    if match is None or (match[2] and not 0 < int(match[2]) < 2**16):
        return None
    return match[1].lower()
