"""Writes what goes with a melody as an `Accompany` asks: voices below it, or the rest of a song."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from musictx.errors import BundleError, ConfigError, TokenError, UserError
from musictx.generate.engine import enough_memory
from musictx.generate.requests import FARTHEST, Accompany
from musictx.generate.result import Music
from musictx.generate.song import WINDOW_S, draw_rest
from musictx.generate.voices import Report, draw_voices
from musictx.model.build import SOURCE, inputs_of
from musictx.model.bundle import BundleHeader
from musictx.model.protocol import SourceModel
from musictx.music.grid import REST, STEPS_PER_QUARTER, beside_grid, grid_to_score
from musictx.music.melody import Line, on_grid, together, top_line
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Meter, Score, marked
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import MelodyTokenizer
from musictx.tokenizers.rules import VOICE_RANGES

MOST_S = 1800.0  # of a song
FOR_CHORALES = "it is for models of chorales"


class Melody(NamedTuple):
    """The notes that are kept, and what the model hears of them."""

    name: str
    score: Score
    line: Line | None  # on the grid; None to a model that counts seconds
    meter: Meter
    file: Path | None


@dataclass(frozen=True, kw_only=True)
class Accompanied(Music):
    """A melody, note for note as it was given, and the new voices below it; `score` is both."""

    melody: Score
    voices: Score
    transposed: int  # semitones by which the model heard it higher

    @property
    def new(self) -> NDArray[np.bool_]:
        """(N,) which notes of `score` are the voices'."""
        return marked(self.melody, self.voices)[1]


def check_accompanies(model: Any, tokenizer: Tokenizer, objective: str, bundle: object) -> None:
    """Raises BundleError for a model that was not trained to write voices below a melody, or the rest of a song."""
    if inputs_of(model) != SOURCE or objective != "conditional":
        raise BundleError(
            f"{bundle} was trained for objective {objective}, and accompanies no melody",
            "give bundle=harmoniser, or one that was trained with objective=conditional",
        )
    if not isinstance(tokenizer, ChoraleTokenizer | MelodyTokenizer):
        raise BundleError(f"{bundle} has {tokenizer.name} tokens", "give one of chorale or performance-melody tokens")


def guided(request: Accompany, header: BundleHeader | None, tokenizer: Tokenizer, bundle: object) -> Accompany:
    """With the guidance that the bundle names, where it was left to that. Raises ConfigError for a model of songs, and
    for one that was never trained without a melody."""
    sampler = request.sampling.suited(header.sampling if header is not None else {})
    if sampler.strength and not tokenizer.voices:
        raise ConfigError("seed_guidance", got=sampler.strength, why=FOR_CHORALES, hint="leave it out")
    if sampler.strength and not (header is not None and header.hides_source):
        raise ConfigError(
            "seed_guidance",
            got=sampler.strength,
            why=f"{bundle} was not trained to write without a melody",
            hint="give bundle=harmoniser, train one with hide_source=0.1, or leave it out",
        )
    return replace(request, sampling=sampler)


def read_melody(path: Path, request: Accompany, tokenizer: Tokenizer) -> Melody:
    """The melody of a MIDI file. Raises MidiError for a file that is no music, and what `take_melody` does."""
    counts_beats = bool(tokenizer.voices)
    tracks = read_tracks(read_bytes(path), path, one_tempo=counts_beats)
    if counts_beats and tracks.tempo_map is not None and tracks.tempo_map.changes:
        print(f"{path}: its first tempo is used throughout, since the model counts beats")
    if said := tracks.remark():
        print(f"{path}: {said}")
    return take_melody(tracks.merge(drums=False), path, request, tokenizer, tracks.meter(), path.stem, path)


def take_melody(
    score: Score,
    source: object,
    request: Accompany,
    tokenizer: Tokenizer,
    meter: Meter,
    name: str = "melody",
    file: Path | None = None,
    say: Callable[[str], None] = print,
) -> Melody:
    """One line of notes that the model can hear, on its grid or in seconds; `say` gets what a person should know of it.
    Raises UserError, ConfigError and TokenError, which name the source."""
    score, left = one_line(score, source, request)
    meter, line = replace(meter, quarter_s=score.quarter_s), None
    request.control.say(source, Score.empty(), meter.bar_s, 0.0)
    if isinstance(tokenizer, ChoraleTokenizer):
        check_range(score, source, request, tokenizer)
        try:
            line = on_grid(score)
        except UserError as error:
            raise error.of(source) from None
    else:
        check_song(score, source, request)
    if left:  # said when nothing is refused any more
        say(f"{source}: its highest {len(score)} notes are the melody, the other {left} are left out")
    if line is not None and (beside := int(beside_grid(score).sum())):
        say(
            f"{source}: {beside} of its {len(score)} notes begin beside the sixteenths; the voices go by the nearest "
            "one, the melody stays as it is"
        )
    if line is not None and line.unheard:
        say(
            f"{source}: {line.unheard} of its {len(score)} notes share a sixteenth with a longer one; the voices go "
            "with that one, the melody keeps them all"
        )
    return Melody(name, score, line, meter, file)


def check_song(score: Score, source: object, request: Accompany) -> None:
    """Raises ConfigError and UserError for what a model of songs, which hears notes where they are, cannot take."""
    if request.transpose:
        raise ConfigError("transpose", got=request.transpose, why=FOR_CHORALES, hint="leave it out")
    if score.duration_s > MOST_S:
        length = f"{score.duration_s / 60:,.1f} minutes long, at most {MOST_S / 60:g} can be accompanied"
        raise UserError(f"{source}: {length}", "give a part of it")


def one_line(score: Score, source: object, request: Accompany) -> tuple[Score, int]:
    """The notes that are the melody, and how many others there are. Raises UserError for none, for several lines."""
    if not len(score):
        raise UserError(f"{source}: no notes to accompany", "give a file with a melody in it")
    if not (score.offset_s > score.onset_s).any():
        raise UserError(f"{source}: none of its {len(score)} notes lasts", "give a melody whose notes have lengths")
    if request.line == "highest":
        line = top_line(score)
        return line, len(score) - len(line)
    if len(both := together(score)):
        first = score.onset_s[both[0]] / score.quarter_s
        raise UserError(
            f"{source}: {len(both)} of its {len(score)} notes are struck while another sounds, the first at quarter "
            f"{first:.2f}, and a melody is one line",
            "line=highest takes its highest notes, or give a file of one line",
        )
    return score, 0


def check_range(score: Score, source: object, request: Accompany, tokenizer: ChoraleTokenizer) -> None:
    """Raises TokenError for pitches that no soprano sings or, without rules.voice_ranges, that have no token."""
    sung = request.rules.voice_ranges and request.rules.masks
    low, high = VOICE_RANGES[0] if sung else (tokenizer.lo, tokenizer.hi)
    pitch = score.pitch.astype(int)
    outside = (pitch + request.transpose < low) | (pitch + request.transpose > high)
    if not outside.any():
        return
    pitches = ", ".join(map(str, np.unique(pitch[outside]).tolist()))
    advice = "give one that is nearer, or narrower"
    if (best := nearest_within(pitch, low, high)) is not None:
        advice = f"transpose={best} lets the model hear it there"
    raise TokenError(
        f"{source}: notes of pitch {pitches} ({int(outside.sum())} of {len(score)}) lie outside the soprano's range "
        f"{low} … {high}",
        advice,
    )


def nearest_within(pitch: NDArray[np.integer], low: int, high: int) -> int | None:
    """By how many semitones, octaves first, all pitches come to lie from `low` to `high`; None where none do."""
    lowest, highest = int(pitch.min()), int(pitch.max())
    fits = [n for n in range(FARTHEST[0], FARTHEST[1] + 1) if low <= lowest + n and highest + n <= high]
    return min(fits, key=lambda n: (n % 12 != 0, abs(n)), default=None)


def accompany_melody(
    melody: Melody,
    model: SourceModel,
    tokenizer: Tokenizer,
    request: Accompany,
    report: Report = lambda done, of: None,
    window_s: float = WINDOW_S,
    device: str = "cpu",
) -> list[Accompanied]:
    """As many accompaniments as were asked for; a model that counts seconds hears `window_s` of them at once. Raises
    ConfigError, NanError, UserError."""
    if isinstance(tokenizer, MelodyTokenizer):
        how: dict[str, Any] = {"meter": melody.meter, "device": device, "report": report}
        rests = draw_rest(melody.score, model, tokenizer, request, window_s=window_s, **how)
        return [_together(melody, k, *rest) for k, rest in enumerate(rests, 1)]
    assert isinstance(tokenizer, ChoraleTokenizer)
    score, line = melody.score, melody.line
    assert line is not None
    heard = np.where(line.pitch == REST, REST, line.pitch + request.transpose)
    with enough_memory(min(request.rows_at_once, request.variations), "give a shorter melody"):
        where: dict[str, Any] = {"meter": melody.meter, "from_s": line.first * score.quarter_s / STEPS_PER_QUARTER}
        drawn = draw_voices(heard, model, tokenizer, score.quarter_s, request, **where, device=device, report=report)
    return [_music(melody, k, grid, mean_log_p, request.transpose) for k, (grid, mean_log_p) in enumerate(drawn, 1)]


def window_of(header: BundleHeader | None) -> float:
    """How many seconds of a song were in a bundle's windows in training."""
    return float(header.objective.get("seconds", WINDOW_S)) if header is not None else WINDOW_S


def _music(melody: Melody, k: int, grid: Any, mean_log_p: float, transposed: int) -> Accompanied:
    """The new voices, moved to where the melody is, and the melody itself."""
    assert melody.line is not None
    score, lower = melody.score, grid.copy()
    lower[:, 0] = REST
    lower[lower != REST] -= transposed
    voices = grid_to_score(lower, score.quarter_s)
    later_s = melody.line.first * score.quarter_s / STEPS_PER_QUARTER
    program = np.array(np.bincount(score.program).argmax())
    voices = replace(voices, onset_s=voices.onset_s + later_s, offset_s=voices.offset_s + later_s, program=program)
    return _together(melody, k, voices, mean_log_p, transposed)


def _together(melody: Melody, k: int, voices: Score, mean_log_p: float, transposed: int = 0) -> Accompanied:
    return Accompanied(
        Score.merge([melody.score, voices], melody.score.quarter_s),
        new_from_s=0.0,
        mean_log_p=mean_log_p,
        name=f"{melody.name}-{k}",
        signature=melody.meter.signature,
        seed=melody.file,
        melody=melody.score,
        voices=voices,
        transposed=transposed,
    )
