"""The recipe for one MIDI file, in a reader process: read, select tracks, filter, encode."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from musictx.config.prepare import FilterConfig, SelectConfig
from musictx.data.similar import signature
from musictx.errors import ConfigError, MidiError, TokenError
from musictx.music.notation.notation import Notation
from musictx.music.read import read_tracks, score_of
from musictx.music.score import DRUMS, Score
from musictx.music.ticks import Tracks
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.score import ScoreTokenizer

Encoded = tuple[bytes, float, bytes] | str  # ids, seconds, signature; or the reason to drop the file
Encode = Callable[[bytes, str], Encoded]  # of a file and its name, by which notation may be known
PIANOS = range(8)
POLICIES = ("merge", "piano", "longest")


@dataclass(frozen=True)
class Recipe:
    """All settings on which the result of a file depends; its text is part of the journal's key."""

    tokenizer: Tokenizer
    select: SelectConfig
    filters: FilterConfig

    def __str__(self) -> str:
        settings = {"tokenizer": self.tokenizer.name, "select": asdict(self.select), "filters": asdict(self.filters)}
        return json.dumps([settings, self.tokenizer.vocab.fingerprint], sort_keys=True)


def encode_midi(data: bytes, source: str, recipe: Recipe) -> Encoded:
    """A file as (ids, seconds, signature), or the reason to drop it: a kind, a colon, details."""
    try:
        tracks = read_tracks(data, source, one_tempo=recipe.tokenizer.metrical)
        score = choose(tracks, recipe.select)
        if not len(score):
            return "no notes" if not any(len(t.score) for t in tracks.tracks) else "no notes in the chosen tracks"
        if reason := fault(score, recipe.filters):
            return reason
        return recipe.tokenizer.encode(score).tobytes(), score.duration_s, signature(score).tobytes()
    except MidiError as error:
        return error.reason
    except TokenError as error:
        return f"cannot be written in {recipe.tokenizer.name} tokens: {error}"


def encode_score(data: bytes, source: str) -> Encoded:
    """A score as (ids, seconds, signature), or the reason to drop it."""
    try:
        return encoded(score_of(data, source)[0])
    except MidiError as error:
        return error.reason


def encoded(notation: Notation) -> Encoded:
    """`encode_score` of what is read."""
    tokenizer = ScoreTokenizer()
    try:
        ids = tokenizer.encode_notation(notation)
    except TokenError as error:
        return f"cannot be written in {tokenizer.name} tokens: {error}"
    seconds = tokenizer.seconds(ids, 60 / notation.tempi[0].quarters_a_minute)
    return ids.tobytes(), seconds, signature(tokenizer.decode(ids)).tobytes()


def choose(tracks: Tracks, select: SelectConfig) -> Score:
    """The selected tracks of a file together."""
    selection = [
        track
        for track in tracks.tracks
        if len(track.score)
        and (select.drums or not track.is_drums)
        and (select.programs is None or track.is_drums or track.program in select.programs)
        and (select.tracks != "piano" or track.program in PIANOS)
        and (select.names is None or track.name.strip() in select.names)
    ]
    if select.tracks == "longest":
        selection = sorted(selection, key=lambda track: -len(track.score))[:1]
    return Score.merge([track.score for track in selection], tracks.quarter_s)


def check_select(select: SelectConfig) -> None:
    """Raises ConfigError for an unknown policy or program."""
    if select.tracks not in POLICIES:
        raise ConfigError("tracks", got=select.tracks, allowed=f"one of {', '.join(POLICIES)}")
    if wrong := [p for p in select.programs or [] if not 0 <= p < DRUMS]:
        raise ConfigError("programs", got=wrong[0], allowed="0 to 127", hint="drums=true adds drums")


def check_filters(filters: FilterConfig) -> None:
    """Raises ConfigError for a limit below 0 or without a number."""
    for name, value in vars(filters).items():
        if value is not None and not 0 <= value < float("inf"):  # refuses NaN too
            raise ConfigError(name, got=value, allowed="0 or more, or null for no limit")


def fault(score: Score, filters: FilterConfig) -> str | None:
    """The reason why the filters drop a piece; None where they keep it."""
    length_s = max(score.duration_s, 1e-3)
    density = len(score) / length_s
    low, high = int(score.pitch.min()), int(score.pitch.max())
    for what, value, least, most, unit in (
        ("few notes", len(score), filters.min_notes, None, ""),
        ("short", length_s, filters.min_seconds, None, " s"),
        ("long", length_s, None, filters.max_seconds, " s"),
        ("sparse", density, filters.min_notes_per_second, None, " notes a second"),
        ("dense", density, None, filters.max_notes_per_second, " notes a second"),
        ("silent for long", longest_silence_s(score), None, filters.max_silence_seconds, " s"),
        ("low", low, filters.lowest_pitch, None, ""),
        ("high", high, None, filters.highest_pitch, ""),
        ("narrow", high - low, filters.min_pitch_span, None, " semitones"),
        ("stuck", longest_run(score), None, filters.max_repeats, " strikes of one pitch"),
    ):
        limit = least if least is not None else most
        if limit is not None and (value < limit if least is not None else value > limit):
            return f"too {what}: {value:.4g}{unit}, the limit is {limit:g}"
    return None


def longest_silence_s(score: Score) -> float:
    """The longest silence after the first onset."""
    until = np.maximum.accumulate(score.offset_s)
    return float(np.max(score.onset_s[1:] - until[:-1], initial=0.0))


def longest_run(score: Score) -> int:
    """The most notes of one pitch in a row."""
    breaks = np.flatnonzero(np.diff(score.pitch.astype(int))) + 1
    return int(np.diff(np.concatenate([[0], breaks, [len(score)]])).max(initial=0))
