"""The page: its parts, and the actions that they call. Only this file, `controls` and `server` know Gradio."""

import html
import math
from collections.abc import Callable, Generator, Iterator
from functools import partial, wraps
from pathlib import Path
from typing import Any

import gradio as gr

from musictx.errors import UserError, counted
from musictx.generate.primer import Part
from musictx.generate.requests import Continue, Fill, Length
from musictx.tokenizers.rules import AUTO
from musictx.web import stage
from musictx.web.advice import on_page
from musictx.web.controls import BARS, CHOIR, TO_WRONG, Closed, Controls, come_far, slider, status_line
from musictx.web.draw import LEAST_S, SLIDER_S, for_hands, request_settings, usual_top_p, voices_request
from musictx.web.scores import plays_scores
from musictx.web.session import Session, Step, Visit, are_same, is_number
from musictx.web.studio import Answer, Studio
from musictx.web.uploads import Uploads

Updates = dict[Any, Any]  # by component: what is not in it stays as it is
Showing = Generator[Updates, None, Updates]

CSS = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
FORGET_S = 3600.0  # a person who is gone
BEGIN = "Nothing leaves this server."
BOTH_SIDES = "A filled part comes from both its sides. Continue this variation to see the sources of a note."
BELOW = "New music of {} is ready, but you chose other music meanwhile. Undo shows it."
LEFT_OUT = "You went back meanwhile, so the new music of {} is left out."
FINISHED = "This piece is finished: new music replaces its ending, from {:.1f} s on. Drag the mark to another place."
ALL_HEADS = "mean of all heads"
CHORDS = "chords for new music"
REGION_S = 0.1  # the step of arrow keys


class Page:
    """Components, and the handlers that change them."""

    def __init__(self, studio: Studio, title: str, uploads: Uploads) -> None:
        self.studio, self.uploads = studio, uploads
        with Closed(uploads, title="musictx", analytics_enabled=False, fill_width=True) as self.blocks:
            self.visit = gr.State(Visit(), time_to_live=FORGET_S)
            about = f"<details><summary>models and licences</summary>{html.escape(title)}</details>"
            gr.HTML(f"<h1>musictx</h1>{about}", js_on_load=None, elem_id="about")
            with gr.Row():
                with gr.Column(scale=0, min_width=350, elem_id="controls"):
                    self.controls = Controls(studio)
                with gr.Column(scale=1, min_width=500):
                    self._results()
            self._connect()

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
        asks = self.controls
        how = [asks.model, asks.temperature, asks.top_p, asks.guard, asks.variations, self.chords, *asks.targets]
        parts = [self.visit, self.status, self.stage, asks.primer, asks.go, self.on, self.undo]
        parts += [self.looking, self.note, self.layer, self.arcs, asks.file, asks.model, asks.seed_guidance, asks.top_p]
        parts += [asks.unit, asks.seconds, asks.bars, asks.accompany, self.filling, *self.region, self.chords]
        parts += [asks.by, *asks.of_choir]
        quiet = {"show_progress": "minimal", "show_progress_on": self.status, "api_visibility": "private"}

        def on(event: Any, action: Callable[..., Updates | Showing], *inputs: Any, **how: Any) -> None:
            event(self._handler(action), [self.visit, *inputs], parts, **(quiet | how))

        on(asks.file.upload, self.upload, asks.file)
        for name, button in asks.examples.items():
            on(button.click, partial(self.pick_example, name=name))
        on(asks.piano.take, self.take_phrase)
        on(asks.model.input, self.choose_model, asks.model)
        on(asks.unit.input, self.choose_unit, asks.unit)
        for moved in (asks.primer.input, asks.primer.change):
            moved(None, asks.primer, js=stage.PRIMER)
        for border in self.region:
            border.change(None, self.region, js=stage.REGION)
        busy: dict[str, Any] = {"show_progress": "full", "show_progress_on": self.status}  # the stage shows music
        busy |= {"concurrency_id": "draw", "concurrency_limit": 1}
        for go in (asks.go.click, self.chords.submit):
            on(go, self.go_on, asks.primer, asks.unit, asks.seconds, asks.bars, asks.seed_guidance, *how, **busy)
        on(self.fill_it.click, self.fill, *self.region, *how, **busy)
        on(asks.accompany.click, self.accompany, asks.by, self.chords, *asks.of_voices, **busy)
        on(asks.by.input, self.choose_new_parts, asks.by)
        on(self.stage.choose, self.choose)
        look = {"concurrency_id": "look", "concurrency_limit": 1}
        on(self.stage.pick, self.pick_note, self.layer, **look)
        for control in (self.note.input, self.layer.input):
            on(control, self.show_attention, self.note, self.layer, trigger_mode="always_last", **look)
        on(self.on.click, self.begin_from_take)
        on(self.undo.click, self.step_back)

    def upload(self, visit: Visit, path: str | None) -> Updates:
        if not path:
            return {}
        name, data, before = Path(path).name, self.uploads.take(Path(path)), visit.session
        try:
            if data is None:
                raise UserError(f"{name}: it waited too long to be read", "drop it again")
            updates = self._arrive(visit, before, self.studio.upload(before, data, name))
        except UserError as error:
            updates = {self.status: status_line(on_page(error), wrong=True)}
        return updates | {self.controls.file: None}  # there is room for the next one

    def pick_example(self, visit: Visit, name: str) -> Updates:
        return self._begin(visit, self.studio.example(visit.session, name))

    def choose_model(self, _: Visit, name: str) -> Updates:
        return self._model(name)

    def choose_unit(self, _: Visit, unit: str) -> Updates:
        return self.controls.count_in(unit)

    def _model(self, name: str) -> Updates:
        model = self.studio.models[name]
        guidance = gr.update(value=model.header.seed_guidance or 0.0, visible=not plays_scores(model.tokenizer))
        return {self.controls.seed_guidance: guidance, self.controls.top_p: usual_top_p(model.header)}

    def take_phrase(self, visit: Visit, event: gr.EventData) -> Updates:
        return self._begin(visit, self.studio.phrase(visit.session, (event._data or {}).get("notes")))

    def go_on(
        self, visit: Visit, from_s: Any, unit: str, seconds: Any, bars: Any, guidance: Any, model: str, *how: Any
    ) -> Showing:
        from_s = max(from_s, LEAST_S) if is_number(from_s) else from_s
        length = Length(bars=bars) if unit == BARS else Length(seconds)
        request = Continue(length=length, part=Part(until_s=from_s), **request_settings(guidance, *how))
        before = visit.session
        answer = self.studio.go_on(before, request, come_far, model)
        after, what = yield from self._under_way(visit, before, answer)
        return self._arrive(visit, before, after, what)

    def fill(self, visit: Visit, from_s: Any, to_s: Any, model: str, *how: Any) -> Showing:
        before = visit.session
        answer = self.studio.fill(
            before, Fill(from_s=from_s, to_s=to_s, **request_settings(AUTO, *how)), come_far, model
        )
        after, what = yield from self._under_way(visit, before, answer)
        return self._arrive(visit, before, after, what)

    def choose_new_parts(self, _: Visit, by: str) -> Updates:
        return self.controls.accompany_by(by)

    def accompany(self, visit: Visit, by: str, *how: Any) -> Updates:
        before = visit.session
        if by == CHOIR:
            after, what = self.studio.harmonise(before, voices_request(*how), come_far)
        else:
            after, what = self.studio.accompany(before, for_hands(voices_request(*how)), come_far)
        return self._arrive(visit, before, after, what)

    def _arrive(self, visit: Visit, before: Session, after: Session, what: str = "") -> Updates:
        """Shows the newest step of `after`, or says where it is if the person left the session `before` meanwhile."""
        step = after.now
        assert step
        session = visit.change(lambda now: now.arrive(step, before))
        there = any(each is step for each in session.steps)
        line = status_line((BELOW if there else LEFT_OUT).format(step.music.name))
        if session.now is not step:
            return {self.status: line}
        updates = self._show(session, new=not step.takes) | self._layers_of(session)
        if not are_same(visit.session.now, step):  # while it was pictured
            return {self.status: line}
        if step.is_fill:
            take = step.takes[0]
            borders = round(take.new_from_s, 2), round(take.new_to_s, 2)  # those that the model can keep to
            updates |= dict(zip(self.region, borders, strict=True))
        elif not step.takes:
            updates |= dict.fromkeys(self.region)
        return updates | ({self.status: status_line(what)} if what else {})

    def _under_way(
        self, visit: Visit, before: Session, answer: Answer
    ) -> Generator[Updates, None, tuple[Session, str]]:
        """Shows music while it is drawn, unless the person does something else."""
        has_sketch = False
        while True:
            try:
                step = next(answer)
            except StopIteration as end:
                whole: tuple[Session, str] = end.value
                return whole
            except UserError:
                if has_sketch and are_same(visit.session.now, before.now):
                    yield {self.stage: self.studio.show(visit.session)}  # in place of a sketch
                raise
            if are_same(visit.session.now, before.now):
                sketch = stage.sketch(step)
                if are_same(visit.session.now, before.now):
                    has_sketch = True
                    yield {self.stage: sketch, self.status: status_line(stage.SO_FAR)}

    def choose(self, visit: Visit, event: gr.EventData) -> Updates:
        return self._show(visit.change(lambda session: session.choose(int(event._data["take"]))), new=False)

    def pick_note(self, visit: Visit, layer: int, event: gr.EventData) -> Updates:
        before = visit.session
        session = before.choose(int(event._data["take"]))
        updates = self._show(session, new=False) if session.now != before.now else {}
        if session.now and session.now.is_fill:
            updates |= {self.status: status_line(BOTH_SIDES)}
        else:
            reader, now = self.studio.reader(session)
            note = reader.nearest(now.score, float(event._data["seconds"]), float(event._data["pitch"]))
            updates |= self._attention(session, note + 1, layer)
        visit.change(lambda now: session if now is before else now)
        return updates

    def show_attention(self, visit: Visit, note: int, layer: int) -> Updates:
        return self._attention(visit.session, note, layer)

    def _attention(self, session: Session, note: int, layer: int) -> Updates:
        arcs = self.studio.arcs(session, int(note) - 1, None if layer < 0 else layer)
        reader, now = self.studio.reader(session)
        most = max(len(reader.trace(now.score).score), 3)
        slider = gr.update(maximum=most, value=min(max(int(note), 2), most))
        looking = gr.update(visible=True)
        return {self.visit: session, self.arcs: arcs, self.note: slider, self.looking: looking}

    def begin_from_take(self, visit: Visit) -> Updates:
        return self._show(visit.change(self.studio.begin_from_take))

    def step_back(self, visit: Visit) -> Updates:
        return self._show(visit.change(Session.undo))

    def _begin(self, visit: Visit, after: Session) -> Updates:
        """Shows other music, without a region."""
        steps = after.steps[-1:]
        return self._show(visit.change(lambda now: now.push(*steps))) | dict.fromkeys(self.region)

    def _show(self, session: Session, new: bool = True) -> Updates:
        """Updates of all that depends on the newest step, and the session, for `_handler`. `new` music comes with its
        model."""
        now = session.now
        updates: Updates = {
            self.visit: session,
            self.status: status_line(BEGIN),
            self.on: gr.update(interactive=bool(now and now.takes)),
            self.arcs: "",
            self.looking: gr.update(visible=False),
            self.filling: gr.update(visible=now is not None),
            self.chords: gr.update(visible=now is not None),
        }
        ready = (self.controls.primer, self.controls.go, self.controls.accompany, self.undo)
        updates |= {part: gr.update(interactive=now is not None) for part in ready}
        if now:
            about = f"{now.name}: {counted(len(now.score), 'note')}, {now.score.duration_s:.1f} s. {now.music.note}"
            updates[self.status] = status_line(about)
        if now and (new or not now.is_continuation):
            start = Step(now.to_continue)
            whole_s = round(max(math.ceil(start.score.duration_s / SLIDER_S) * SLIDER_S, 2 * LEAST_S), 2)
            from_s = stage.begins_s(start)
            at_s = whole_s if from_s >= start.score.duration_s else max(round(from_s, 2), LEAST_S)
            updates[self.controls.primer] = gr.update(maximum=whole_s, value=at_s, interactive=True)
            if at_s < whole_s:
                updates[self.status] = status_line(f"{about} {FINISHED.format(at_s)}")
        if now and new:
            updates |= {self.controls.model: now.music.model} | self._model(now.music.model) | self._layers_of(session)
            updates |= self.controls.lengths_of(now.to_continue) | self.controls.beside(now.music)
        return updates | {self.stage: self.studio.show(session)}

    def _layers_of(self, session: Session) -> Updates:
        each = [(f"layer {k}, each head", k) for k in range(self.studio.reader(session)[0].layers)]
        return {self.layer: gr.update(choices=[(ALL_HEADS, -1), *each], value=-1)}

    def _handler(self, action: Callable[..., Updates | Showing]) -> Callable[..., Iterator[Updates]]:
        """The action, with a person's mistakes in the status line; it shows nothing of a session that the person has
        left."""

        @wraps(action)
        def safely(visit: Visit, *args: Any, **kwargs: Any) -> Iterator[Updates]:
            try:
                with self.studio.work.action():
                    updates = action(visit, *args, **kwargs)
                    if not isinstance(updates, dict):
                        updates = yield from updates
                    if updates.get(self.visit, visit.session) is not visit.session:
                        updates = {}
                    yield {self.status: gr.skip()} | updates | {self.visit: visit}
            except UserError as error:
                yield {self.status: status_line(on_page(error), wrong=True)}

        return safely
