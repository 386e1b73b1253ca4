"""Lyrics of a staff: from music21's notes, onto them, and in the track of a MIDI file."""

from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

from musictx.music.midi_file import META, EventTrack
from musictx.music.score import UNITS

LYRIC = 0x05  # a MIDI file's syllable begins with it
SYLLABIC = {(True, True): "single", (True, False): "begin", (False, False): "middle", (False, True): "end"}
LINE_BREAKS = "/\\"  # of karaoke files


class Syllable(NamedTuple):
    """Text below the note that begins there, which begins a word, ends one, or both."""

    onset: int
    verse: int
    text: str
    begins: bool = True
    ends: bool = True


def syllables_of(elements: Iterable[Any], losses: Any) -> tuple[Syllable, ...]:
    """The syllables below music21's notes; counts those of grace notes."""
    found = set[Syllable]()  # two voices of a staff may sing one
    for element in elements:
        for lyric in getattr(element, "lyrics", ()):
            text = " ".join((lyric.text or "").split())
            each = lyric.components if lyric.isComposite else [lyric]
            begins, ends = each[0].syllabic not in ("middle", "end"), each[-1].syllabic not in ("begin", "middle")
            if text and element.duration.isGrace:
                losses["lyrics"] += 1
            elif text:
                onset = round(Fraction(element.offset) * UNITS)
                found.add(Syllable(onset, lyric.number, _bare(text, begins, ends), begins, ends))
    return tuple(sorted(found))


def _bare(text: str, begins: bool, ends: bool) -> str:
    """Without the hyphens that some formats leave in it."""
    bare = text if begins else text.lstrip("-")
    bare = bare if ends else bare.rstrip("-")
    return bare or text


def sing(measure: Any, syllables: Iterable[Syllable], onset: int, losses: Any) -> None:
    """Puts syllables below the notes of a measure that begins at `onset`; counts those where no note begins."""
    voices = [*measure.voices] or [measure]
    for each in syllables:
        at = Fraction(each.onset - onset, UNITS)
        begun = (element for voice in voices for element in voice.notes if element.offset == at)
        free = (element for element in begun if all(other.number != each.verse for other in element.lyrics))
        if (element := next(free, None)) is None:
            losses["lyrics"] += 1
            continue
        put(element, each)


def put(element: Any, syllable: Syllable) -> None:
    """Puts a syllable below music21's note."""
    from music21 import note

    syllabic = SYLLABIC[syllable.begins, syllable.ends]
    element.lyrics.append(note.Lyric(syllable.text, syllable.verse, applyRaw=True, syllabic=syllabic))


def in_midi(syllables: Iterable[Syllable]) -> dict[int, str]:
    """The texts of a MIDI track by their places, those of the first verse; a hyphen goes on with the word."""
    texts: dict[int, str] = {}
    for each in sorted(syllables, key=lambda each: (each.verse, each.onset)):
        if each.verse == 1:
            texts.setdefault(each.onset, each.text + "-" * (not each.ends))
    return texts


def syllables_in(track: EventTrack, per_unit: float, onsets: Collection[int]) -> Iterator[Syllable]:
    """The syllables of a MIDI track that lie at onsets of its notes."""
    begins = True
    for event in track.events:
        if event.kind != META or event.data[1] != LYRIC or event.data[2] > 127:  # no syllable is so long
            continue
        words = event.data[3:].decode("utf-8", "replace")
        text = " ".join("".join(x if x.isprintable() else " " for x in words).split()).lstrip(LINE_BREAKS).strip()
        ends = not text.endswith("-")
        if text.strip("-"):
            if (onset := round(event.tick / per_unit)) in onsets:
                yield Syllable(onset, 1, _bare(text, True, ends), begins, ends)
            begins = ends
