"""musictx generate and accompany with a bundle of scores, which has learned nothing."""

from dataclasses import replace

import pytest
from conftest import QUICK, TINY, ok, refused
from small_scores import SCORE
from untrained import write_score_model

from musictx.commands.train import train
from musictx.data.store import Corpus, Piece, write_store
from musictx.errors import UserError
from musictx.generate.draw import continue_primers
from musictx.generate.open_player import open_playing
from musictx.generate.requests import Continue
from musictx.music.midi_file import read_events
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.read import score_of

VOICE = Part("Voice", 52, tuple(Note(24 * k, 24, 67 + k % 5) for k in range(12)))
SONG = Notation((VOICE, Part("Cello", 42, (Note(0, 96, 48), Note(96, 192, 43)))), (Bar(0, 4, 4), Bar(96, 4, 4)), 192)
SONG = replace(SONG, bars=(*SONG.bars, Bar(192, 4, 4)), end=288)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    write_score_model(folder / "score.safetensors")
    write_score_model(folder / "fills.safetensors", fills=True)
    (folder / "song.mid").write_bytes(to_midi(SONG))
    (folder / "tune.mid").write_bytes(to_midi(replace(SONG, parts=(VOICE,))))
    return folder


def test_generate_writes_whole_bars_into_the_file(place):
    words = ["musictx", "generate", "song.mid", "bundle=score.safetensors", "length_bars=2", "variations=2", "out=o"]
    printed = ok([*words, "musicxml=true", "png=true"], place).stdout
    assert "new; new music from 6.00 s on" in printed
    was = read_events((place / "song.mid").read_bytes()).tracks
    for k in (1, 2):
        now = read_events((place / "o" / f"song-{k}.mid").read_bytes()).tracks
        assert [track.name for track in now] == ["", "Voice", "Cello"]
        assert all(new.events[: len(old.events)] == old.events for old, new in zip(was, now, strict=True))
        score, _ = score_of((place / "o" / f"song-{k}.musicxml").read_bytes(), "a score")
        assert (len(score.bars), score.end) == (5, 480)
        assert [part.name for part in score.parts] == ["Voice", "Cello"]
    assert (place / "o" / "song.png").exists()


def test_infill_draws_one_part_or_all(place):
    words = ["musictx", "generate", "infill=song.mid", "from_bar=2", "to_bar=2"]
    printed = ok([*words, "bundle=score.safetensors", "part=Cello", "out=f"], place).stdout
    assert "song.mid: the bars after the gap are not heard: the model was not trained to fill gaps\n" in printed
    assert "new, from 2.00 to 4.00 s" in printed
    was, now = (read_events((place / name).read_bytes()).tracks for name in ("song.mid", "f/song-1.mid"))
    assert now[:2] == was[:2]
    assert "not heard" not in ok([*words, "bundle=fills.safetensors", "out=g"], place).stdout


def test_accompany_adds_two_hands(place):
    words = ["musictx", "accompany", "tune.mid", "bundle=score.safetensors", "out=a", "musicxml=true"]
    assert "tune-1.mid: 12 given notes, unchanged, " in ok(words, place).stdout
    was, now = (read_events((place / name).read_bytes()).tracks for name in ("tune.mid", "a/tune-1.mid"))
    assert now[: len(was)] == was
    assert {track.name for track in now[len(was) :]} <= {"Piano"}
    score, _ = score_of((place / "a" / "tune-1.musicxml").read_bytes(), "a score")
    assert score.parts[0].notes == VOICE.notes


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("generate song.mid length_tokens=9", "length_tokens=9: a score goes on by whole bars: leave it out"),
        ("generate song.mid length_bars=2.5", "length_bars=2.5: a score goes on by whole bars: give a whole number"),
        (
            "generate song.mid length_bars=100000",
            "song.mid: length_bars=100000: 100,000 new bars for 2 parts",
        ),
        ("generate seed_midi=null", "seed_midi=null: a score model goes on with a score: give one"),
        ("generate song.mid seed_from=end", "seed_from=end: a score is heard from its beginning: leave it out"),
        ("generate song.mid start=beat", "start=beat: new bars begin at a bar line: leave it out"),
        (
            "generate song.mid control.loudness=60",
            "control.loudness=60: a score has no loudness: humanize=true gives it one",
        ),
        ("generate song.mid pedal=true", "pedal=true: the notes of a score have written lengths: give false"),
        (
            "generate between=song.mid,tune.mid",
            "between=song.mid,tune.mid: two files may have other parts",
        ),
        ("generate infill=song.mid from_bar=3 to_bar=4", "song.mid: from_bar=3: to_bar=4: give bars from 1 to 3"),
        ("generate infill=song.mid from_bar=1 to_bar=1 part=Oboe", "song.mid: part=Oboe: give the name or number of"),
        ("generate elise", "is a performance, not a score"),
        ("generate elise", "or give bundle=piano"),
        ("accompany elise", "quantise it in a DAW"),
        ("accompany song.mid transpose=3", "transpose=3: it is for models of chorales: leave it out"),
    ],
)
def test_a_mistake_is_one_line(place, words, says):
    assert says in refused(["musictx", *words.split(), "bundle=score.safetensors", "out=none"], place)
    assert not (place / "none").exists()


def test_comparisons_which_hear_seconds_refuse_scores_in_a_line(place):
    player = open_playing(place / "score.safetensors")
    with pytest.raises(UserError, match="^a model of scores writes bars of parts"):
        continue_primers([None], player.player, player.tokenizer, Continue())
    pieces = [Piece(name, SCORE.encode_notation(SONG), 6.0) for name in "ab"]
    write_store(place / "store", SCORE, Corpus("some", "CC0"), {"train": pieces, "validation": pieces}, [])
    for words in ("compare score.safetensors out=none", "listen bundles=[score.safetensors] out=none.html"):
        line = refused(["musictx", *words.split(), "store=store"], place)
        assert line.startswith("error: score.safetensors: a model of scores writes bars of parts")
        assert "musictx evaluate compares likelihoods" in line
        assert not list(place.glob("none*"))


def test_a_training_of_scores_says_once_that_it_draws_no_samples(tmp_path, capsys, no_curves):
    pieces = [Piece(name, SCORE.encode_notation(SONG), 6.0) for name in "ab"]
    write_store(tmp_path / "store", SCORE, Corpus("some", "CC0"), {"train": pieces, "validation": pieces}, [])
    words = [*TINY, *QUICK, "trainer.sample_every=1", "trainer.progress_bar=false"]
    train(*words, data={"path": tmp_path / "store"}, out=tmp_path / "run")
    said = "trainer.sample_every=1: no samples, since a model of scores writes bars of parts"
    assert capsys.readouterr().out.count(said) == 1
