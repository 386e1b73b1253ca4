"""What comes in at all: requests of our own hosts and pages, to the few addresses that the page needs.

Gradio answers many more. Some run a handler at once, past its queue (/run, /api, /component_server), some free a place
in the queue while the handler still runs (/cancel), some fetch addresses for whoever asks (/file=http…, /proxy=).
"""

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from musictx.web.hosts import host_of, origin_host

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
        # what is left of the body is not read: the connection goes
        answer = PlainTextResponse(f"{why}\n", status, headers={"Connection": "close"})
        await answer(scope, receive, send)

    def refused(self, scope: Scope) -> tuple[int, str] | None:
        """Status and reason, None for what may pass."""
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        origins = [value.decode("latin-1") for name, value in scope["headers"] if name == b"origin"]
        if len(named) != 1 or host_of(named[0]) not in self.hosts:
            return 421, "no page of this name is here; allowed_hosts= of musictx serve tells the names"
        if len(origins) > 1 or any(origin_host(origin) not in self.hosts for origin in origins):
            return 421, "another site's page may not use this one"
        method, path = scope["method"], scope["path"]
        if method in ("GET", "HEAD") and (path in SEEN or path.startswith(BELOW)):
            return None
        if method != "POST" or path not in self.posts:
            return 404, "there is no such address; the model is asked through the page's queue alone"
        length = dict(scope["headers"]).get(b"content-length", b"")
        if not length.isdigit() or len(length) > 20:
            return 411, "say how long the request is: Content-Length"
        if int(length) > self.posts[path]:
            return 413, f"{int(length)} bytes exceed the maximum allowed size: {self.posts[path]} bytes are taken"
        return None
