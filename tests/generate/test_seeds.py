import re
import sys

import numpy as np
import pytest
from strategies import forget_pedal

from musictx.errors import ConfigError, MidiError, UserError
from musictx.generate.seed_files import find_seeds, name_targets
from musictx.generate.seeds import fit_voices, read_seed
from musictx.model.packaged import FOLDER, bundle_path, print_precedence
from musictx.music.score import DRUMS, Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer

TOK, HYMN = build_tokenizer("performance"), build_tokenizer("chorale")
NOTE = Score([0.0], [1.0], [60], [80])


def touch(*paths):
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


NOTHING = {"wav": False, "png": False, "overwrite": False}


def targets(seeds, folder, **settings):
    return name_targets(seeds, folder, 2, **(NOTHING | settings))


def test_a_file_a_folder_a_pattern_or_nothing(tmp_path):
    touch(tmp_path / "a.mid", tmp_path / "sub" / "b.MIDI", tmp_path / "c.txt", tmp_path / "[x].mid")
    names = lambda seed_midi: [str(p.relative_to(tmp_path)) for p in find_seeds(str(seed_midi))]  # noqa: E731
    assert names(tmp_path / "a.mid") == ["a.mid"]
    with pytest.raises(MidiError, match="missing.mid: .*elise, gymnopedie"):
        names(tmp_path / "missing.mid")
    assert names(tmp_path / "[x].mid") == ["[x].mid"]  # a file of that name comes before a pattern
    assert names(tmp_path) == ["[x].mid", "a.mid", "sub/b.MIDI"]
    assert names(tmp_path / "*.mid") == ["[x].mid", "a.mid"]
    assert names(tmp_path / "**" / "b.*") == ["sub/b.MIDI"]
    assert [str(p) for p in find_seeds(None)] == ["new"]


def test_a_folder_or_pattern_without_music(tmp_path):
    for nothing in (str(tmp_path), str(tmp_path / "x*.mid"), " "):
        with pytest.raises(ConfigError) as refused:
            find_seeds(nothing)
        assert (refused.value.field, refused.value.got) == ("seed_midi", nothing.strip())


def test_a_folder_of_other_music_names_the_way(tmp_path):
    (tmp_path / "deep").mkdir()
    for name in ("a.midi2", "b.mscz", "read.me"):
        (tmp_path / "deep" / name).write_bytes(b"x")
    with pytest.raises(ConfigError, match=r"\.midi2 files .* Standard MIDI File.*the \.mscz files .* export MusicXML"):
        find_seeds(str(tmp_path))


def test_what_is_written_is_named_by_its_seed(tmp_path):
    (one,) = targets([tmp_path / "x.mid"], tmp_path / "o", wav=True, png=True)
    assert [p.name for p in (*one.midi, *one.wav, one.png)] == ["x-1.mid", "x-2.mid", "x-1.wav", "x-2.wav", "x.png"]


def test_what_is_written_is_named_by_a_file(tmp_path):
    def names(out, variations=1, seeds=("h.mid",), **settings):
        (one,) = name_targets([tmp_path / seed for seed in seeds], tmp_path / out, variations, **(NOTHING | settings))
        files = [*one.midi, *one.wav, *one.musicxml, *filter(None, [one.png])]
        return [str(path.relative_to(tmp_path)) for path in files]

    assert names("new/x.mid") == ["new/x.mid"]
    assert names("x.MIDI") == ["x.MIDI"]
    assert names("x.musicxml") == ["x.mid", "x.musicxml"]
    assert names("x.MXL") == ["x.mid", "x.MXL"]
    assert names("x.wav", png=True) == ["x.mid", "x.wav", "x.png"]
    assert names("x.png", 2) == ["x-1.mid", "x-2.mid", "x.png"]
    assert names("v1.2") == ["v1.2/h-1.mid"]
    (tmp_path / "a.mid").mkdir()
    assert names("a.mid") == ["a.mid/h-1.mid"]  # a folder of this name stays one
    with pytest.raises(ConfigError, match=r"2 seeds need a file each: give a folder"):
        names("x.mid", seeds=("h.mid", "g.mid"))
    for out in ("x.pdf", "x.xml", "x.safetensors", "x.xyz", "x.MSCZ"):
        with pytest.raises(ConfigError, match=r"give a folder, or a name that ends in one of \.mid"):
            names(out)


def test_names_that_collide(tmp_path):
    seeds = [tmp_path / "x.mid", tmp_path / "x-1.mid"]
    with pytest.raises(UserError, match=r"x-1\.mid .*seed .*out="):
        targets(seeds, tmp_path, overwrite=True)
    with pytest.raises(UserError, match=r"x-1\.mid .*two seeds"):
        targets([tmp_path / "a" / "x.mid", tmp_path / "b" / "X.midi"], tmp_path)
    touch(tmp_path / "x-2.mid")
    with pytest.raises(UserError, match=r"x-2\.mid exists .*out= .*overwrite=true"):
        targets(seeds[:1], tmp_path)
    assert len(targets(seeds[:1], tmp_path, overwrite=True)) == 1


def test_the_bars_of_a_file_come_with_its_music(tmp_path):
    write_midi(NOTE, tmp_path / "a.mid", (3, 4))
    seed = read_seed(tmp_path / "a.mid", TOK)
    assert seed.score.pitch.tolist() == [60]
    assert seed.meter.signature == (3, 4)


def test_silence_drums_alone_and_no_music(tmp_path):
    write_midi(Score.empty(), tmp_path / "silent.mid")
    write_midi(Score([0.0], [1.0], [36], [80], 0.5, np.array(DRUMS)), tmp_path / "drums.mid")
    read = lambda name, drums=False: read_seed(tmp_path / name, TOK, drums=drums)  # noqa: E731
    with pytest.raises(UserError, match=r"silent\.mid: .* no notes"):
        read("silent.mid")
    with pytest.raises(UserError, match=r"drums\.mid: .*drums=true"):
        read("drums.mid")
    assert len(read("drums.mid", drums=True).score) == 1
    with pytest.raises(MidiError, match="missing"):
        read("missing.mid")


def test_notes_that_the_model_has_no_token_for(tmp_path):
    write_midi(Score([0, 0, 0.5, 1], [1, 1, 1, 2], [10, 60, 12, 110], [80] * 4), tmp_path / "a.mid")
    seed = read_seed(tmp_path / "a.mid", HYMN)
    assert seed.score.pitch.tolist() == [60]
    assert re.search(r"a\.mid: .* 10, 12, 110 \(3 of 4\).* 21 … 108: left out$", seed.remarks[-1])
    write_midi(Score([0], [1], [10], [80]), tmp_path / "low.mid")
    with pytest.raises(UserError, match=r"low\.mid: "):
        read_seed(tmp_path / "low.mid", HYMN)


def test_more_notes_at_once_than_voices():
    score = Score([0] * 5, [1] * 5, [48, 55, 60, 64, 72], [80] * 5)
    said = list[str]()
    thinner = fit_voices(score, HYMN, "a.mid", said.append)
    assert said == ["a.mid: 1 of its 5 notes are more than the model's 4 voices: left out or cut short"]
    assert thinner.pitch.tolist() == [48, 60, 64, 72]
    assert fit_voices(score, TOK, "a.mid", pytest.fail) is score


def test_a_name_inside_the_package_is_said_once_where_a_file_has_it_too(tmp_path, monkeypatch, capsys):
    print_precedence.cache_clear()
    monkeypatch.chdir(tmp_path)
    assert [find_seeds(name) for name in ("gymnopedie", "chorale")] == [
        [FOLDER / "gymnopedie.mid"],
        [FOLDER / "chorale.mid"],
    ]
    touch(tmp_path / "elise" / "elise-1.mid", tmp_path / "piano")
    for _ in range(2):
        assert find_seeds("elise") == [FOLDER / "elise.mid"]
        assert bundle_path("piano") == FOLDER / "piano.safetensors"
    assert [line.split()[0] for line in capsys.readouterr().err.splitlines()] == ["elise", "piano"]
    assert [p.name for p in find_seeds("./elise")] == ["elise-1.mid"]
    assert bundle_path("./piano").samefile(tmp_path / "piano")
    print_precedence.cache_clear()


def test_on_a_grid_it_is_said_what_becomes_of_notes():
    """Three held voices; the fourth repeats its note after a 32nd beside the grid."""
    onset, offset = [0, 0, 0, 0, 0.525, 0.6], [1.2, 1.2, 1.2, 0.525, 0.6, 1.2]
    score = Score(onset, offset, [48, 60, 64, 72, 74, 72], [80] * 6, 0.6)
    said = list[str]()
    heard = fit_voices(score, HYMN, "a.mid", said.append)
    assert heard.pitch.tolist() == [48, 60, 64, 72, 72]
    assert re.match("a.mid: of its 6 notes .* 1 .*too short, .* 1 .*held", said[0])
    assert fit_voices(score, TOK, "a.mid", pytest.fail) is score


OBOE = "its instrument, program 68, is heard as a piano, and kept in what is written"
LEFT_OUT = "its drums are left out, drums=true takes them"


def band(path, *programs):
    """A note for each program, one after the other, each in its own track."""
    notes = [Score([0.5 * k], [0.5 * k + 0.4], [60 + k], [80], 0.5, np.array(p)) for k, p in enumerate(programs)]
    write_midi(Score.merge(notes, 0.5), path)
    return path


@pytest.mark.parametrize(
    ("programs", "drums", "said", "heard"),
    [
        ((0,), False, "", [0]),
        ((68,), False, f": {OBOE}", [68]),
        ((DRUMS,), True, ": its drums are heard as piano keys", [DRUMS]),
        ((40, 68, DRUMS), False, f": its 2 tracks are heard as one piano; {LEFT_OUT}", [0, 0]),
        ((40, 68, DRUMS), True, ": its 3 tracks are heard as one piano; its drums are heard as piano keys", [0, 0, 0]),
    ],
)
def test_a_band_is_heard_as_one_piano_and_a_line_says_so(tmp_path, programs, drums, said, heard):
    seed = read_seed(band(tmp_path / "a.mid", *programs), TOK, drums=drums)
    assert seed.score.program.tolist() == heard
    assert seed.remarks == ((f"{tmp_path / 'a.mid'}{said}",) if said else ())


def test_a_pedal_that_the_file_forgets_is_said_and_not_heard(tmp_path):
    write_midi(NOTE, tmp_path / "a.mid")
    seed = read_seed(forget_pedal(tmp_path / "a.mid"), TOK)
    assert seed.score == NOTE
    assert "pedal" in seed.remarks[0]


def test_four_singers_stay_four_voices(tmp_path):
    seed = read_seed(band(tmp_path / "a.mid", 52, 53, 54, 55, DRUMS), HYMN)
    assert seed.score.program.tolist() == [52, 53, 54, 55]
    assert seed.remarks == (f"{tmp_path / 'a.mid'}: {LEFT_OUT}",)
    seed = read_seed(tmp_path / "a.mid", HYMN, drums=True)
    assert seed.remarks == (f"{tmp_path / 'a.mid'}: its drums are heard as voices",)


@pytest.mark.parametrize("package", ["music21", "partitura"])
def test_a_score_is_refused_before_music_is_drawn_where_a_package_is_missing(tmp_path, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    seed = tmp_path / "a.mid"
    assert targets([seed], tmp_path / "out")
    with pytest.raises(UserError, match=rf"{package}, which is not installed: pip install"):
        targets([seed], tmp_path / "out", musicxml=True)
