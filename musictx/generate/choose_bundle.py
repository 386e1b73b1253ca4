"""The choice of a packaged model: chorale for four voices on a grid, score for other scores, piano for all else."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from musictx.errors import ConfigError, PerformanceError, ScoreError, TokenError, UserError, as_word
from musictx.generate.melodies import one_line
from musictx.generate.primer import ROUNDED_S, borders_s
from musictx.generate.requests import Accompany, Fill, NewMusic, Request
from musictx.generate.score_seeds import read_score
from musictx.generate.score_tasks import check_files, check_kept
from musictx.generate.score_templates import accompanied
from musictx.generate.seeds import check_sounds, heard_part
from musictx.generate.texture import not_a_choir
from musictx.model.header import FREE as LICENCES
from musictx.model.header import BundleHeader
from musictx.model.packaged import CHORALE, HARMONISER, PIANO, SCORE, packaged_bundle
from musictx.music.beat_grid import SWING
from musictx.music.grid import FULL, beside_grid, fullness, quantise, score_to_grid
from musictx.music.project import Project
from musictx.music.read import notation_in, read_bytes, read_tracks, whole
from musictx.music.score import Meter, Score
from musictx.music.ticks import Tracks
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.rules import CHOIR_RULES, OFF
from musictx.tokenizers.score import ScoreTokenizer

ORNAMENTS = 0.05  # share of notes that may begin beside the grid; at most 0.012 in the chorales of music21
FREE = "free"  # of `licence=`
OF_VOICES = ("voices", "rewrite", "from_bar", "to_bar", "transpose")  # of a request to a choir


class Choice(NamedTuple):
    bundle: str
    why: str  # "" where a person names the bundle

    @property
    def remark(self) -> str:
        if not self.why:
            return ""
        return f"no bundle= is given: the {self.bundle} model inside musictx plays, since {self.why}"


def choose_bundle(music: Score, name: object, parts: Sequence[Score] = ()) -> Choice:
    """The model for the music called `name` and its parts, also drums, and the reason."""
    otherwise = not_four_voices(music) or not_a_choir(music, parts)
    if otherwise:
        return Choice(PIANO, f"{name} is not four voices on a grid: {otherwise}")
    beside = int(beside_grid(music).sum())
    but = f", except for {beside} of its {len(music)} notes" if beside else ""
    return Choice(CHORALE, f"{name} is four voices on a grid{but}")


def not_four_voices(music: Score) -> str:
    """The reason why music is not four voices on a grid, but for a few ornaments; "" if it is."""
    if not len(music):
        return "there are no notes"
    beside = np.flatnonzero(beside_grid(music))
    if len(beside) > ORNAMENTS * len(music):
        first = music.onset_s[beside[0]] / music.quarter_s
        return f"{len(beside)} of {len(music)} notes begin beside the sixteenths, the first at quarter {first:.2f}"
    try:
        grid = score_to_grid(quantise(music).score)
        ChoraleTokenizer().encode_grid(grid)
    except TokenError as error:
        return error.what  # the mistake, without the advice
    return f"all four sound in {full:.0%} of it" if (full := fullness(grid)) < FULL else ""


def name_bundle(
    bundle: str | None,
    seeds: Iterable[Path],
    drums: bool = False,
    *,
    played: bool = False,
    request: NewMusic | None = None,
    pedal: bool = False,
    between: str | None = None,
    licence: str | None = None,
) -> Choice:
    """The bundle that a person names, or else the one that suits all seeds; `played` ones in seconds, not beats.
    Scores have their own only for a `request`. Raises MidiError for an unreadable seed, UserError where none has notes,
    ConfigError where the piano's weights are the only ones and `licence` is free."""
    if bundle is not None:
        return Choice(bundle, "")
    choice: Choice | None = None
    silent: tuple[Path, Tracks] | None = None
    seeds = [*seeds]
    for seed in seeds:
        tracks = read_tracks(read_bytes(seed), seed, one_tempo=not played)
        music = tracks.merge(drums)
        if not len(music):  # no model plays it, so it has no voice
            silent = silent or (seed, tracks)
            continue
        found = choose_bundle(music, seed.name, [track.score for track in tracks.tracks])
        if request is not None and request.only is not None:
            alone = heard(seed, request.only, tracks, not played).merge(drums)
            found = choose_bundle(alone, seed.name) if found.bundle == CHORALE else found
        if found.bundle == CHORALE and isinstance(request, Fill) and ends_music(request, music, tracks.meter(), seed):
            if score_or_piano(seed, request, pedal, between).bundle == SCORE:
                found = Choice(SCORE, f"the chorale model needs music after the bars of {seed.name} that it fills")
        elif request is not None and (found.bundle == PIANO or request.humanize):  # humanize= is for scores
            found = score_or_piano(seed, request, pedal, between)
        if choice is None or found.bundle != CHORALE:  # a chorale is a score too
            choice = found
        if choice.bundle == PIANO:
            break
    if choice is None and silent is not None:
        file, tracks = silent
        check_sounds(tracks, drums, file)
    choice = choice or Choice(PIANO, "there is no seed")
    if choice.bundle == PIANO and len(seeds) > 1 and between is None:
        choice = choice._replace(
            why=f"{choice.why}; one model plays all seeds, and scores alone may get that of scores"
        )
    if licence == FREE and choice.bundle == PIANO:
        why = f"{choice.why}, so only the piano model plays, whose weights may not be sold"
        allowed = "null, or a quantised seed and settings that models of scores keep"
        if between is not None:
            why = "only the piano model joins two files, and its weights may not be sold"
            allowed = "null, or both as one score, with empty bars between them, to infill="
        raise ConfigError("licence", got=licence, why=why, allowed=allowed)
    packaged_bundle(choice.bundle)  # raises here if the package lacks it, before a line promises it
    return choice


def ends_music(request: Fill, music: Score, meter: Meter, seed: Path) -> bool:
    """Whether a gap in bars goes on to the end of the music. Raises ConfigError for bars that are not there."""
    if request.from_bar is None or request.to_bar is None:
        return False
    return borders_s(request.from_bar, request.to_bar, music, meter, seed)[1] > music.duration_s - ROUNDED_S


def heard(seed: Path, part: str, tracks: Tracks, one_tempo: bool) -> Tracks:
    """The music of one part of a seed. Raises ConfigError without such a part."""
    data = read_bytes(seed)
    return heard_part(
        Project(whole(data, seed), tracks.tempo_map, part, notation=notation_in(data, seed)), seed, one_tempo
    )


def score_or_piano(seed: Path, request: Request, pedal: bool = False, between: str | None = None) -> Choice:
    """The model of scores, if this is one, and only settings are asked for that it keeps."""

    def check() -> None:
        check_files(between=between)
        try:
            score = read_score(seed, ScoreTokenizer(), tune=request.only if isinstance(request, Accompany) else None)
        except TokenError as error:
            if isinstance(request, Accompany):  # bars that no choir has either
                raise ScoreError(seed, error.what, error.hint) from None
            raise
        if isinstance(request, Accompany):
            accompanied(score)
        check_files(pedal)  # later: a performance is none without it either
        check_kept(request)
        if (grid := request.rules.grid) in (OFF, SWING):  # a score has only exact parts of a quarter
            raise ConfigError("grid", got=grid)

    return score_unless(check, seed)


def score_unless(check: Callable[[], object], seed: Path) -> Choice:
    """The model of scores, or the piano's where `check` raises a UserError, which is the reason. Raises ScoreError."""
    try:
        check()
    except ScoreError:
        raise
    except PerformanceError as error:
        return Choice(PIANO, f"{seed.name} {error.reason}")
    except ConfigError as error:
        why = f": {error.why}" if error.field == "part" else ""
        return Choice(PIANO, f"the model of scores cannot keep {error.field}={as_word(error.got)}{why}")
    except UserError as error:
        why = error.what.removeprefix(f"{seed}: ")
        return Choice(PIANO, f"the model of scores cannot play {seed.name}: {why}")
    return Choice(SCORE, f"{seed.name} is a score: its notes lie on a grid")


def name_accompanist(bundle: str | None, music: Path, request: Accompany, pedal: bool = False) -> Choice:
    """The bundle that a person names; else the harmoniser for choirs, and the model of scores for other tunes. Raises
    MidiError for an unreadable file, and for a score with both hands."""
    if bundle is not None:
        return Choice(bundle, "")
    for name in OF_VOICES:
        if (value := getattr(request, name)) != getattr(Accompany, name):
            return Choice(HARMONISER, f"{name}={as_word(value)} is for choirs")
    for name in CHOIR_RULES:
        if getattr(request.rules, name):
            return Choice(HARMONISER, f"{name}=true is for choirs")
    tracks = read_tracks(read_bytes(music), music, one_tempo=True)
    one_line([tracks.merge()], music)  # raises here, before a line says who plays
    if request.only is not None:
        alone = heard(music, request.only, tracks, one_tempo=True)  # raises here too
        if not len(alone.merge()):
            raise ConfigError("part", got=request.only, why="it has drums alone", allowed="one with a melody").of(music)
    if choose_bundle(tracks.merge(), music.name, [track.score for track in tracks.tracks]).bundle == CHORALE:
        return Choice(HARMONISER, f"{music.name} is four voices on a grid")
    found = score_or_piano(music, request, pedal)
    return found if found.bundle == SCORE else Choice(HARMONISER, found.why)


def check_licence(licence: str | None, bundle: str, header: BundleHeader) -> None:
    """Raises ConfigError for weights that people may not sell, if `licence` is free, and for an unknown one."""
    if licence not in (None, FREE):
        raise ConfigError("licence", got=licence, allowed=f"{FREE}, or leave it out for any")
    if licence == FREE and not header.is_free:
        why = f"the weights of {bundle} are {header.licence}"
        raise ConfigError("licence", got=licence, why=why, allowed=f"a model under {' or '.join(LICENCES)}")
