"""The server of the page, for this machine unless settings say more; it fetches nothing from elsewhere."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
os.environ["HF_HUB_OFFLINE"] = "1"

import gradio as gr
import gradio.queueing
import gradio.route_utils
import gradio.routes
import uvicorn
from fastapi import FastAPI

from musictx.errors import UserError
from musictx.terminal import say
from musictx.web.engraved import warm_up
from musictx.web.gate import PROGRESS, UPLOAD, Gate, say_failure
from musictx.web.page import CSS, Page
from musictx.web.studio import Studio
from musictx.web.uploads import READERS, Uploads

LEAVE_S = 1  # left for open connections at the end
SESSIONS = 256  # that are kept, each with its music and its page: the one that was used the longest ago goes
NAME_LENGTH = 64  # of a session: pages give themselves eleven letters


def run_page(studio: Studio, title: str, address: str, port: int, hosts: tuple[str, ...], uploads: Path) -> None:
    """Serves the page for `hosts` until Ctrl-C or SIGTERM. Raises UserError for an address that it cannot use."""
    with listen(address, port) as door:
        page = Page(studio, title, Uploads(uploads, studio.limits))
        gate = Gate(application(page), hosts, studio.limits.upload_bytes)
        if studio.of_scores is not None:
            Thread(target=warm_up, args=(studio.limits,), daemon=True).start()
        config = uvicorn.Config(gate, ws="none", log_level="warning", timeout_graceful_shutdown=LEAVE_S)
        try:
            Server(config, page, f"http://{hosts[0]}:{port}/").run([door])
            raise KeyboardInterrupt  # uvicorn catches Ctrl-C, even if a shell made us ignore it, and keeps it
        finally:
            studio.work.end()
            READERS.close()


def listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    both = address == "::" and socket.has_dualstack_ipv6()
    try:
        return socket.create_server((address, port), family=family, dualstack_ipv6=both)
    except OSError:
        raise UserError(f"cannot listen at {address} port {port}", "give another port=, or host=127.0.0.1") from None


def application(page: Page) -> FastAPI:
    """Gradio's application below ours, which takes uploads: Gradio puts equal files of two people in one place."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        task = asyncio.create_task(page.uploads.keep_forgetting())
        yield
        task.cancel()

    # gradio prints tracebacks, with what a stranger sent in them
    for module in (gradio.queueing, gradio.route_utils, gradio.routes):
        module.traceback = SimpleNamespace(print_exc=say_failure)
    limits = page.studio.limits
    app = FastAPI(openapi_url=None, lifespan=life)
    app.add_route(UPLOAD, page.uploads.receive, ["POST"])
    app.add_route(PROGRESS, page.uploads.progress, ["GET"])
    # what takes long waits for its like (`web/stage.py`), and its place in the queue keeps nobody else from theirs
    blocks = page.blocks.queue(max_size=limits.queue, default_concurrency_limit=limits.queue, api_open=False)
    blocks.state_session_capacity = SESSIONS
    blocks._queue.pending_messages_per_session = gradio.queueing.LRUCache(SESSIONS)
    blocks._queue.push = safe_push(blocks._queue)
    gr.mount_gradio_app(
        app,
        blocks,
        "/",
        show_error=False,
        ssr_mode=False,
        run_history=False,
        footer_links=[],
        max_file_size=limits.upload_bytes,
        allowed_paths=[str(page.studio.folder)],
        theme=theme(),
        css=CSS,
    )
    return app


def safe_push(queue: Any) -> Callable[..., Any]:
    """A queue's `push` that refuses unknown actions and long names of sessions, and forgets the session that is idle
    longest."""
    push, messages = queue.push, queue.pending_messages_per_session

    async def push_known(body: Any, **more: Any) -> Any:
        if len(body.session_hash or "") > NAME_LENGTH:
            return False, f"give the session a name of at most {NAME_LENGTH} letters", "error"
        if body.session_hash in messages:
            messages.move_to_end(body.session_hash)
        try:
            return await push(body, **more)
        except KeyError:  # gradio looks for an action's number in a dict
            return False, "the page has no such action", "error"

    return push_known


class Server(uvicorn.Server):
    """Prints when the page is ready; at its end it closes all connections, so that no browser waits."""

    def __init__(self, config: uvicorn.Config, page: Page, address: str) -> None:
        super().__init__(config)
        self.page, self.address = page, address

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        say(f"{self.address} continues music until Ctrl-C", flush=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.page.studio.work.ending = True
        self.page.blocks._queue.close()
        for connection in list(self.server_state.connections):
            connection.transport.close()  # an open page keeps its connection
        await super().shutdown(sockets)


def theme() -> gr.themes.Base:
    """A dense theme in the machine's own fonts."""
    theme = gr.themes.Default(
        primary_hue="amber",
        spacing_size="sm",
        text_size="sm",
        font=("system-ui", "sans-serif"),
        font_mono=("ui-monospace", "monospace"),
    )
    return theme.set(layout_gap="10px", block_padding="7px 12px")
