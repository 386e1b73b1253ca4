"""Lyrics of scores: from MusicXML, MEI and MIDI, and back, also in new music."""

import re
from dataclasses import replace

import pytest

from musictx.music.midi_file import Event, EventTrack, as_number, read_events, write_events
from musictx.music.notation.lyrics import Syllable, cut
from musictx.music.notation.midi import from_midi, lost_in_midi, to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.read import read_notation
from musictx.music.notation.write import to_musicxml

TUNE = tuple(Note(24 * n, 24, 60 + n) for n in range(8))
SCORE = """<score-partwise><part-list><score-part id="P1"><part-name>V</part-name></score-part></part-list>
<part id="P1"><measure number="1"><attributes><divisions>1</divisions></attributes>{}</measure></part>
</score-partwise>"""
NOTE = "<note>{}<pitch><step>C</step><octave>4</octave></pitch>{}{}</note>"
LYRIC = '<lyric number="{}"><syllabic>{}</syllabic><text>{}</text>{}</lyric>'


def song(*lyrics: Syllable, tune: tuple[Note, ...] = TUNE) -> Notation:
    return Notation((Part("Voice", 52, tune, lyrics),), (Bar(0, 4, 4), Bar(96, 4, 4)), 192)


def lines(notation: Notation) -> list[tuple[object, ...]]:
    return [tuple(each[:5]) for part in notation.parts for each in part.lyrics]


def test_words_of_two_verses_come_back_and_those_of_grace_notes_and_rests_are_counted():
    elided = "<elision>_</elision><syllabic>begin</syllabic><text>e-</text>"
    verses = LYRIC.format(1, "begin", "A", "") + LYRIC.format(2, "single", "to", elided)
    first = NOTE.format("", "<duration>2</duration>", verses)
    rest = NOTE.format("", "<duration>1</duration>", LYRIC.format(1, "single", "hm", ""))
    rest = rest.replace("<pitch><step>C</step><octave>4</octave></pitch>", "<rest/>")
    grace = NOTE.format("<grace/>", "", LYRIC.format(1, "single", "oh", ""))
    last = NOTE.format("", "<duration>1</duration>", LYRIC.format(1, "end", "- men &amp; &lt;b&gt;", ""))
    notation, losses = read_notation(SCORE.format(first + grace + last + rest).encode(), "musicxml")
    assert lines(notation) == [(0, 1, "A", True, False), (0, 2, "to_e", True, False), (48, 1, "men & <b>", False, True)]
    assert losses == {"lyrics": 2, "grace": 1}
    back, unread = read_notation(to_musicxml(notation)[0], "musicxml")
    assert (lines(back), unread) == (lines(notation), {})
    assert lost_in_midi(notation) == {"unsung": 1}


def test_mei_writes_hyphens_into_its_syllables():
    text = (
        '<mei xmlns="http://www.music-encoding.org/ns/mei"><music><body><mdiv><score><scoreDef meter.count="2" '
        'meter.unit="4"><staffGrp><staffDef n="1" lines="5" clef.shape="G" clef.line="2"/></staffGrp></scoreDef>'
        '<section><measure n="1"><staff n="1"><layer n="1"><note pname="c" oct="4" dur="4"><verse n="1">'
        '<syl con="d" wordpos="i">A</syl></verse></note><note pname="d" oct="4" dur="4"><verse n="1">'
        '<syl wordpos="t">men</syl></verse></note></layer></staff></measure></section></score></mdiv></body></music>'
        "</mei>"
    )
    assert lines(read_notation(text.encode(), "mei")[0]) == [(0, 1, "A", True, False), (24, 1, "men", False, True)]


def test_two_voices_of_a_staff_sing_the_same_or_their_own():
    """A syllable without a note is counted, and so is a second one of a verse below a single note."""
    both = (*TUNE[:4], *(note._replace(pitch=note.pitch - 12, length=12) for note in TUNE[:2]))
    own = song(Syllable(0, 1, "la"), Syllable(0, 1, "lo"), Syllable(48, 1, "a"), tune=tuple(sorted(both)))
    text, losses = to_musicxml(own)
    assert (lines(read_notation(text, "musicxml")[0]), losses) == (lines(own), {})
    _, losses = to_musicxml(song(Syllable(12, 1, "x"), Syllable(24, 1, "a"), Syllable(24, 1, "b")))
    assert losses == {"lyrics": 2}
    assert lost_in_midi(own) == {"unsung": 1}


def test_each_voice_of_a_staff_sings_its_own_words():
    """Also where both begin together, and what they sing sorts otherwise, or is the same."""
    tune = (Note(0, 48, 72), Note(0, 96, 69), Note(48, 48, 74), Note(96, 96, 69), Note(96, 96, 72))
    voices = {note: (2 if note.pitch == 69 else 1,) for note in tune}
    sung = [(0, "Zu", 1), (0, "Ah", 2), (48, "dir", 1), (96, "Nun", 1), (96, "Nun", 2)]
    words = tuple(Syllable(onset, 1, text, voice=voice) for onset, text, voice in sung)
    notation = replace(song(tune=tune), parts=(Part("Women", 52, tune, words, voices=voices),))
    text, losses = to_musicxml(notation)
    heads = re.findall(r"<note>.*?</note>", text.decode(), re.DOTALL)
    found = {(re.findall(r"<step>(.)|<text>(.*?)<", head)[0][0], *re.findall(r"<text>(.*?)<", head)) for head in heads}
    assert found == {("C", "Zu"), ("D", "dir"), ("A", "Ah"), ("C", "Nun"), ("A", "Nun")}
    assert (read_notation(text, "musicxml")[0].parts[0].lyrics, losses) == (words, {})
    assert lost_in_midi(notation) == {"unsung": 1}


def with_words(notation: Notation, texts: dict[int, bytes], track: int) -> bytes:
    """Its MIDI file with lyrics at some ticks of a track, 480 a quarter; one more track if there is no such."""
    file = read_events(to_midi(notation))
    tracks = [*file.tracks, EventTrack([], 0)]
    events = [Event(tick, b"\xff\x05" + as_number(len(text)) + text) for tick, text in texts.items()]
    events = sorted([*tracks[track].events, *events], key=lambda each: each.tick)
    tracks[track] = EventTrack(events, max(each.tick for each in events))
    return write_events(file._replace(tracks=tracks))


@pytest.mark.parametrize("track", [1, 2])
def test_a_karaoke_file_has_words_where_notes_begin(track):
    """Also those of a track without notes."""
    texts = {0: b"\\Al-", 480: b"le-\r", 960: b"lu-", 1440: b"-", 1920: b"ja ", 2000: b"beside", 2400: b"\xe9t\xe9"}
    texts[2880] = b"x" * 200
    notation, losses = from_midi(with_words(song(), texts, track))
    assert lines(notation) == [
        (0, 1, "Al", True, False),
        (24, 1, "le", False, False),
        (48, 1, "lu", False, False),
        (96, 1, "ja", False, True),
        (120, 1, "\xe9t\xe9", True, True),
        (144, 1, "x" * 200, True, True),
    ]
    assert losses == {"lyrics": 1}
    assert lines(from_midi(to_midi(notation))[0]) == lines(notation)


@pytest.mark.parametrize(("words", "encoding"), [("По ле", "cp1251"), ("さ く", "cp932"), ("Mäd chen", "utf-8")])
def test_words_are_read_in_the_encoding_of_their_time(words, encoding):
    data = with_words(song(), {480 * n: word.encode(encoding) for n, word in enumerate(words.split())}, 1)
    assert [each.text for each in from_midi(data)[0].parts[0].lyrics] == words.split()


def test_spaces_end_the_words_of_a_karaoke_file_without_hyphens():
    notation, _ = from_midi(with_words(song(), {0: b"Hal", 480: b"le ", 960: b"lu", 1440: b"jah "}, 1))
    assert [(text, begins, ends) for _, _, text, begins, ends in lines(notation)] == [
        ("Hal", True, False),
        ("le", False, True),
        ("lu", True, False),
        ("jah", False, True),
    ]


def test_of_two_staves_of_a_track_the_one_whose_notes_have_the_words_sings():
    slow, tune = (tuple(Note(step * n, step, 50 + step) for n in range(96 // step)) for step in (48, 24))
    file = read_events(to_midi(replace(song(), parts=(Part("Slow", 0, slow), Part("Tune", 52, tune)))))
    words = [Event(480 * n, b"\xff\x05\x01" + text) for n, text in enumerate((b"a", b"b", b"c", b"d"))]
    events = sorted([*file.tracks[1].events, *file.tracks[2].events, *words], key=lambda each: each.tick)
    notation, losses = from_midi(write_events(file._replace(tracks=[file.tracks[0], EventTrack(events, 1920)])))
    assert [[each.text for each in part.lyrics] for part in notation.parts] == [[], ["a", "b", "c", "d"]]
    assert not losses


def test_any_text_is_written_as_xml_that_is_read_again():
    control = song(Syllable(0, 1, "a"), Syllable(24, 1, "b"))
    data = to_midi(control).replace(b"\x05\x01a", b"\x05\x02\x01a").replace(b"\x05\x01b", b"\x05\x03\xef\xbf\xbe")
    notation, _ = from_midi(data)
    assert [each.text for each in notation.parts[0].lyrics] == ["a"]
    assert read_notation(to_musicxml(notation)[0], "musicxml")[0].parts[0].lyrics == notation.parts[0].lyrics


@pytest.mark.parametrize("count", [1, 2])
def test_words_stay_with_the_bars_that_stay(count):
    sung = tuple(Syllable(note.onset, 1, f"s{n}") for n, note in enumerate(TUNE))
    kept = song(*sung).first_bars(count)
    assert kept.parts[0].lyrics == sung[: 4 * count]
    low = tuple(note._replace(pitch=40 if n % 2 else 80) for n, note in enumerate(TUNE))
    divided = replace(song(*sung, tune=low), parts=(Part("Piano", 0, low, sung),)).on_two_staves()
    assert [part.lyrics for part in divided.parts] == [sung[::2], sung[1::2]]


def test_a_word_that_is_cut_has_no_hyphen_to_the_end_of_the_music():
    words = [("schla", True, False), ("fert", False, True), ("und", True, True), ("Wei", True, False)]
    sung = [Syllable(48 * n, 1, *word) for n, word in enumerate(words)]
    sung += [Syllable(0, 2, "slum", True, False), Syllable(24, 2, "ber", False, False), Syllable(48, 2, "ing", False)]
    kept = cut(sorted(sung), lambda at: at < 48)
    assert [(each.text, each.ends) for each in kept] == [("schla", True), ("slum", False), ("ber", True)]
    kept = cut(sorted(sung), lambda at: at != 48)
    assert [each.text for each in kept if not each.ends] == ["slum", "Wei"]
    before = song(*sorted(sung)).first_bars(1)
    assert [each.text for each in before.parts[0].lyrics if not each.ends] == ["schla", "slum", "ber"]
