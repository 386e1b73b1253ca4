"""Parts of the page that know nothing of music: a page that fetches no files, sliders, lines of status, progress."""

import html
from itertools import count
from pathlib import Path
from typing import Any

import gradio as gr
from gradio_client.utils import is_file_obj_with_meta, traverse

from musictx.web.uploads import Uploads


class Closed(gr.Blocks):  # type: ignore[misc]
    """Gradio fetches, or copies from anywhere on this machine, any file that a request names in place of an input."""

    def __init__(self, uploads: Uploads, **how: Any) -> None:
        self.uploads = uploads
        super().__init__(**how)

    async def preprocess_data(self, block_fn: Any, inputs: list[Any], *args: Any, **kwargs: Any) -> Any:
        traverse(inputs, self._refuse_others, is_file_obj_with_meta)
        return await super().preprocess_data(block_fn, inputs, *args, **kwargs)

    def _refuse_others(self, file: dict[str, Any]) -> None:
        if not self.uploads.owns(Path(file["path"])):
            raise gr.Error("this is no file that a page has sent", print_exception=False)


def slider(label: str, low: float, high: float, value: float, step: float, **how: Any) -> Any:
    return gr.Slider(low, high, value=min(value, high), step=step, label=label, buttons=[], **how)


NUMBERS = count()  # the same words again are another line
TO_WRONG = """watch("value", () => element.querySelector(".wrong")?.scrollIntoView({ block: "nearest" }))"""


def status_line(what: str, wrong: bool = False) -> str:
    """A line for the status, red where something went wrong; `TO_WRONG` brings such a line into the window."""
    role, look = ("alert", "status wrong") if wrong else ("status", "status")
    return f'<p role="{role}" class="{look}" data-number="{next(NUMBERS)}">{html.escape(what)}</p>'


def come_far(seconds: float, of_s: float) -> None:
    """Shows the person whose request this thread answers how much of the music is written."""
    gr.Progress()(min(seconds / of_s, 1.0), desc=f"{seconds:.0f} of {of_s:.0f} s of music")
