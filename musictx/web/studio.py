"""What the page can do, without a page: every action takes a Session and returns the next one, or raises UserError."""

import random
import time
from pathlib import Path
from typing import Any

from musictx.errors import UserError
from musictx.model.protocol import LanguageModel
from musictx.sampling.streams import MAX_SEED
from musictx.tokenizers import Tokenizer
from musictx.web.attention import Point, Reader
from musictx.web.draw import Tell, Wish, draw_takes, fit
from musictx.web.examples import examples
from musictx.web.files import PEN, as_data, new_place
from musictx.web.keyboard import read_played
from musictx.web.limits import Limits
from musictx.web.session import Music, Session, Step
from musictx.web.stage import stage
from musictx.web.upload import read_upload
from musictx.web.work import ENDS, Work


class Studio:
    """A model and a folder for what is made with it, shared by everybody at the page."""

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, folder: Path, limits: Limits = Limits()) -> None:  # noqa: B008 - it is immutable
        self.model, self.tokenizer, self.folder, self.limits = model, tokenizer, folder, limits
        self.reader = Reader(model, tokenizer)
        self.examples = examples()
        self.work = Work()

    def upload(self, session: Session, data: bytes, name: str) -> Session:
        return self._begin(session, read_upload(data, name, self.limits, self.tokenizer.metrical))

    def example(self, session: Session, name: str) -> Session:
        if name not in self.examples:
            raise UserError(f"there is no example {name!r}: choose one of {', '.join(self.examples)}")
        return self._begin(session, self.examples[name])

    def played(self, session: Session, notes: Any) -> Session:
        return self._begin(session, read_played(notes))

    def go_on(self, session: Session, wish: Wish, tell: Tell) -> tuple[Session, str]:
        """Continues the newest music; and what became of it in words."""
        if session.now is None:
            raise UserError("there is no music to continue yet: drop a file, pick an example or play a phrase")
        music, began = session.now.music, time.monotonic()
        chance = random.randint(0, MAX_SEED)

        def tell_on(seconds: float) -> None:
            if self.work.ending:
                raise KeyboardInterrupt  # the server was told to end: so does the drawing
            tell(seconds)

        takes = draw_takes(music, wish, self.model, self.tokenizer, self.limits, chance, tell_on)
        if self.work.ending:
            raise UserError(ENDS)  # to picture it, and to write its sound, would take longer than to draw it
        took = f"{len(takes)} of {wish.variations} variations" if len(takes) < wish.variations else ""
        took = took or ("1 variation" if len(takes) == 1 else f"{len(takes)} variations")
        told = f"{took} of {music.name}, in {time.monotonic() - began:.1f} s. Click a note to see what it comes from."
        if any(take.stopped for take in takes):
            told = f"Stopped at the time limit of {self.limits.seconds:g} s: this is what there was by then."
        return session.push(Step(music, takes)), told

    def begin_from_take(self, session: Session) -> Session:
        """The chosen continuation as music to begin with."""
        if session.now and session.now.score.duration_s > self.limits.music_s:
            raise UserError(f"more than {self.limits.music_s:g} s are not continued here: take it home as MIDI")
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
            self.reader.draw(session.now.score, session.now.name, note, layer, path)
        return f'<img alt="attention arcs" src="{as_data(path)}">'

    def note_at(self, session: Session, at: Point) -> int:
        return self.reader.nearest(session.now.score, at) if session.now else 0

    def count_notes(self, session: Session) -> int:
        return len(self.reader.traced(session.now.score).score) if session.now else 0

    def _begin(self, session: Session, music: Music) -> Session:
        return session.push(Step(fit(music, self.tokenizer, self.limits)))
