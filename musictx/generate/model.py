"""`musictx.Model`: a model that continues, fills or accompanies music in Python."""

from collections.abc import Iterator
from numbers import Integral
from pathlib import Path
from typing import TypeVar

from musictx.errors import ConfigError
from musictx.generate.accompanying import accompany_melody, check_request
from musictx.generate.continuing import Beginning, beginnings_of, continue_all, is_interrupted
from musictx.generate.control import Control
from musictx.generate.filling import as_continue, check_fills, gap_between, gap_of
from musictx.generate.melodies import melody_of
from musictx.generate.open_player import Playable, check_goes_on, player_of, source_player_of
from musictx.generate.primer import Part
from musictx.generate.requests import Accompany, Continue, Fill, Length, Request, Sampling
from musictx.generate.result import Music
from musictx.generate.score_music import ScoreMusic
from musictx.generate.score_tasks import check_files, draw_tasks, tasks_of
from musictx.model.header import BundleHeader
from musictx.model.settings import AUTO
from musictx.model.steps import Player
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer


class Model:
    """A model with its tokenizer. `header` names its corpus and licence."""

    def __init__(
        self, model: Playable, tokenizer: Tokenizer, header: BundleHeader | None = None, device: str = "cpu"
    ) -> None:
        self.model, self.tokenizer, self.header, self.device = model, tokenizer, header, device
        self._own = header.sampling if header is not None else {}

    @property
    def player(self) -> Player:
        return player_of(self.model, self.device)

    @property
    def origin(self) -> str:
        """The corpus and the licence of the weights."""
        return self.header.origin if self.header is not None else "unknown"

    def continue_midi(
        self,
        seed: str | Path | Score | None,
        /,
        *,
        seconds: float | None = None,
        bars: float | None = None,
        tokens: int | None = None,
        from_s: float | None = None,
        seed_seconds: float | None = None,
        seed_bars: int | None = None,
        seed_from: str = Part.side,
        start: str = Part.start,
        include_seed: bool = Continue.include_seed,
        variations: int = Continue.variations,
        random_seed: int = Continue.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        guard: bool = Sampling.guard,
        seed_guidance: float | str | None = AUTO,
        rules: Rules | None = None,
        control: Control | None = None,
        part: str | int | None = None,
        drums: bool = Continue.drums,
        window: int | None = None,
        rows_at_once: int = Continue.rows_at_once,
        humanize: bool = Request.humanize,
    ) -> list[Music]:
        """Continues a MIDI file, every one in a folder or pattern, a score, or nothing (None).

        `seed` may be "elise", "gymnopedie" or "chorale" too. A score has four beats a bar. Give at most one of
        `seconds`, `bars` and `tokens`; none means 20 seconds. `musictx generate --help` explains the other arguments.

        Units:
            `seconds`, `from_s` and `seed_seconds` in seconds, `bars` and `seed_bars` in bars of the seed.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        request = Continue(
            Sampling(temperature, top_k, top_p, min_p, guard, seed_guidance),
            Length(seconds, bars, tokens),
            rules=_given(rules, Rules, "rules"),
            control=_given(control, Control, "control").read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            humanize=humanize,
            window=window,
            drums=drums,
            only=_as_part(part),
            part=Part(seed_seconds, seed_bars, seed_from, from_s, start),
            include_seed=include_seed,
        )
        check_goes_on(self.model, self.header)
        if isinstance(self.tokenizer, ScoreTokenizer):
            return [*self._draw_scores("seed_midi", seed, request, self.tokenizer)]
        return self._draw(beginnings_of(seed, self.tokenizer, request), request)

    def fill(
        self,
        midi: str | Path | Score,
        /,
        *,
        from_s: float | None = None,
        to_s: float | None = None,
        from_bar: int | None = None,
        to_bar: int | None = None,
        variations: int = Fill.variations,
        random_seed: int = Fill.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        guard: bool = Sampling.guard,
        rules: Rules | None = None,
        control: Control | None = None,
        part: str | int | None = None,
        drums: bool = Fill.drums,
        window: int | None = None,
        rows_at_once: int = Fill.rows_at_once,
        humanize: bool = Request.humanize,
    ) -> list[Music]:
        """Replaces a region of a MIDI file or a score, `from_s` to `to_s` or `from_bar` to `to_bar`, by new music.

        Units:
            `from_s` and `to_s` in seconds, `from_bar` and `to_bar` in bars: the first is 1, the last is included.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        request = Fill(
            Sampling(temperature, top_k, top_p, min_p, guard),
            rules=_given(rules, Rules, "rules"),
            control=_given(control, Control, "control").read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            humanize=humanize,
            window=window,
            drums=drums,
            only=_as_part(part),
            from_s=from_s,
            to_s=to_s,
            from_bar=from_bar,
            to_bar=to_bar,
        )
        request.check_region()
        if isinstance(self.tokenizer, ScoreTokenizer):
            return [*self._draw_scores("infill", midi, request, self.tokenizer)]
        check_fills("this model", self.tokenizer)
        return self._fill(gap_of(midi, self.tokenizer, request), request)

    def fill_between(
        self,
        a: str | Path,
        b: str | Path,
        /,
        *,
        seconds: float | None = None,
        bars: float | None = None,
        variations: int = Fill.variations,
        random_seed: int = Fill.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        guard: bool = Sampling.guard,
        rules: Rules | None = None,
        control: Control | None = None,
        drums: bool = Fill.drums,
        window: int | None = None,
        rows_at_once: int = Fill.rows_at_once,
    ) -> list[Music]:
        """Joins two MIDI files, `a` and `b`, by `seconds` or `bars` of new music; none means 20 seconds.

        Raises:
            UserError: as the command does, in one line.
            KeyboardInterrupt: on Ctrl-C.
        """
        request = Fill(
            Sampling(temperature, top_k, top_p, min_p, guard),
            Length(seconds, bars),
            rules=_given(rules, Rules, "rules"),
            control=_given(control, Control, "control").read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            window=window,
            drums=drums,
        )
        if isinstance(self.tokenizer, ScoreTokenizer):
            check_files(between=f"{a},{b}")
        check_fills("this model", self.tokenizer)
        return self._fill(gap_between(a, b, self.tokenizer, request), request)

    def _fill(self, gap: Beginning, request: Fill) -> list[Music]:
        return self._draw([gap], as_continue(gap, request, self.player, self.header))

    def _draw(self, beginnings: list[Beginning], request: Continue) -> list[Music]:
        results = continue_all(beginnings, self.player, self.tokenizer, request, own=self._own)
        if is_interrupted(results, request.variations):
            raise KeyboardInterrupt
        return [music for each in results for music in each]

    def _draw_scores(
        self, field: str, score: object, request: Request, tokenizer: ScoreTokenizer
    ) -> Iterator[ScoreMusic]:
        tasks = tasks_of(field, score, tokenizer, request)
        for music in draw_tasks(tasks, self.player, tokenizer, self._own):
            yield from music

    def accompany(
        self,
        melody: str | Path | Score,
        /,
        *,
        part: str | int | None = None,
        voices: str = Accompany.voices,
        rewrite: str | None = None,
        from_bar: int | None = None,
        to_bar: int | None = None,
        transpose: int | str = Accompany.transpose,
        variations: int = Accompany.variations,
        random_seed: int = Accompany.random_seed,
        temperature: float = Sampling.temperature,
        top_k: int | None = None,
        top_p: float | str | None = AUTO,
        min_p: float | None = None,
        seed_guidance: float | str | None = AUTO,
        rules: Rules | None = None,
        control: Control | None = None,
        rows_at_once: int = Accompany.rows_at_once,
        humanize: bool = Request.humanize,
    ) -> list[Music]:
        """Writes the other voices around a melody; with a model of scores the hands that a score lacks.

        `melody` is a MIDI file, or a score in four beats a bar. Where several notes sound, the highest is the melody's.
        A model of scores takes a file alone, and hears all of its parts; `part` is the tune.

        Units:
            `transpose` in semitones, or auto.

        Raises:
            UserError: as the command does, in one line.
        """
        request = Accompany(
            Sampling(temperature, top_k, top_p, min_p, guard=False, seed_guidance=seed_guidance),
            rules=_given(rules, Rules, "rules"),
            control=_given(control, Control, "control").read(),
            random_seed=random_seed,
            variations=variations,
            rows_at_once=rows_at_once,
            only=_as_part(part),
            voices=voices,
            rewrite=rewrite,
            from_bar=from_bar,
            to_bar=to_bar,
            transpose=transpose,
            humanize=humanize,
        )
        if isinstance(self.tokenizer, ScoreTokenizer):
            return [*self._draw_scores("melody", melody, request, self.tokenizer)]
        request = check_request(request, self.tokenizer, self.header, "this model", self.model)
        tune = melody_of(melody, request, self.tokenizer)
        return [*accompany_melody(tune, source_player_of(self.model, self.device), self.tokenizer, request)]


T = TypeVar("T")


def _given(value: T | None, kind: type[T], name: str) -> T:
    """A person's value, or the usual one for None. Raises ConfigError for another type."""
    if value is not None and not isinstance(value, kind):
        raise ConfigError(name, got=type(value).__name__, allowed=f"musictx.{kind.__name__}(…) or None")
    return kind() if value is None else value


def _as_part(part: str | int | None) -> str | None:
    is_number = isinstance(part, Integral) and not isinstance(part, bool)
    return str(part) if is_number else part  # type: ignore[return-value]  # the request refuses a truth value
