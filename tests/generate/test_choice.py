"""Which model plays where none is named: literal music, and real files."""

import json
import re
from dataclasses import replace

import mido
import numpy as np
import pytest
from strategies import SHARED_DATA, slowing

import musictx
from musictx.errors import ConfigError, MidiError, ScoreError, UserError
from musictx.generate.choose_bundle import (
    check_licence,
    choose_bundle,
    name_accompanist,
    name_bundle,
    not_four_voices,
)
from musictx.generate.primer import Part as Region
from musictx.generate.requests import Accompany, Continue, Fill, Length
from musictx.generate.seeds import read_seed
from musictx.model.header import read_header
from musictx.model.packaged import BUNDLES, packaged_bundle, seed_path
from musictx.music.grid import grid_to_score, score_to_grid
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.rules import Rules

CHORDS = np.repeat(np.array([[72, 67, 64, 48], [71, 67, 62, 43], [72, 67, 64, 48]], np.int16), 4, axis=0)
HYMN = grid_to_score(CHORDS)


def moved(by_s, notes=slice(1)) -> Score:
    onset = HYMN.onset_s.copy()
    onset[notes] += by_s
    return Score(onset, np.maximum(HYMN.offset_s, onset + 0.1), HYMN.pitch, HYMN.velocity, HYMN.quarter_s)


def with_note(onset_s, offset_s, pitch) -> Score:
    return Score.merge([HYMN, Score([onset_s], [offset_s], [pitch], [80], HYMN.quarter_s)], HYMN.quarter_s)


def ornamented(notes) -> Score:
    """Ten bars of the hymn, the first soprano of so many ending with a 32nd of the note above."""
    grid = np.tile(CHORDS, (10, 1))
    hymn, step_s = grid_to_score(grid), 0.15
    sung = np.flatnonzero(hymn.pitch == 72)[:notes]
    offset, end = hymn.offset_s.copy(), hymn.offset_s[sung]
    offset[sung] -= step_s / 2
    graces = Score(end - step_s / 2, end, np.full(notes, 74), np.full(notes, 80), hymn.quarter_s)
    main = Score(hymn.onset_s, offset, hymn.pitch, hymn.velocity, hymn.quarter_s)
    return Score.merge([main, graces], hymn.quarter_s)


def voices(count) -> Score:
    return grid_to_score(np.where(np.arange(4) < count, CHORDS, -1).astype(np.int16))


@pytest.mark.parametrize(
    ("music", "reason"),
    [
        (HYMN, ""),
        (moved(0.014), ""),  # a sixteenth lasts 0.15 s
        (moved(0.016), "1 of 10 notes .* quarter 0.03"),
        (HYMN.stretch(1.7), ""),
        (with_note(0.6, 1.2, 60), "quarter 1.* 5 notes"),
        (with_note(1.8, 2.4, 20), "pitch 20 .* 21 … 108"),
        (with_note(1.8, 2.4, 60), ""),  # three quarters of it in four voices, the last in one
        (with_note(1.8, 4.8, 60), "38%"),
        (voices(3), " 0%"),
        (Score([0.0], [1e6], [60], [80], 0.5), "8,000,000 sixteenths"),
        (Score.empty(), "no notes"),
        (ornamented(1), ""),
        (ornamented(3), ""),  # of 67 notes
        (ornamented(4), "4 of 68 notes .* quarter 0.88"),
    ],
)
def test_four_voices_on_a_grid_are_what_the_encoding_takes(music, reason):
    assert re.search(reason or "^$", not_four_voices(music))
    choice = choose_bundle(music, "it")
    assert choice.bundle == ("piano" if reason else "chorale")
    assert ("1 of its 65 notes" in choice.why) == (len(music) == 65)  # the first with an ornament


@pytest.mark.parametrize(
    ("parts", "bundle"),
    [
        ([([0], 52), ([1], 52), ([2], 52), ([3], 52)], "chorale"),
        ([([0], 40), ([1], 40), ([2], 41), ([3], 42)], "chorale"),
        ([([0, 1], 52), ([2, 3], 19)], "chorale"),
        ([([0, 1, 2, 3], 19)], "chorale"),
        ([([0, 1, 2], 0), ([3], 0)], "chorale"),  # a keyboard
        ([([0], 52), ([1], 52), ([2], 52), ([3], 52), ([0, 1], 0), ([2, 3], 0)], "chorale"),  # and a rehearsal piano
        ([([0], 73), ([1, 2], 24), ([3], 32)], "piano"),
        ([([0], 52), ([1, 2, 3], 89)], "piano"),
        ([([0], 40), ([1], 40), ([2], 41), ([3], 42), ([0], 128)], "piano"),  # drums
    ],
)
def test_a_band_in_four_voices_is_no_choir(parts, bundle):
    voice = [grid_to_score(np.where(np.arange(4) == v, CHORDS, -1).astype(np.int16)) for v in range(4)]
    merged = [(Score.merge([voice[v] for v in voices], 0.6), program) for voices, program in parts]
    scores = [replace(part, program=np.full(len(part), program)) for part, program in merged]
    assert choose_bundle(HYMN, "it", scores).bundle == bundle


def test_a_chorale_that_slows_down_is_continued_as_it_is_written(tmp_path):
    path = slowing(HYMN, tmp_path / "slow.mid")
    assert "3 of 10 notes" in not_four_voices(read_midi(path))
    assert name_bundle(None, [path]).remark == (
        "no bundle= is given: the chorale model inside musictx plays, since slow.mid is four voices on a grid"
    )
    seed = read_seed(path, ChoraleTokenizer())
    assert seed.remarks == (f"{path}: it is heard at its first tempo, since the model counts beats",)
    assert np.array_equal(score_to_grid(seed.score), CHORDS)
    assert seed.score.quarter_s == pytest.approx(0.6)
    assert seed.meter.bars_s(1.8).tolist() == pytest.approx([0.0, 2.4])
    seed = read_seed(slowing(HYMN, path, [(480, 100), (960, 100)]), ChoraleTokenizer())
    assert seed.remarks == ()  # a tempo that is said again does not change
    slowing(HYMN, path)
    assert name_bundle(None, [path], played=True).bundle == "piano"  # who listens hears it slow down


def test_what_a_person_names_is_never_looked_at(tmp_path):
    named = name_bundle("mine.safetensors", [tmp_path / "missing.mid"])
    assert (named.bundle, named.remark) == ("mine.safetensors", "")
    with pytest.raises(MidiError, match="missing.mid"):
        name_bundle(None, [tmp_path / "missing.mid"])


@pytest.mark.skipif(not (SHARED_DATA / "jsb-chorales-16th").is_dir(), reason="the corpus is not on this machine")
def test_every_chorale_is_the_chorale_models():
    table = json.loads((SHARED_DATA / "jsb-chorales-16th" / "Jsb16thSeparated.json").read_text())
    pieces = [np.array(piece, np.int16) for split in table.values() for piece in split]
    assert len(pieces) == 382
    others = [k for k, piece in enumerate(pieces[::4]) if not_four_voices(grid_to_score(piece))]
    assert others == []


VOICE = Part("Lead", 80, tuple(Note(12 * k, 12, 67 + k % 5) for k in range(32)))
BASS = Part("Bass", 33, tuple(Note(48 * k, 48, 40 + k % 3) for k in range(8)))
BARS = tuple(Bar(96 * k, 4, 4) for k in range(4))
BAND = to_midi(Notation((VOICE, BASS), BARS, 384))
ON_BARS = "song.mid is a score: its notes lie on a grid"


@pytest.fixture
def band(tmp_path):
    (tmp_path / "song.mid").write_bytes(BAND)
    return tmp_path / "song.mid"


@pytest.mark.parametrize(
    ("request_", "plays", "why"),
    [
        (Continue(), "score", ON_BARS),
        (Continue(part=Region(bars=2), length=Length(bars=4)), "score", ON_BARS),
        (Continue(part=Region(until_s=3.0, start="bar")), "score", ON_BARS),
        (Fill(from_bar=1, to_bar=2), "score", ON_BARS),
        (Fill(from_bar=1, to_bar=99), "score", ON_BARS),  # a mistake of the person's, which its error names
        (Fill(from_s=1.0, to_s=2.0), "piano", "the model of scores cannot keep from_s=1.0"),
        (Continue(part=Region(start="beat")), "piano", "the model of scores cannot keep start=beat"),
        (Continue(drums=True), "piano", "the model of scores cannot keep drums=true"),
        (Continue(rules=Rules(grid="swing")), "piano", "the model of scores cannot keep grid=swing"),
        (Continue(rules=Rules(grid="off")), "piano", "the model of scores cannot keep grid=off"),
        (Continue(part=Region(bars=1, until_s=3.0)), "piano", "the model of scores cannot keep from_s=3.0"),
    ],
)
def test_a_score_is_the_score_models_if_that_keeps_the_request(band, request_, plays, why):
    assert name_bundle(None, [band], request=request_) == (plays, why)
    assert name_bundle(None, [band], request=request_, played=True) == (plays, why)


def test_a_chorale_that_shall_be_loud_and_soft_is_a_score():
    assert name_bundle(None, [seed_path("chorale")], request=Continue(humanize=True)).bundle == "score"


def test_a_gap_up_to_the_end_of_a_choir_is_filled_by_the_model_that_needs_nothing_after_it(tmp_path):
    write_midi(grid_to_score(np.tile(CHORDS, (3, 1)), 0.5), path := tmp_path / "four.mid")
    bars = -(-3 * len(CHORDS) // 16)
    found = [name_bundle(None, [path], request=Fill(from_bar=n, to_bar=n)) for n in (1, bars - 1, bars)]
    assert [each.bundle for each in found] == ["chorale", "chorale", "score"]
    with pytest.raises(ConfigError, match=f"to_bar={bars + 1}"):
        name_bundle(None, [path], request=Fill(from_bar=1, to_bar=bars + 1))
    with pytest.raises(ConfigError, match=f"four.mid: to_bar={bars}: the music ends"):
        musictx.load("chorale").fill(path, from_bar=bars, to_bar=bars)


def test_one_voice_of_four_is_no_choir(tmp_path):
    from musictx.music.grid import VOICE_NAMES, lines_of_grid
    from musictx.music.project import Line, Project

    lines = [Line(*each) for each in zip(VOICE_NAMES, lines_of_grid(np.tile(CHORDS, (2, 1))), strict=True)]
    (tmp_path / "four.mid").write_bytes(Project.new(0.6).beside(lines))
    played = {
        only: name_bundle(None, [tmp_path / "four.mid"], request=Fill(from_bar=1, to_bar=1, only=only)).bundle
        for only in (None, "alto", "4")
    }
    assert played == {None: "chorale", "alto": "score", "4": "score"}
    organ = [Line("organ", grid_to_score(CHORDS)), *[Line("oboe", lines[0].score.transpose(3)) for _ in range(2)]]
    (tmp_path / "organ.mid").write_bytes(Project.new(0.6).beside(organ))
    request = Fill(from_bar=1, to_bar=1, only="organ")  # whose model must hear the others
    assert name_bundle(None, [tmp_path / "organ.mid"], request=request).bundle == "score"


def test_whoever_asks_for_no_score_gets_none(band):
    assert name_bundle(None, [band]).bundle == "piano"


def test_files_that_no_score_is_written_to_are_not_the_score_models(band):
    why = "the model of scores cannot keep {}"
    assert name_bundle(None, [band], request=Continue(), pedal=True) == ("piano", why.format("pedal=true"))
    pair = f"{band},{band}"
    found = name_bundle(None, [band, band], request=Fill(length=Length(bars=2)), between=pair)
    assert found == ("piano", why.format(f"between={pair}"))
    assert name_accompanist(None, band, Accompany(), pedal=True) == ("harmoniser", why.format("pedal=true"))


def test_one_performance_among_scores_is_the_pianos_and_a_chorale_among_them_a_score(band):
    performance, chorale = (packaged_bundle("chorale").with_name(f"{name}.mid") for name in ("elise", "chorale"))
    names = [
        name_bundle(None, files, request=Continue()).bundle
        for files in ([chorale], [chorale, band], [band, chorale], [band, performance], [chorale, performance])
    ]
    assert names == ["chorale", "score", "score", "piano", "piano"]


def test_a_file_without_notes_does_not_choose_for_the_others(band, tmp_path):
    empty = tmp_path / "empty.mid"
    empty.write_bytes(to_midi(Notation((Part("Lead", 0, ()),), BARS, 384)))
    for files in ([empty, band], [band, empty]):
        assert name_bundle(None, files, request=Continue(), licence="free") == ("score", ON_BARS)
    for licence in (None, "free"):  # one line, before a model is named
        with pytest.raises(UserError, match=r"^.*empty.mid: it has no notes: give"):
            name_bundle(None, [empty, empty], request=Continue(), licence=licence)
    with pytest.raises(UserError, match=r"^.*empty.mid: no notes to accompany"):
        name_accompanist(None, empty, Accompany())


def test_the_reason_names_the_file_whose_bars_are_too_long(tmp_path):
    path = tmp_path / "long.mid"
    path.write_bytes(to_midi(Notation((VOICE,), (Bar(0, 40, 4),), 960)))
    why = "the model of scores cannot play long.mid: bar 1 is in 40/4, which score tokens lack"
    assert name_bundle(None, [path], request=Continue()) == ("piano", why)
    with pytest.raises(ScoreError, match=r"^.*long.mid: bar 1 is in 40/4, which score tokens lack"):
        name_accompanist(None, path, Accompany())  # no choir has such bars either


def test_a_score_of_too_many_parts_is_refused_and_a_performance_of_them_is_not(tmp_path):
    parts = tuple(replace(VOICE, name=f"Part {n}") for n in range(65))
    (tmp_path / "many.mid").write_bytes(to_midi(Notation(parts, BARS, 384)))
    for choose in (
        lambda path: name_bundle(None, [path], request=Continue()),
        lambda path: name_bundle(None, [path], request=Continue(), licence="free"),
        lambda path: name_accompanist(None, path, Accompany()),
    ):
        with pytest.raises(ScoreError, match=r"^.*many.mid: it has 65 staves, and at most 64 are written: give fewer"):
            choose(tmp_path / "many.mid")
    file = mido.MidiFile(tmp_path / "many.mid")
    file.ticks_per_beat *= 40
    for track in file.tracks:
        for n, each in enumerate(track):
            each.time = 40 * each.time + 7 * (n % 3)  # nobody keeps to the beat
    file.save(tmp_path / "played.mid")
    assert name_bundle(None, [tmp_path / "played.mid"], request=Continue()).bundle == "piano"


def test_licence_free_leaves_models_whose_weights_may_be_sold(band):
    assert name_bundle(None, [band], request=Continue(), licence="free").bundle == "score"
    with pytest.raises(
        ConfigError, match=r"^licence=free: elise.mid is a performance.*: give null, or a quantised seed and settings "
    ):
        name_bundle(None, [seed_path("elise")], request=Continue(), licence="free")
    with pytest.raises(ConfigError, match=r"^licence=free: only the piano model joins two files, .* to infill=$"):
        name_bundle(None, [band, band], request=Fill(), between=f"{band},{band}", licence="free")
    for name in BUNDLES:
        header = read_header(packaged_bundle(name))
        check_licence(None, name, header)
        if name != "piano":
            check_licence("free", name, header)
            continue
        with pytest.raises(
            ConfigError, match="^licence=free: the weights of piano are CC BY-NC-SA 4.0 .* a model under "
        ):
            check_licence("free", name, header)
    with pytest.raises(ConfigError, match="^licence=MIT: give free"):
        check_licence("MIT", "piano", header)


@pytest.mark.parametrize("licence", ["", "unknown", "CC BY-NC 4.0", "CC BY 4.0 and CC BY-NC 4.0", "mine"])
def test_a_licence_that_nobody_knows_is_not_free(licence):
    assert not replace(read_header(packaged_bundle("chorale")), licence=licence).is_free


def test_a_tune_is_the_score_models_and_a_choir_the_harmonisers(band, tmp_path):
    tune, hands = tmp_path / "tune.mid", tmp_path / "hands.mid"
    tune.write_bytes(to_midi(Notation((VOICE,), BARS, 384)))
    hymn = seed_path("chorale")
    assert name_accompanist(None, tune, Accompany()) == ("score", "tune.mid is a score: its notes lie on a grid")
    assert name_accompanist(None, tune, Accompany(voices="T")) == ("harmoniser", "voices=T is for choirs")
    assert name_accompanist(None, hymn, Accompany()) == ("harmoniser", "chorale.mid is four voices on a grid")
    assert name_accompanist(None, seed_path("elise"), Accompany()).bundle == "harmoniser"
    assert name_accompanist("mine.safetensors", tmp_path / "none.mid", Accompany()) == ("mine.safetensors", "")
    both = (Part("Piano", 0, VOICE.notes), Part("Piano", 0, BASS.notes))
    hands.write_bytes(to_midi(Notation(both, BARS, 384)))
    for pedal in (False, True):
        with pytest.raises(ScoreError, match=r"^.*hands.mid: it has both hands already: give .*bundle=harmoniser"):
            name_accompanist(None, hands, Accompany(), pedal=pedal)
