"""Accompaniments as an `Accompany` asks: voices around a melody."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import BundleError, ConfigError
from musictx.generate.choir import Harmonisation, Report, draw_around
from musictx.generate.engine import enough_memory
from musictx.generate.melodies import Melody, Rewrite
from musictx.generate.open_player import check_accompanies
from musictx.generate.outcome import outcome
from musictx.generate.requests import Accompany
from musictx.generate.result import Music, Place
from musictx.model.header import BundleHeader
from musictx.model.onnx.player import OnnxSourcePlayer
from musictx.model.steps import SourcePlayer
from musictx.music.gap import GapNotes, fill_in
from musictx.music.grid import N_VOICES, OPEN, REST, STEPS_PER_QUARTER, VOICES, Grid, grid_to_score, lines_of_grid
from musictx.music.project import Line, Project
from musictx.music.score import Score, merge_marked
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.waiting import reporting


@dataclass(frozen=True, kw_only=True, eq=False)
class Accompanied(Music):
    """An unchanged melody and the new voices around it; `score` is both."""

    melody: Score
    voices: Score
    transposed: int  # semitones by which the model heard it higher
    melody_voices: str  # the voices that it is, as in SB
    grid: Grid  # (S, 4) of all voices, untransposed
    rewrite: Rewrite | None = None  # the replaced part of the file

    @property
    def region_s(self) -> tuple[float, float]:
        """Where bars were written again; else nowhere."""
        return (np.inf, np.inf) if self.rewrite is None else (self.rewrite.from_s, self.rewrite.to_s)

    @property
    def new_notes(self) -> Score:
        return self.voices

    @property
    def given_notes(self) -> Score:
        return self.melody

    @property
    def new(self) -> NDArray[np.bool_]:
        """(N,) which notes of `score` are the voices'."""
        return merge_marked(self.melody, self.voices)[1]

    def midi(self, text: str = "", *, alone: bool = False, pedal: bool = False) -> bytes:
        """The person's MIDI file with the voices, rewritten ones on their tracks, new ones on their own."""
        place, lines = self.place, self.tracks(self.voices, self.lines)
        if place is None or alone:
            whole = Project.new(self.score.quarter_s, self.signature)
            return whole.beside([Line("melody", self.melody), *lines], text, pedal=pedal)
        if (rewrite := self.rewrite) is not None:
            new = [(part, self.lines[voice]) for voice, part in rewrite.parts.items()]
            new = new or place.project.by_register(self.voices)
            gap = GapNotes(
                new, rewrite.remainder, rewrite.from_s, rewrite.to_s, place.step_s, [*rewrite.parts.values()]
            )
            return fill_in(place.project, gap, text, pedal=pedal)
        return place.project.with_only(self.melody).beside(lines, text, pedal=pedal)


def check_request(
    request: Accompany, tokenizer: Tokenizer, header: BundleHeader | None, bundle: object, model: object = None
) -> Accompany:
    """The request with the rules of a choir and the bundle's own sampling. Raises BundleError for an unfit model,
    ConfigError for settings that it cannot keep."""
    check_accompanies(header, bundle, model)
    request.refuse_humanize()
    if not isinstance(tokenizer, ChoraleTokenizer) or _source_voices(header, model) != N_VOICES:
        hint = "give bundle=harmoniser, or one that was trained with objective=voices"
        raise BundleError(f"{bundle} does not hear {N_VOICES} voices of a chorale", hint)
    sampler = request.sampling.suited(header.sampling if header is not None else {})
    if sampler.strength and not (header is not None and header.hides_source):
        raise ConfigError(
            "seed_guidance",
            got=sampler.strength,
            why=f"{bundle} was not trained to write without a melody",
            hint="give bundle=harmoniser, train one with hide_source=0.1, or leave it out",
        )
    return replace(request, sampling=sampler, rules=request.rules.beside_melody())


def _source_voices(header: BundleHeader | None, model: object) -> Any:
    """The number of voices in a model's source."""
    if header is not None:
        return header.model.get("source_voices", 1)
    if isinstance(model, OnnxSourcePlayer):
        return model.config.source_voices
    from musictx.model.build import source_voices  # PyTorch

    return source_voices(model)


def accompany_melody(
    melody: Melody,
    player: SourcePlayer,
    tokenizer: Tokenizer,
    request: Accompany,
    report: Report | None = None,
) -> list[Accompanied]:
    """The requested accompaniments. Raises ConfigError, NanError and UserError."""
    assert isinstance(tokenizer, ChoraleTokenizer)  # check_request refuses others
    how: dict[str, Any] = {"meter": melody.meter, "report": report or reporting("writing voices")}
    template = np.where(melody.grid >= 0, melody.grid + melody.transpose, melody.grid)
    quarter_s = melody.score.quarter_s
    each, from_s = request.rows_each, melody.first * quarter_s / STEPS_PER_QUARTER
    rows = max(min(request.rows_at_once, request.variations * each), each)
    with enough_memory(rows, "give a shorter melody", each):
        harmonisations = draw_around(
            template, player, tokenizer, quarter_s, request, from_s=from_s, higher=melody.transpose, **how
        )
    return [_accompanied(melody, k, voices, request) for k, voices in enumerate(harmonisations, 1)]


def _accompanied(melody: Melody, k: int, harmonisation: Harmonisation, request: Accompany) -> Accompanied:
    score, template = melody.score, melody.grid
    new = np.where(template == OPEN, harmonisation.grid, REST)
    new[new != REST] -= melody.transpose
    later_s = melody.first * score.quarter_s / STEPS_PER_QUARTER
    program = np.array(np.bincount(score.program).argmax() if len(score) else 0)
    voices, *lines = (
        replace(each, onset_s=each.onset_s + later_s, offset_s=each.offset_s + later_s, program=program)
        for each in (grid_to_score(new, score.quarter_s), *lines_of_grid(new, score.quarter_s))
    )
    silence = np.full((melody.first, N_VOICES), REST, np.int16)
    whole = np.concatenate([silence, np.where(template == OPEN, new, template)])
    lines_s = request.control.lines_s(melody.meter, 0.0)[1]
    chords, summary = outcome(request.control, voices, 0.0, score.duration_s, lines_s)
    if request.rewrite is not None:  # other bars were not asked for
        chords = tuple(chord for chord in chords if chord.share is not None)
    stay = "".join(voice for voice in VOICES if voice not in request.rewrite) if request.rewrite else request.voices
    return Accompanied(
        Score.merge([score, voices], score.quarter_s),
        new_from_s=0.0,
        mean_log_p=harmonisation.mean_log_p,
        chords=chords,
        became=summary,
        name=f"{melody.name}-{k}",
        signature=melody.meter.signature,
        meter=melody.meter,
        seed=melody.file,
        place=Place(melody.project, step_s=score.quarter_s / STEPS_PER_QUARTER) if melody.project else None,
        rewrite=melody.rewrite,
        remarks=melody.remarks,
        melody=score,
        voices=voices,
        lines=tuple(lines),
        grid=whole,
        transposed=melody.transpose,
        melody_voices=stay,
    )
