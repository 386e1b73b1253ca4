"""The parts of the page: the controls for the music and the request, and a line of status."""

import html
from itertools import count
from pathlib import Path
from typing import Any

import gradio as gr
from gradio_client.utils import is_file_obj_with_meta, traverse

from musictx.generate.requests import DEFAULT_S, Accompany, Sampling
from musictx.music.beat_grid import bars_of
from musictx.music.grid import VOICE_NAMES, VOICES
from musictx.music.harmony import pitch_name
from musictx.music.read import SUFFIXES
from musictx.tokenizers.rules import Rules
from musictx.web import session
from musictx.web.draw import HOW_CLOSE, HOW_CLOSE_MELODY, LEAST_S, SLIDER_S, usual_top_p
from musictx.web.session import PageMusic
from musictx.web.studio import Studio
from musictx.web.uploads import Uploads

MOST_GUIDANCE = 4.0
MOST_BARS = 16  # until there is music with bars
SECONDS, BARS = "seconds", "bars"
CHOIR, HANDS = "three voices of a choir", "a piano, for a tune"
BOLDNESS, UNLIKELY = "boldness (temperature)", "unlikely notes (top-p)"
GUARD = "stay as dense, full and high as what is given, without loops"
VARIATIONS = 2  # until a person moves the slider
TONICS = {"major": "C Db D Eb E F F# G Ab A Bb B", "minor": "C C# D Eb E F F# G G# A Bb B"}
KEYS = [("any", ""), *(f"{tonic} {mode}" for mode, tonics in TONICS.items() for tonic in tonics.split())]
RATES = [("any", 0), *((str(rate), rate) for rate in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30))]
PITCHES = [(pitch_name(pitch), pitch) for pitch in range(21, 109)]  # of a piano
PIANO = """<div class="piano"><div class="keys"></div><span class="played" role="status"></span><div class="row">
<button data-action="take">Take it</button><button data-action="clear">Clear</button>
<button data-action="midi">MIDI keyboard</button></div></div>"""


class Controls:
    """Components, made within the layout of the page."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        with gr.Tabs():
            with gr.Tab("File"):
                self.file = gr.File(label="a MIDI file or a score", file_types=[*SUFFIXES], height=130, elem_id="file")
            with gr.Tab("Example"):
                self.examples = {name: gr.Button(name, size="sm") for name in self.studio.examples}
            with gr.Tab("Keyboard"):
                self.piano = gr.HTML(html_template=PIANO, js_on_load=session.SCRIPT, elem_id="piano")
        with gr.Tabs():
            with gr.Tab("Continue"):
                self._controls_of_continuations()
            with gr.Tab("Accompany", visible=self.studio.harmoniser is not None or self.studio.of_scores is not None):
                self._controls_of_voices()

    def _controls_of_continuations(self) -> None:
        limits, names = self.studio.limits, list(self.studio.models)
        first = self.studio.models[names[0]].header
        self.model = gr.Radio(names, value=names[0], label="model", visible=len(names) > 1, elem_id="model")
        with gr.Group():
            self.primer = slider(
                "continue from, seconds", LEAST_S, 10, 10, SLIDER_S, interactive=False, elem_id="primer"
            )
            self.unit = gr.Radio([BARS, SECONDS], value=SECONDS, label="new music in", visible=False, elem_id="unit")
            least_s = min(1, limits.length_s / 2)
            self.seconds = slider(f"new music, {SECONDS}", least_s, limits.length_s, DEFAULT_S, 1)
            self.bars = slider(f"new music, {BARS}", 1, MOST_BARS, MOST_BARS // 2, 1, visible=False)
            self.seed_guidance = slider(HOW_CLOSE, 0, MOST_GUIDANCE, first.seed_guidance or 0.0, 0.25)
            with gr.Accordion("key, density, register", open=False, elem_id="control"):
                with gr.Row():
                    key = gr.Dropdown(KEYS, value="", label="key")
                    density = gr.Dropdown(RATES, value=0, label="notes a second")
                with gr.Row():
                    lowest = gr.Dropdown([("any", Rules.lowest), *PITCHES], value=Rules.lowest, label="lowest note")
                    highest = gr.Dropdown([("any", Rules.highest), *PITCHES], value=Rules.highest, label="highest note")
                self.targets = [key, density, lowest, highest]
            self.variations = self._how_many()
            with gr.Accordion("more", open=False, elem_id="more"):
                self.temperature = slider(BOLDNESS, 0, 2, Sampling.temperature, 0.05)
                self.top_p = slider(UNLIKELY, 0.05, 1, usual_top_p(first), 0.01)
                self.guard = gr.Checkbox(Sampling.guard, label=GUARD, elem_id="guard")
        self.go = gr.Button("Continue", variant="primary", interactive=False)

    def count_in(self, unit: str) -> dict[Any, Any]:
        """Updates to the length of new music."""
        return {self.seconds: gr.update(visible=unit == SECONDS), self.bars: gr.update(visible=unit == BARS)}

    def lengths_of(self, music: PageMusic) -> dict[Any, Any]:
        """Updates to the length of new music, in bars if the music has some."""
        bars = bars_of(music.score, music.meter, music.score.duration_s)
        unit = SECONDS if bars is None else BARS
        updates = self.count_in(unit) | {self.unit: gr.update(value=unit, visible=bars is not None)}
        if bars is not None:
            lasts_s = music.meter.after(music.score.duration_s, 1) - music.score.duration_s
            most = max(int(self.studio.limits.length_s / lasts_s), 1)
            usual = min(max(round(DEFAULT_S / lasts_s), 1), most)
            updates[self.bars] = gr.update(maximum=max(most, 2), value=usual, visible=True)
        return updates

    def _controls_of_voices(self) -> None:
        below = self.studio.harmoniser
        with gr.Group():
            each = [(CHOIR, below), (HANDS, self.studio.of_scores)]
            self.able = [name for name, model in each if model is not None] or [CHOIR]
            self.by = gr.Radio(self.able, value=self.able[0], label="beside the music", elem_id="by")
            guides = below is not None and below.header.hides_source
            own = below.header.seed_guidance or 0.0 if below else 0.0
            seed_guidance = slider(HOW_CLOSE_MELODY, 0, MOST_GUIDANCE, own, 0.25, visible=guides)
            singers = list(zip(VOICE_NAMES, VOICES, strict=True))
            has_choir = below is not None
            voice = gr.Dropdown(singers, value=Accompany.voices, label="the highest part is the", visible=has_choir)
            key, variations = gr.Dropdown(KEYS, value="", label="key of the voices"), self._how_many()
            with gr.Accordion("more", open=False):
                temperature = slider(BOLDNESS, 0, 2, Sampling.temperature, 0.05)
            self.of_voices = [temperature, seed_guidance, variations, key, voice]
            self.of_choir = [voice, *[seed_guidance] * guides]
        self.accompany = gr.Button("Accompany", variant="primary", interactive=False)

    def beside(self, music: PageMusic) -> dict[Any, Any]:
        """Updates to what goes beside the music: hands for a score that is no choir's."""
        by = HANDS if music.model == self.studio.of_scores else CHOIR
        return {self.by: gr.update(value=by)} | self.accompany_by(by) if by in self.able else {}

    def accompany_by(self, by: str) -> dict[Any, Any]:
        """Updates to what only a choir has."""
        return {part: gr.update(visible=by == CHOIR) for part in self.of_choir}

    def _how_many(self) -> Any:
        most = self.studio.limits.variations
        return slider("variations", 1, max(most, 2), min(most, VARIATIONS), 1, interactive=most > 1)


class Closed(gr.Blocks):  # type: ignore[misc]
    """Blocks that take no file but those of the page: Gradio would fetch, or copy, any file that a request names."""

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
    """A line of status, red if it is `wrong`; `TO_WRONG` brings that into the window."""
    role, look = ("alert", "status wrong") if wrong else ("status", "status")
    return f'<p role="{role}" class="{look}" data-number="{next(NUMBERS)}">{html.escape(what)}</p>'


def come_far(seconds: float, of_s: float) -> None:
    """Shows the progress of the music to the person of this thread's request."""
    gr.Progress()(min(seconds / of_s, 1.0), desc=f"{seconds:.0f} of {of_s:.0f} s of music")
