"""The page itself: its parts, and which action each of them calls. Gradio is known here and in `server`."""

import html
import math
from collections.abc import Callable, Generator, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import gradio as gr

from musictx.data.source import MIDI_SUFFIXES
from musictx.errors import UserError
from musictx.generate.melodies import SINGERS
from musictx.generate.primer import Part
from musictx.generate.requests import DEFAULT_S, Accompany, Continue, Fill, Length, Sampling
from musictx.music.grid import VOICES
from musictx.music.harmony import pitch_name
from musictx.tokenizers.rules import AUTO, Rules
from musictx.web import session, stage
from musictx.web.components import TO_WRONG, Closed, come_far, slider, status_line
from musictx.web.draw import HOW_CLOSE, SLIDER_S, asked, usual_top_p
from musictx.web.harmonise import HOW_CLOSE_MELODY, voices_asked
from musictx.web.session import Session, is_number
from musictx.web.studio import Answer, Studio
from musictx.web.uploads import Uploads

Updates = dict[Any, Any]  # by component: what is not in it stays as it is
Showing = Generator[Updates, None, Updates]

CSS = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
FORGET_S = 3600.0  # a person who is gone
BEGIN = "Nothing leaves this server."
BOTH_SIDES = "A filled part comes from both its sides. Continue this variation to see the sources of a note."
FINISHED = "This piece is finished: new music replaces its ending, from {:.1f} s on. Drag the mark to another place."
ALL_HEADS = "mean of all heads"
MOST_GUIDANCE = 4.0
VARIATIONS = 2  # until a person moves the slider
CHORDS = "chords for new music"
TONICS = {"major": "C Db D Eb E F F# G Ab A Bb B", "minor": "C C# D Eb E F F# G G# A Bb B"}
KEYS = [("any", ""), *(f"{tonic} {mode}" for mode, tonics in TONICS.items() for tonic in tonics.split())]
RATES = [("any", 0), *((str(rate), rate) for rate in (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30))]
PITCHES = [(pitch_name(pitch), pitch) for pitch in range(21, 109)]  # of a piano
REGION_S = 0.1  # the step of arrow keys
PIANO = """<div class="piano"><div class="keys"></div><span class="played" role="status"></span><div class="row">
<button data-action="take">Take it</button><button data-action="clear">Clear</button>
<button data-action="midi">MIDI keyboard</button></div></div>"""


class Page:
    """Components, and the handlers that change them."""

    def __init__(self, studio: Studio, title: str, uploads: Uploads) -> None:
        self.studio, self.uploads = studio, uploads
        with Closed(uploads, title="musictx", analytics_enabled=False, fill_width=True) as self.blocks:
            self.session = gr.State(Session(), time_to_live=FORGET_S)
            gr.HTML(f"<h1>musictx <small>{html.escape(title)}</small></h1>", js_on_load=None)
            with gr.Row():
                with gr.Column(scale=0, min_width=350, elem_id="controls"):
                    self._controls()
                with gr.Column(scale=1, min_width=500):
                    self._results()
            self._connect()

    def _controls(self) -> None:
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

    def _results(self) -> None:
        with gr.Row(elem_id="top"):
            self.status = gr.HTML(status_line(BEGIN), js_on_load=TO_WRONG, elem_id="status", scale=1)
            self.on = gr.Button("Continue this variation", size="sm", interactive=False, scale=0, min_width=200)
            self.undo = gr.Button("Undo", size="sm", interactive=False, scale=0, min_width=80)
        self.chords = gr.Textbox(
            label=CHORDS, placeholder="any, or bars: C | Am F | G7", max_lines=1, visible=False, elem_id="chords"
        )
        self.stage = gr.HTML(stage.WELCOME, js_on_load=stage.SCRIPT, elem_id="stage")
        with gr.Row(visible=False, elem_id="region") as self.filling:
            hint = {"placeholder": "drag over the roll, or type", "step": REGION_S, "min_width": 200}
            self.region = [gr.Number(label=f"fill {border}, seconds", **hint) for border in ("from", "to")]
            self.fill_it = gr.Button("Fill", variant="primary", scale=0, min_width=120)
        with gr.Row(visible=False) as self.looking:
            self.note = slider("sources of the note", 2, 3, 2, 1, scale=3, min_width=200)
            self.layer = gr.Dropdown([(ALL_HEADS, -1)], value=-1, label="attention of", scale=1, min_width=200)
        self.arcs = gr.HTML("", elem_id="arcs", js_on_load=None)

    def _connect(self) -> None:
        how = [self.model, self.temperature, self.top_p, self.variations, self.chords, *self.led]
        parts = [self.session, self.status, self.stage, self.primer, self.go, self.on, self.undo]
        parts += [self.looking, self.note, self.layer, self.arcs, self.file, self.model, self.seed_guidance, self.top_p]
        parts += [self.accompany, self.filling, *self.region, self.chords]
        quiet = {"show_progress": "minimal", "show_progress_on": self.status, "api_visibility": "private"}

        def on(event: Any, action: Callable[..., Updates | Showing], *inputs: Any, **how: Any) -> None:
            event(self._answered(action), [self.session, *inputs], parts, **(quiet | how))

        on(self.file.upload, self.upload, self.file)
        for name, button in self.examples.items():
            on(button.click, partial(self.pick_example, name=name))
        on(self.piano.take, self.take_played)
        on(self.model.input, self.choose_model, self.model)
        for moved in (self.primer.input, self.primer.change):
            moved(None, self.primer, js=stage.PRIMER)
        for border in self.region:
            border.change(None, self.region, js=stage.REGION)
        busy: dict[str, Any] = {"show_progress": "full", "show_progress_on": self.status}  # the stage shows music
        busy |= {"concurrency_id": "draw", "concurrency_limit": 1}
        for go in (self.go.click, self.chords.submit):
            on(go, self.go_on, self.primer, self.length, self.seed_guidance, *how, **busy)
        on(self.fill_it.click, self.fill, *self.region, *how, **busy)
        on(self.accompany.click, self.put_voices, self.chords, *self.of_voices, **busy)
        on(self.stage.choose, self.choose)
        look = {"concurrency_id": "look", "concurrency_limit": 1}
        on(self.stage.pick, self.pick_note, self.layer, **look)
        for control in (self.note.input, self.layer.input):
            on(control, self.show_attention, self.note, self.layer, trigger_mode="always_last", **look)
        on(self.on.click, self.begin_from_take)
        on(self.undo.click, self.step_back)

    def upload(self, session: Session, path: str | None) -> Updates:
        if not path:
            return {}
        name, data = Path(path).name, self.uploads.take(Path(path))
        try:
            if data is None:
                raise UserError(f"{name}: it waited too long to be read", "drop it again")
            updates = self._begin(self.studio.upload(session, data, name))
        except UserError as error:
            updates = {self.status: status_line(str(error), wrong=True)}
        return updates | {self.file: None}  # there is room for the next one

    def pick_example(self, session: Session, name: str) -> Updates:
        return self._begin(self.studio.example(session, name))

    def choose_model(self, session: Session, name: str) -> Updates:
        header = self.studio.models[name].header
        return {self.seed_guidance: header.seed_guidance or 0.0, self.top_p: usual_top_p(header)}

    def take_played(self, session: Session, event: gr.EventData) -> Updates:
        return self._begin(self.studio.played(session, (event._data or {}).get("notes")))

    def go_on(self, session: Session, from_s: Any, length_s: Any, guidance: Any, model: str, *how: Any) -> Showing:
        from_s = max(from_s, SLIDER_S) if is_number(from_s) else from_s  # the slider's first step
        request = Continue(length=Length(length_s), part=Part(until_s=from_s), **asked(guidance, *how))
        session, what = yield from self._under_way(session, self.studio.go_on(session, request, come_far, model))
        return self._show(session, new=False) | self._layers_of(session) | {self.status: status_line(what)}

    def fill(self, session: Session, from_s: Any, to_s: Any, model: str, *how: Any) -> Showing:
        answer = self.studio.fill(session, Fill(from_s=from_s, to_s=to_s, **asked(AUTO, *how)), come_far, model)
        session, what = yield from self._under_way(session, answer)
        assert session.now
        done = session.now.takes[0]
        borders = round(done.new_from_s, 2), round(done.new_to_s, 2)  # those that the model can keep to
        return self._show(session) | {self.status: status_line(what)} | dict(zip(self.region, borders, strict=True))

    def _under_way(self, session: Session, answer: Answer) -> Generator[Updates, None, tuple[Session, str]]:
        """Shows music while it is drawn."""
        while True:
            try:
                step = next(answer)
            except StopIteration as end:
                whole: tuple[Session, str] = end.value
                return whole
            except UserError:
                yield {self.stage: self.studio.show(session)}  # in place of a sketch
                raise
            yield {self.stage: stage.sketch(step), self.status: status_line(stage.SO_FAR)}

    def put_voices(self, session: Session, *how: Any) -> Updates:
        session, what = self.studio.harmonise(session, voices_asked(*how), come_far)
        return self._show(session, new=False) | self._layers_of(session) | {self.status: status_line(what)}

    def choose(self, session: Session, event: gr.EventData) -> Updates:
        return self._show(session.choose(int(event._data["take"])), new=False)

    def pick_note(self, session: Session, layer: int, event: gr.EventData) -> Updates:
        chosen = session.choose(int(event._data["take"]))
        updates = self._show(chosen, new=False) if chosen.now != session.now else {}
        if chosen.now and chosen.now.filled:
            return updates | {self.status: status_line(BOTH_SIDES)}
        reader, now = self.studio.reader(chosen)
        note = reader.nearest(now.score, float(event._data["seconds"]), float(event._data["pitch"]))
        return updates | self.show_attention(chosen, note + 1, layer)

    def show_attention(self, session: Session, note: int, layer: int) -> Updates:
        arcs = self.studio.arcs(session, int(note) - 1, None if layer < 0 else layer)
        reader, now = self.studio.reader(session)
        most = max(len(reader.traced(now.score).score), 3)
        slider = gr.update(maximum=most, value=min(max(int(note), 2), most))
        return {self.arcs: arcs, self.note: slider, self.looking: gr.update(visible=True)}

    def begin_from_take(self, session: Session) -> Updates:
        return self._show(self.studio.begin_from_take(session))

    def step_back(self, session: Session) -> Updates:
        return self._show(session.undo())

    def _begin(self, session: Session) -> Updates:
        """Other music, of which no region is chosen yet."""
        return self._show(session) | dict.fromkeys(self.region)

    def _show(self, session: Session, new: bool = True) -> Updates:
        """Everything that depends on the newest step; `new` music is a primer as a whole."""
        now = session.now
        updates: Updates = {
            self.session: session,
            self.status: status_line(BEGIN),
            self.on: gr.update(interactive=bool(now and now.takes)),
            self.arcs: "",
            self.looking: gr.update(visible=False),
            self.filling: gr.update(visible=now is not None),
            self.chords: gr.update(visible=now is not None),
        }
        updates |= {
            part: gr.update(interactive=now is not None) for part in (self.primer, self.go, self.accompany, self.undo)
        }
        if now:
            about = f"{now.name}: {len(now.score)} notes, {now.score.duration_s:.1f} s. {now.music.note}"
            updates[self.status] = status_line(about)
        if now and new:
            whole_s = max(math.ceil(now.music.score.duration_s / SLIDER_S) * SLIDER_S, 2 * SLIDER_S)
            from_s = stage.begins_s(now.music.score)
            at_s = whole_s if from_s == now.music.score.duration_s else max(round(from_s, 1), SLIDER_S)
            updates[self.primer] = gr.update(maximum=round(whole_s, 1), value=round(at_s, 1), interactive=True)
            if at_s < whole_s:
                updates[self.status] = status_line(f"{about} {FINISHED.format(at_s)}")
            updates |= {self.model: now.music.model} | self.choose_model(session, now.music.model)
            updates |= self._layers_of(session)
        return updates | {self.stage: self.studio.show(session)}

    def _layers_of(self, session: Session) -> Updates:
        each = [(f"layer {k}, each head", k) for k in range(self.studio.reader(session)[0].layers)]
        return {self.layer: gr.update(choices=[(ALL_HEADS, -1), *each], value=-1)}

    def _answered(self, action: Callable[..., Updates | Showing]) -> Callable[..., Iterator[Updates]]:
        """The action, with a person's mistakes in the status line and nothing else changed."""

        @wraps(action)
        def safely(*args: Any, **kwargs: Any) -> Iterator[Updates]:
            try:
                with self.studio.work.action():
                    shown = action(*args, **kwargs)
                    if not isinstance(shown, dict):
                        shown = yield from shown
                    yield shown or {self.status: gr.skip()}
            except UserError as error:
                yield {self.status: status_line(str(error), wrong=True)}

        return safely
