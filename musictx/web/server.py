"""The page behind an address, for this machine alone unless told otherwise; nothing is fetched from elsewhere."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"  # read when gradio is imported
os.environ["HF_HUB_OFFLINE"] = "1"

import gradio as gr

from musictx.data.work.sandbox import close_all
from musictx.errors import UserError
from musictx.model.protocol import LanguageModel
from musictx.tokenizers import Tokenizer
from musictx.web.limits import Limits
from musictx.web.page import CSS, Page
from musictx.web.studio import Studio


@contextmanager
def serving(
    model: LanguageModel, tokenizer: Tokenizer, title: str, limits: Limits, host: str, port: int
) -> Iterator[str]:
    """The address of the page, which is there for the time of the block. Raises UserError for a port or host that
    cannot be had."""
    with tempfile.TemporaryDirectory(prefix="musictx-") as name:
        os.environ["GRADIO_TEMP_DIR"] = f"{name}/uploads"
        made = Path(name) / "made"
        made.mkdir()
        page = Page(Studio(model, tokenizer, made, limits), title)
        blocks = page.blocks.queue(max_size=limits.queue, default_concurrency_limit=2)
        try:
            _, address, _ = blocks.launch(
                server_name=host,
                server_port=port,
                prevent_thread_lock=True,
                quiet=True,
                share=False,
                ssr_mode=False,
                footer_links=[],
                max_file_size=limits.upload_bytes,
                allowed_paths=[str(made)],
                theme=look(),
                css=CSS,
            )
        except OSError:
            raise UserError(
                f"nothing can listen at {host} port {port}: give another port=, or host=127.0.0.1"
            ) from None
        try:
            yield address
        finally:
            blocks.close(verbose=False)
            close_all()


def look() -> gr.themes.Base:
    """Quiet, and dense enough for one screen; the fonts are the machine's own."""
    theme = gr.themes.Default(
        primary_hue="amber",
        spacing_size="sm",
        text_size="sm",
        font=("system-ui", "sans-serif"),
        font_mono=("ui-monospace", "monospace"),
    )
    return theme.set(layout_gap="10px", block_padding="7px 12px")
