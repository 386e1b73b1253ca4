"""The actions of the page: each takes a Session and returns the next, or raises UserError."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Condition
from types import MappingProxyType
from typing import Any

from musictx.config.web import Limits
from musictx.errors import UserError, counted
from musictx.generate.accompanying import Accompanied
from musictx.generate.choose_bundle import choose_bundle, score_unless
from musictx.generate.continuation import Continuation
from musictx.generate.open_bundle import Opened
from musictx.generate.open_player import Accompanying, Playing
from musictx.generate.requests import Accompany, Continue, Fill
from musictx.generate.score_music import ScoreMusic
from musictx.model.build import can
from musictx.model.packaged import PIANO, SCORE
from musictx.model.steps import Player, SourcePlayer
from musictx.model.torch_steps import TorchPlayer, TorchSourcePlayer
from musictx.tokenizers.gap import knows_gaps
from musictx.web.advice import page_clauses
from musictx.web.arcs import AttentionReader, MelodyReader, ScoreReader
from musictx.web.draw import Report, Turn, draw_takes, fill_takes, harmonise, time_limit
from musictx.web.fit import fit, shorten
from musictx.web.scores import draw_bars, plays_scores
from musictx.web.session import PageMusic, Session, Step, examples, read_phrase
from musictx.web.stage import PEN, as_data, stage
from musictx.web.uploads import read_upload

Answer = Generator[Step, None, tuple[Session, str]]  # yields steps under way; the words say what became of it


class Studio:
    """The models of the page, and a folder for its music; all people share them."""

    def __init__(
        self,
        models: Mapping[str, Opened],
        folder: Path,
        limits: Limits = Limits(),  # noqa: B008 - it is immutable
        harmoniser: Opened | None = None,
        players: Mapping[str, Player] = MappingProxyType({}),
        source_player: SourcePlayer | None = None,
    ) -> None:
        """`models` and `harmoniser` show their attention; PyTorch plays them without `players` and `source_player`."""
        self.models, self.folder, self.limits, self.harmoniser = models, folder, limits, None
        if harmoniser is not None:
            model: Any
            model, tokenizer, header = harmoniser
            self.harmoniser = Accompanying(source_player or TorchSourcePlayer(model), tokenizer, header, ())
        self.readers = {
            name: AttentionReader(each.model if can(each.model, "readout") else None, each.tokenizer)
            for name, each in models.items()
        }
        self.melody_model = harmoniser.model if harmoniser else None
        self.playing = {
            name: Playing(players.get(name) or TorchPlayer(model), tokenizer, header, ())
            for name, (model, tokenizer, header) in models.items()
        }
        self.of_scores = next((name for name, each in models.items() if plays_scores(each.tokenizer)), None)
        self.examples = examples()
        self.work = Work()

    def upload(self, session: Session, data: bytes, name: str) -> Session:
        return self._begin(session, read_upload(data, name, self.limits))

    def example(self, session: Session, name: str) -> Session:
        return self._begin(session, self.examples[name])

    def phrase(self, session: Session, notes: Any) -> Session:
        return self._begin(session, read_phrase(notes), is_played=True)

    def go_on(self, session: Session, request: Continue, report: Report, model: str = "") -> Answer:
        """Continues the person's music with its own model, or another."""
        whole, turn = self._music_of(session, "no music to continue", lambda now: now.to_continue), self._turn(report)
        music = self.for_model(whole, model or whole.model)
        opened, takes = self.playing[music.model], tuple[Continuation, ...]()
        if plays_scores(opened.tokenizer):
            takes = draw_bars(music, request, opened, turn)
        else:
            takes = yield from draw_takes(music, request, opened, turn)
        sentence = self._sentence(takes, request.variations, f"of {music.name}", turn, CLICK)
        return session.push(Step(music, takes)), sentence + self._remark(music, whole, takes)

    def fill(self, session: Session, request: Fill, report: Report, model: str = "") -> Answer:
        """Writes a region of the music again."""
        now, turn = self._now(session, "no music to fill"), self._turn(report)
        whole = now.as_music
        if now.is_fill:
            whole = whole._replace(name=now.music.name)  # filled again
        music = self.for_model(whole, model or whole.model)
        opened, takes = self._filler(music.model), tuple[Continuation, ...]()
        if plays_scores(opened.tokenizer):
            takes = draw_bars(music, request, opened, turn)
        else:
            takes = yield from fill_takes(music, request, opened, turn)
        where = f"of {music.name} from {takes[0].new_from_s:.2f} to {takes[0].new_to_s:.2f} s"
        sentence = self._sentence(takes, request.variations, where, turn, "The rest is kept.")
        return session.push(Step(music, takes)), sentence + self._remark(music, whole, takes)

    def harmonise(self, session: Session, request: Accompany, report: Report) -> tuple[Session, str]:
        """Voices around the person's melody, and the outcome in words."""
        music, turn = self._music_of(session, "no melody", lambda now: now.to_accompany), self._turn(report)
        if self.harmoniser is None:
            raise UserError("no model here writes voices")
        takes, note = harmonise(music, request, self.harmoniser, turn)
        if turn.ending():
            raise UserError(ENDS)
        count = counted(len(takes), "accompaniment")
        what = f"{count} of {music.name}, in {turn.took_s:.1f} s. {note}"
        return session.push(Step(music, takes)), f"{what} Click a voice to see what it heard of the melody.".strip()

    def accompany(self, session: Session, request: Accompany, report: Report) -> tuple[Session, str]:
        """The hands that the person's tune lacks, by the model of scores, and the outcome in words."""
        whole, turn = self._music_of(session, "no tune", lambda now: now.to_accompany), self._turn(report)
        if self.of_scores is None:
            raise UserError("no model here writes a piano part")
        music = self.for_model(whole, self.of_scores)
        takes = draw_bars(music, request, self.playing[music.model], turn)
        sentence = self._sentence(takes, request.variations, f"of {music.name} with a piano", turn, "")
        return session.push(Step(music, takes)), sentence + self._remark(music, whole, takes)

    def _now(self, session: Session, without: str) -> Step:
        """The newest step. Raises UserError for none."""
        if session.now is None:
            raise UserError(f"there is {without} yet", "drop a file, pick an example or play a phrase")
        return session.now

    def _music_of(self, session: Session, without: str, of: Callable[[Step], PageMusic]) -> PageMusic:
        """The music of the newest step. Raises UserError for music longer than the page takes."""
        now = self._now(session, without)
        music = of(now)
        if music is not now.music and music.score.duration_s > self.limits.music_s:
            raise UserError(f"more than {self.limits.music_s:g} s are not taken here", "download the MIDI file")
        return music

    def _turn(self, report: Report) -> Turn:
        return Turn(self.limits, report, lambda: self.work.ending)

    def _filler(self, name: str) -> Playing:
        """The model of that name. Raises UserError for one that was not trained to fill."""
        able = [other for other, each in self.models.items() if knows_gaps(each.tokenizer.vocab)]
        if name in able:
            return self.playing[name]
        advice = f"choose {' or '.join(able)}" if able else NO_FILLER
        raise UserError(f"the model {name} was not trained to fill a region", advice)

    def _sentence(self, takes: tuple[Continuation, ...], variations: int, what: str, turn: Turn, then: str) -> str:
        """The outcome in words. Raises UserError at the end of the server, which has no time for pictures."""
        if turn.ending():
            raise UserError(ENDS)
        if stopped := {take.stopped for take in takes} - {""}:
            in_time = f"at the time limit of {self.limits.seconds:g} s"
            why = in_time if stopped == {time_limit(self.limits)} else f"early, {', '.join(sorted(stopped))}"
            return f"Stopped {why}: this is all the music so far."
        count = f"{len(takes)} of {variations}" if len(takes) < variations else str(len(takes))
        return f"{count} variation{'s' * (count != '1')} {what}, in {turn.took_s:.1f} s. {then}".strip()

    def _remark(self, music: PageMusic, before: PageMusic, takes: tuple[Continuation, ...]) -> str:
        notes, first = [music.note] if music.model != before.model else [], takes[0]
        more = [f"{page_clauses(each)}." for each in first.remarks] if isinstance(first, ScoreMusic) else []
        return "".join(f" {each}" for each in (*notes, *more) if each and (each in notes or each not in music.note))

    def begin_from_take(self, session: Session) -> Session:
        """The chosen take as music to begin with."""
        if session.now:
            self._music_of(session, "", lambda now: now.as_music)
        return session.go_on()

    def show(self, session: Session) -> str:
        """The HTML of the newest step."""
        return stage(session.now, self.folder, self.limits)

    def arcs(self, session: Session, note: int, layer: int | None) -> str:
        """The HTML of the arcs of note number `note`, from 0."""
        reader, now = self.reader(session)
        with PEN, TemporaryDirectory() as place:
            path = Path(place, "arcs.svg")
            reader.plot(now.score, now.name, note, layer, path)
            return f'<img alt="attention arcs" src="{as_data(path)}">'

    def reader(self, session: Session) -> tuple[AttentionReader, Step]:
        """The reader of attention for the newest step, and this step."""
        now = self._now(session, "no music")
        take = now.takes[now.chosen] if now.takes else None
        if isinstance(take, Accompanied) and self.harmoniser is not None:
            return MelodyReader(self.melody_model, self.harmoniser.tokenizer, take), now
        reader, file = self.readers[now.music.model], now.file or now.music.project
        if now.notation is not None and file is not None:
            return ScoreReader(reader.model, reader.tokenizer, now.notation, file.clock), now
        return reader, now

    def _begin(self, session: Session, music: PageMusic, is_played: bool = False) -> Session:
        """Begins with the model that suits the music. What a person just played is no score, though a few notes may lie
        on a grid by chance."""
        name, why = next(iter(self.models)), ""
        music = shorten(music, self.limits)
        if len(self.models) > 1:
            name, reason = self._choice(music, is_played)
            if name not in self.models:
                raise UserError(f"{reason}, and no model of this page plays such music", "quantise it in a DAW")
            why = f"The {name} model plays, since {reason}."
        model_music = self.for_model(music, name)
        note = " ".join(part for part in (music.note, model_music.note, why) if part)
        return session.push(Step(model_music._replace(note=note)))

    def _choice(self, music: PageMusic, is_played: bool) -> tuple[str, str]:
        """The model that suits the music, and the reason: a model of scores takes them from the piano."""
        reading, of_scores = music.reading(in_beats=True), self.of_scores
        choice = choose_bundle(reading.score, music.name, reading.parts)
        if choice.bundle != PIANO or of_scores is None:
            return choice
        choice = score_unless(lambda: self.for_model(music, of_scores), Path(music.name))
        if choice.bundle == SCORE and is_played:
            return PIANO, f"{music.name} has the time of hands"
        return of_scores if choice.bundle == SCORE else PIANO, choice.why

    def for_model(self, music: PageMusic, name: str) -> PageMusic:
        """The music in the notes of a model."""
        return music if music.model == name else fit(music, self.models[name].tokenizer)._replace(model=name)


CLICK = "Click a note to see which notes the model looked at."
NO_FILLER = "no model here can fill; start the page with one that was trained to"
ENDS = "the server ends just now"


class Work:
    """The actions under way; `ending` asks long ones to end, and the server waits for their files."""

    def __init__(self) -> None:
        self.ending = False
        self._under_way, self._changed = 0, Condition()

    @contextmanager
    def action(self) -> Iterator[None]:
        """Counts one action. Raises UserError at the end."""
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
        """Waits until no action is under way."""
        self.ending = True
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way)
