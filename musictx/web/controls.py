"""The controls of the page: music to begin with, and what a person asks of new music."""

from typing import Any

import gradio as gr

from musictx.data.source import MIDI_SUFFIXES
from musictx.generate.melodies import SINGERS
from musictx.generate.requests import DEFAULT_S, Accompany, Sampling
from musictx.music.grid import VOICES
from musictx.music.harmony import pitch_name
from musictx.tokenizers.rules import Rules
from musictx.web import session
from musictx.web.components import slider
from musictx.web.draw import HOW_CLOSE, SLIDER_S, usual_top_p
from musictx.web.harmonise import HOW_CLOSE_MELODY
from musictx.web.studio import Studio

MOST_GUIDANCE = 4.0
VARIATIONS = 2  # until a person moves the slider
TONICS = {"major": "C Db D Eb E F F# G Ab A Bb B", "minor": "C C# D Eb E F F# G G# A Bb B"}
KEYS = [("any", ""), *(f"{tonic} {mode}" for mode, tonics in TONICS.items() for tonic in tonics.split())]
RATES = [("any", 0), *((str(rate), rate) for rate in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30))]
PITCHES = [(pitch_name(pitch), pitch) for pitch in range(21, 109)]  # of a piano
PIANO = """<div class="piano"><div class="keys"></div><span class="played" role="status"></span><div class="row">
<button data-action="take">Take it</button><button data-action="clear">Clear</button>
<button data-action="midi">MIDI keyboard</button></div></div>"""


class Controls:
    """Components, made where the page is being laid out."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        with gr.Tabs():
            with gr.Tab("File"):
                self.file = gr.File(label="a MIDI file", file_types=[*MIDI_SUFFIXES], height=130, elem_id="file")
            with gr.Tab("Example"):
                self.examples = {name: gr.Button(name, size="sm") for name in self.studio.examples}
            with gr.Tab("Keyboard"):
                self.piano = gr.HTML(html_template=PIANO, js_on_load=session.SCRIPT, elem_id="piano")
        with gr.Tabs():
            with gr.Tab("Continue"):
                self._controls_of_continuations()
            with gr.Tab("Accompany", visible=self.studio.harmoniser is not None):
                self._controls_of_voices()

    def _controls_of_continuations(self) -> None:
        limits, names = self.studio.limits, list(self.studio.models)
        first = self.studio.models[names[0]].header
        self.model = gr.Radio(names, value=names[0], label="model", visible=len(names) > 1, elem_id="model")
        with gr.Group():
            self.primer = slider(
                "continue from, seconds", SLIDER_S, 10, 10, SLIDER_S, interactive=False, elem_id="primer"
            )
            self.length = slider("new music, seconds", min(1, limits.length_s / 2), limits.length_s, DEFAULT_S, 1)
            self.temperature = slider("temperature", 0, 2, Sampling.temperature, 0.05)
            self.top_p = slider("top-p", 0.05, 1, usual_top_p(first), 0.01)
            self.seed_guidance = slider(HOW_CLOSE, 0, MOST_GUIDANCE, first.seed_guidance or 0.0, 0.25)
            with gr.Accordion("key, density, register", open=False, elem_id="control"):
                with gr.Row():
                    key = gr.Dropdown(KEYS, value="", label="key")
                    density = gr.Dropdown(RATES, value=0, label="notes a second")
                with gr.Row():
                    lowest = gr.Dropdown([("any", Rules.lowest), *PITCHES], value=Rules.lowest, label="lowest note")
                    highest = gr.Dropdown([("any", Rules.highest), *PITCHES], value=Rules.highest, label="highest note")
                self.led = [key, density, lowest, highest]
            self.variations = self._how_many()
        self.go = gr.Button("Continue", variant="primary", interactive=False)

    def _controls_of_voices(self) -> None:
        below = self.studio.harmoniser
        gr.HTML("<p>The other three voices of a choir, around the highest notes.</p>", js_on_load=None)
        with gr.Group():
            temperature = slider("temperature", 0, 2, Sampling.temperature, 0.05)
            guides = below is not None and below.header.hides_source
            own = below.header.seed_guidance or 0.0 if below else 0.0
            seed_guidance = slider(HOW_CLOSE_MELODY, 0, MOST_GUIDANCE, own, 0.25, visible=guides)
            singers = list(zip(SINGERS, VOICES, strict=True))
            voice = gr.Dropdown(singers, value=Accompany.voices, label="the highest notes are the")
            key = gr.Dropdown(KEYS, value="", label="key of the voices")
            self.of_voices = [temperature, seed_guidance, self._how_many(), key, voice]
        self.accompany = gr.Button("Accompany", variant="primary", interactive=False)

    def _how_many(self) -> Any:
        most = self.studio.limits.variations
        return slider("variations", 1, max(most, 2), min(most, VARIATIONS), 1, interactive=most > 1)
