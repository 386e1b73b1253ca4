"""The title of a score comes back from MIDI, as the name of a first track without notes."""

import mido
import pytest

from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.write import to_musicxml

TUNE = Part("Flute", 73, (Note(0, 24, 72), Note(24, 24, 74)))


def titled(title):
    return Notation((TUNE,), (Bar(0, 4, 4),), 96, title=title)


@pytest.mark.parametrize(
    "title", ["", "My Song", "Träumerei, Op. 15 № 7", "Project X", "Seq by Ann", "1812", "Piano Sonata No. 2"]
)
def test_a_title_comes_back(title):
    score, _ = from_midi(to_midi(titled(title)))
    assert (score.title, [part.name for part in score.parts]) == (title, ["Flute"])
    assert (title or "a file").encode() in to_musicxml(score, "a file")[0]


@pytest.mark.parametrize(
    "name",
    [
        *("Tempo Track", "Conductor", "Seq-1", "Track 0", "MIDI", "untitled", "Control track", "1", "No name", "Piano"),
        *("Acoustic Grand Piano", "Soft Karaoke", "@KMIDI KARAOKE FILE", "Click", "SysEx", "GM", r"C:\midi\a.mid"),
    ],
)
def test_names_that_programs_give_are_no_titles(name):
    assert from_midi(to_midi(titled(name)))[0].title == ""


def test_the_name_of_a_track_with_notes_is_no_title(tmp_path):
    file = mido.MidiFile(type=0)
    notes = [mido.Message(kind, note=60, time=480 * (kind == "note_off")) for kind in ("note_on", "note_off")]
    file.tracks.append(mido.MidiTrack([mido.MetaMessage("track_name", name="My Song"), *notes]))
    file.save(tmp_path / "one.mid")
    assert from_midi((tmp_path / "one.mid").read_bytes())[0].title == ""
