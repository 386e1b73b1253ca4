"""No field of a request is silently ignored for a score: it changes the music, or a line refuses it by its name."""

from collections import defaultdict
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from small_scores import PLAIN, SCORE, SONG, in_file, player
from stubs import Said
from untrained import write_score_model

import musictx
from musictx.config.fields import setting_keys
from musictx.errors import ConfigError
from musictx.generate.choose_bundle import name_accompanist, name_bundle
from musictx.generate.control import Control
from musictx.generate.requests import Accompany, Continue, Fill, Length, Request
from musictx.generate.score_music import ScoreMusic
from musictx.generate.score_tasks import task_of
from musictx.music.midi_file import read_events
from musictx.music.notation.midi import from_midi
from musictx.music.notation.parts import Bar, Key, Note, Part, Tempo

TUNE = Part("Voice", 52, tuple(Note(24 + 24 * k, 24, 60 + 4 * (k % 3)) for k in range(12) if k not in (3, 4, 5)))
BASS = Part("Cello", 42, tuple(Note(24 + 72 * k, 72, pitch + 5 * (k % 2)) for k in range(4) for pitch in (43, 50)))
BARS = (Bar(0, 3, 4), *(Bar(24 + 72 * k, 3, 4) for k in range(4)))  # an upbeat
DANCE = replace(SONG, parts=(TUNE, BASS), bars=BARS, end=312, keys=(Key(0, 0),), tempi=(Tempo(0, 60.0),))

USUAL = {
    Continue: Continue(replace(PLAIN, guard=True), Length(bars=3)),
    Fill: Fill(replace(PLAIN, guard=True), from_bar=2, to_bar=3),
    Accompany: Accompany(PLAIN),
}
Fields = dict[str, Any]  # values by the field's name
ALL: Fields = {  # they change the music of each request
    "sampling.temperature": 0.2,
    "sampling.top_k": 1,
    "sampling.top_p": 0.01,
    "sampling.min_p": 0.9,
    "rules.max_note_s": 0.1,
    "rules.max_polyphony": 1,
    "rules.lowest": 90,
    "rules.highest": 40,
    "rules.scale": "C# major",
    "rules.max_silence_s": 0.1,
    "rules.max_still_s": 0.1,
    "control.key": "F# major",
    "control.chords": "C | F#",
    "control.density": 3,
    "control.polyphony": 9,
    "control.register": 100,
    "control.strength": 0.5,
    "random_seed": 1,
    "variations": 2,
    "humanize": True,
}
NEW: Fields = {"rules.grid": "1/16t", "window": 8, "max_tokens": 8}
CHANGES: dict[type[Request], Fields] = {
    Continue: ALL
    | NEW
    | {"sampling.seed_guidance": 4.0, "length.seconds": 3.0, "length.bars": 5.0, "include_seed": False}
    | {"part.seconds": 4.0, "part.bars": 2, "part.until_s": 4.0, "only": "Cello"},
    Fill: ALL | NEW | {"from_bar": 3, "to_bar": 4, "only": "Cello"},
    Accompany: ALL,
}
NONE: Fields = {"rules.masks": False, "control.bar_seconds": 2.0, "control.loudness": 60, "control.particles": 4}
CHORALES: Fields = {"rules.voice_order": True, "rules.voice_ranges": True, "rules.no_parallels": True}
REFUSED: dict[type[Request], Fields] = {
    Continue: NONE | CHORALES | {"length.tokens": 5, "part.side": "end", "part.start": "beat", "drums": True},
    Fill: NONE
    | CHORALES
    | {"sampling.seed_guidance": 1.0, "length.seconds": 3.0, "length.bars": 2.0, "length.tokens": 3}
    | {"from_s": 1.0, "to_s": 2.0, "drums": True},
    Accompany: NONE
    | CHORALES
    | {"sampling.guard": True, "sampling.seed_guidance": 1.0, "rules.grid": "1/8"}
    | {"voices": "T", "rewrite": "A", "from_bar": 1, "to_bar": 2, "transpose": 2},
}
ELSEWHERE: dict[type[Request], set[str]] = {  # a reason for each other field
    Continue: {"rows_at_once", "part.on_beat", "sampling.guard"},  # speed; bar lines are beats; test_score_loops.py
    Fill: {"rows_at_once", "sampling.guard"},
    Accompany: {"rows_at_once", "only"},  # test_score_habits.py
}
TOO: dict[str, Fields] = {  # what a field needs beside it
    "control.strength": {"control.key": "F# major"},
    "control.particles": {"control.key": "F# major"},
    "control.bar_seconds": {"control.chords": "C | F"},
    "sampling.min_p": {"sampling.top_p": None},
    "length.seconds": {"length.bars": None},
    "length.tokens": {"length.bars": None},
}
PRINTED = {"part.side": "seed_from", "only": "part"}


def leaves(request, before=""):
    """The name of each field, and of those within it."""
    for each in fields(request):
        value = getattr(request, each.name)
        yield from leaves(value, f"{before}{each.name}.") if is_dataclass(value) else [before + each.name]


def changed(request, values):
    within = defaultdict[str, dict[str, object]](dict)
    for name, value in values.items():
        head, _, rest = name.partition(".")
        within[head][rest] = value
    new = {head: each[""] if "" in each else changed(getattr(request, head), each) for head, each in within.items()}
    return replace(request, **new)


def asked(kind, name, value):
    return changed(USUAL[kind], TOO.get(name, {}) | {name: value})


def quiet():
    """A player who ends every part and bar at once, and else likes late places."""
    ids = np.arange(SCORE.vocab.size)
    liked = np.where((ids < SCORE.at0) | (ids == SCORE.bar), 99.0, 0.0)
    liked[SCORE.at0 : SCORE.long0] = ids[SCORE.at0 : SCORE.long0] - SCORE.at0
    said = Said(lambda length, rows: np.tile(liked.astype(np.float32), (rows, 1)))
    said.window = None
    return said


def file_for(kind, tmp_path):
    """A file for the request."""
    return in_file(replace(DANCE, parts=(TUNE,)) if kind is Accompany else DANCE, tmp_path)


def heard(path, request, model):
    """All that a person gets."""
    pieces = task_of(path, SCORE, request).draw(model, SCORE)
    return [(each.midi(), each.stopped) for each in pieces]


CASES = {
    of: [(kind, name, value) for kind, each in table.items() for name, value in each.items()]
    for of, table in (("changes", CHANGES), ("refused", REFUSED))
}


@pytest.mark.parametrize("kind", USUAL)
def test_every_field_has_its_row(kind):
    rows = [*CHANGES[kind], *REFUSED[kind], *ELSEWHERE[kind]]
    assert sorted(rows) == sorted(leaves(USUAL[kind]))


@pytest.mark.parametrize(("kind", "name", "value"), CASES["changes"])
def test_a_field_changes_the_music(tmp_path, kind, name, value):
    path, request = file_for(kind, tmp_path), asked(kind, name, value)
    before = changed(USUAL[kind], TOO.get(name, {}))
    model = quiet() if name in ("rules.max_silence_s", "rules.max_still_s") else player()
    assert heard(path, request, model) != heard(path, before, model)
    assert find(path, request).bundle == "score"


@pytest.mark.parametrize(("kind", "name", "value"), CASES["refused"])
def test_a_field_that_no_score_keeps_is_refused_and_another_model_plays(tmp_path, kind, name, value):
    path, word = file_for(kind, tmp_path), PRINTED.get(name, name.rpartition(".")[2])
    with pytest.raises(ConfigError) as refused:
        heard(path, asked(kind, name, value), player())
    assert f"{word}=" in refused.value.line()
    assert "\n" not in refused.value.line()
    try:
        request = asked(kind, name, value)
    except ConfigError:  # no model keeps it
        return
    choice = find(path, request)
    assert choice.bundle == ("harmoniser" if kind is Accompany else "piano")
    assert f"{word}=" in choice.remark


def find(path, request):
    if isinstance(request, Accompany):
        return name_accompanist(None, path, request)
    return name_bundle(None, [path], request=request)


def test_a_length_that_no_row_has_room_for_is_refused_before_work(tmp_path):
    path = in_file(DANCE, tmp_path)
    for length, says in (
        (
            Length(bars=100_000.0),
            "length_bars=100000: 100,000 new bars for 2 parts: give at most 8928; then",
        ),
        (Length(seconds=80_000), "length_seconds=80000: 26,667 new bars for 2 parts: give at most 26784; then go on"),
    ):
        with pytest.raises(ConfigError) as refused:
            task_of(path, SCORE, Continue(PLAIN, length))
        assert refused.value.line(setting_keys("generate")).startswith(f"{path}: {says}")
    assert len(task_of(path, SCORE, Continue(PLAIN, Length(bars=8928))).template.notation.bars) == 5 + 8928


def test_the_new_bars_alone_begin_at_bar_1(tmp_path):
    path = in_file(replace(DANCE, keys=(Key(0, 0), Key(24, -2))), tmp_path)
    request = Continue(PLAIN, Length(bars=3), control=Control(chords="C | F"))
    (whole,), (alone,) = (
        task_of(path, SCORE, replace(request, include_seed=include_seed)).draw(player(), SCORE)
        for include_seed in (True, False)
    )
    begin = whole.template.span[0]
    written, _ = from_midi(alone.midi())
    assert [each.name for each in read_events(alone.midi()).tracks[1:]] == ["Voice", "Cello"]
    assert written == replace(alone.notation, parts=tuple(part for part in alone.notation.parts if part.notes))
    assert written.bars == (Bar(0, 3, 4), Bar(72, 3, 4), Bar(144, 3, 4))
    assert (written.end, written.keys, written.tempi) == (216, (Key(0, -2),), DANCE.tempi)
    for old, new in zip(whole.notation.parts, alone.notation.parts, strict=True):
        assert (new.name, new.program) == (old.name, old.program)
        assert [note._replace(onset=note.onset + begin) for note in new.notes] == [
            n for n in old.notes if n.onset >= begin
        ]
    assert alone.new_from_s == 0.0
    assert len(alone.score) == len(alone.new_notes) == len(whole.new_notes)
    assert np.allclose(alone.score.onset_s + whole.new_from_s, whole.new_notes.onset_s)
    assert [(chord.from_s, chord.share) for chord in alone.chords] == [
        (chord.from_s - whole.new_from_s, chord.share) for chord in whole.chords
    ]
    assert alone.bars is not None
    assert alone.bars.lines_s[0] == 0


def test_python_has_the_same(tmp_path):
    model = musictx.load(write_score_model(tmp_path / "score.safetensors"))
    path = in_file(SONG, tmp_path)
    (music,) = model.continue_midi(path, bars=1, humanize=True)
    assert music.bars is not None
    assert music.seed == path
    (music,) = model.fill(path, from_bar=1, to_bar=1)
    assert music.is_new is not None
    (music,) = model.accompany(in_file(replace(SONG, parts=SONG.parts[:1]), tmp_path), control=Control(chords="C | F"))
    assert isinstance(music, ScoreMusic)
    assert len(music.notation.parts) == 3
    assert [chord.name for chord in music.chords] == ["C", "F"]
    with pytest.raises(ConfigError, match="^transpose=2: it is for models of chorales"):
        model.accompany(path, transpose=2)
    with pytest.raises(ConfigError, match="bars and parts"):
        model.continue_midi(None)
    with pytest.raises(ConfigError, match="^between=.*: two files may have other parts"):
        model.fill_between(path, path)
