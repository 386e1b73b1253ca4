"""What the page can do, without a page: every action takes a Session and returns the next one, or raises UserError.

Actions under way are counted, so that the end of the server can wait for the files that they write.
"""

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import Any

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.accompanying import Accompanied
from musictx.generate.draw import Continuation
from musictx.generate.open_bundle import choose_bundle
from musictx.generate.requests import MAX_SEED, UNSAID, Own
from musictx.web.draw import Ready, Region, Report, Wish, can_fill, draw_takes, fill_takes, fit, shorten, went_by
from musictx.web.harmonise import AttentionReader, Harmoniser, MelodyReader, Point, ReportOf, VoicesWish, harmonise
from musictx.web.session import PageMusic, Session, Step, examples, read_played
from musictx.web.stage import PEN, as_data, new_place, stage
from musictx.web.uploads import read_upload

Models = Mapping[str, Ready]


class Studio:
    """Models by their names, the sampler's settings that their bundles name, and a folder for what they make. All
    people at the page share these."""

    def __init__(
        self,
        models: Models,
        folder: Path,
        limits: Limits = Limits(),  # noqa: B008 - it is immutable
        harmoniser: Harmoniser | None = None,
        own: Mapping[str, Own] | None = None,
    ) -> None:
        self.models, self.folder, self.limits, self.harmoniser = models, folder, limits, harmoniser
        self.own = own or {}
        self.melody_reader = MelodyReader(harmoniser.model, harmoniser.tokenizer) if harmoniser else None
        self.readers = {name: AttentionReader(model, tokenizer) for name, (model, tokenizer, _) in models.items()}
        self.examples = examples()
        self.work = Work()

    def upload(self, session: Session, data: bytes, name: str) -> Session:
        return self._begin(session, read_upload(data, name, self.limits))

    def example(self, session: Session, name: str) -> Session:
        if name not in self.examples:
            raise UserError(f"there is no example {name!r}", f"choose one of {', '.join(self.examples)}")
        return self._begin(session, self.examples[name])

    def played(self, session: Session, notes: Any) -> Session:
        return self._begin(session, read_played(notes))

    def go_on(self, session: Session, wish: Wish, report: Report) -> tuple[Session, str]:
        """Continues the newest music; and what became of it in words."""
        if session.now is None:
            raise UserError("there is no music to continue yet", START)
        music, began = self._heard(session.now.music, wish.model or session.now.music.model), time.monotonic()
        ready, own, chance = self.models[music.model], self.own.get(music.model, UNSAID), random.randint(0, MAX_SEED)
        takes = draw_takes(music, wish, ready, self.limits, chance, report, lambda: self.work.ending, own)
        said = self._sentence(takes, wish, f"of {music.name}", began, CLICK)
        if music.model != session.now.music.model:
            said = f"{said} {music.note}".strip()
        return session.push(Step(music, takes)), said

    def fill(self, session: Session, region: Region, wish: Wish, report: Report) -> tuple[Session, str]:
        """Writes a region of the music again; and what became of it in words."""
        if session.now is None:
            raise UserError("there is no music to fill yet", START)
        now, whole = session.now, session.now.as_music
        if now.filled:
            whole = whole._replace(name=now.music.name)  # filled again
        music, began = self._heard(whole, wish.model or whole.model), time.monotonic()
        ready, own, chance = self._filling(music.model), self.own.get(music.model, UNSAID), random.randint(0, MAX_SEED)
        takes = fill_takes(music, region, wish, ready, self.limits, chance, report, lambda: self.work.ending, own)
        where = f"of {music.name} from {takes[0].new_from_s:.2f} to {takes[0].new_to_s:.2f} s"
        said = self._sentence(takes, wish, where, began, "The rest is kept.")
        if music.model != whole.model:
            said = f"{said} {music.note}".strip()
        return session.push(Step(music, takes)), said

    def _filling(self, name: str) -> Ready:
        """The model of that name. Raises UserError for one that was not trained to fill."""
        if can_fill(self.models[name]):
            return self.models[name]
        able = [other for other, ready in self.models.items() if can_fill(ready)]
        advice = f"choose {' or '.join(able)}" if able else NO_FILLER
        raise UserError(f"the model {name} was not trained to fill a region", advice)

    def _sentence(self, takes: tuple[Continuation, ...], wish: Wish, what: str, began: float, then: str) -> str:
        """What became of it. Raises UserError at the end of the server: to picture it, and to write its sound, would
        take longer than to draw it."""
        if self.work.ending:
            raise UserError(ENDS)
        if stopped := {take.stopped for take in takes} - {""}:
            in_time = f"at the time limit of {self.limits.seconds:g} s"
            why = in_time if stopped == {went_by(self.limits)} else f"early, {', '.join(sorted(stopped))}"
            return f"Stopped {why}: this is all the music so far."
        took = f"{len(takes)} of {wish.variations} variations" if len(takes) < wish.variations else ""
        took = took or ("1 variation" if len(takes) == 1 else f"{len(takes)} variations")
        return f"{took} {what}, in {time.monotonic() - began:.1f} s. {then}"

    def harmonise(self, session: Session, wish: VoicesWish, report: ReportOf) -> tuple[Session, str]:
        """Voices below the newest music; and what became of it in words."""
        if session.now is None or self.harmoniser is None:
            raise UserError("there is no melody yet", START)
        music, began = session.now.music, time.monotonic()
        chance = random.randint(0, MAX_SEED)
        ending = lambda: self.work.ending  # noqa: E731
        takes, note = harmonise(music, wish, self.harmoniser, self.limits, chance, report, ending)
        if self.work.ending:
            raise UserError(ENDS)
        made = "1 accompaniment" if len(takes) == 1 else f"{len(takes)} accompaniments"
        what = f"{made} of {music.name}, in {time.monotonic() - began:.1f} s. {note}"
        return session.push(Step(music, takes)), f"{what} Click a voice to see what it heard of the melody.".strip()

    def begin_from_take(self, session: Session) -> Session:
        """The chosen continuation as music to begin with."""
        if session.now and session.now.score.duration_s > self.limits.music_s:
            raise UserError(f"more than {self.limits.music_s:g} s are not continued here", "download the MIDI file")
        return session.go_on()

    def show(self, session: Session) -> str:
        """The HTML of the newest step."""
        return stage(session.now, self.folder)

    def arcs(self, session: Session, note: int, layer: int | None) -> str:
        """The HTML of what the model looked at for the note number `note`, counted from 0."""
        if session.now is None:
            return ""
        path = new_place(self.folder) / "arcs.svg"
        with PEN:
            self._reader(session).plot(session.now.score, session.now.name, note, layer, path)
        return f'<img alt="attention arcs" src="{as_data(path)}">'

    def note_at(self, session: Session, at: Point) -> int:
        return self._reader(session).nearest(session.now.score, at) if session.now else 0

    def count_notes(self, session: Session) -> int:
        return len(self._reader(session).traced(session.now.score).score) if session.now else 0

    def count_layers(self, session: Session) -> int:
        """Of the model that hears the newest music; before there is any, of the deepest."""
        return self._reader(session).layers if session.now else max(r.layers for r in self.readers.values())

    def _reader(self, session: Session) -> AttentionReader:
        assert session.now is not None
        take = session.now.takes[session.now.chosen] if session.now.takes else None
        if isinstance(take, Accompanied) and self.melody_reader is not None:
            return self.melody_reader.hearing(take.transposed)
        return self.readers[session.now.music.model]

    def _begin(self, session: Session, music: PageMusic) -> Session:
        """With the model that suits the music, as `generate` chooses it."""
        name, why = next(iter(self.models)), ""
        music = shorten(music, self.limits)
        if len(self.models) > 1:
            name, reason = choose_bundle(music.written.score if music.written else music.score, music.name)
            why = f"The {name} model plays, since {reason}."
        heard = self._heard(music, name)
        note = " ".join(part for part in (music.note, heard.note, why) if part)
        return session.push(Step(heard._replace(note=note)))

    def _heard(self, music: PageMusic, name: str) -> PageMusic:
        """The music as the model of that name hears it. Raises UserError for a model that is not here."""
        if name not in self.models:
            raise UserError(f"there is no model {name!r}", f"choose one of {', '.join(self.models)}")
        return music if music.model == name else fit(music, self.models[name][1])._replace(model=name)


CLICK = "Click a note to see which notes the model looked at."
NO_FILLER = "no model here can fill; start the page with one trained by objective=infill"
ENDS = "the server ends just now"
START = "drop a file, pick an example or play a phrase"


class Work:
    """Counts actions. `ending` asks long ones to end."""

    def __init__(self) -> None:
        self.ending = False
        self._under_way, self._changed = 0, Condition()

    @contextmanager
    def action(self) -> Iterator[None]:
        """The time of one action. Raises UserError when the end has come."""
        with self._changed:
            if self.ending:
                raise UserError(ENDS)
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Returns when nothing is under way any more."""
        self.ending = True
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way)
