"""Lyrics of a staff: from music21's notes, onto them, and in the track of a MIDI file."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from musictx.music.letters import as_text, guess_encoding, is_utf8
from musictx.music.midi_file import META, Event, EventTrack
from musictx.music.score import UNITS

LYRIC = 0x05  # a MIDI file's syllable begins with it
SYLLABIC = {(True, True): "single", (True, False): "begin", (False, False): "middle", (False, True): "end"}
LINE_BREAKS = "/\\"  # of karaoke files


class Syllable(NamedTuple):
    """Text below the note that begins there, which begins a word, ends one, or both; of a voice of the staff."""

    onset: int
    verse: int
    text: str
    begins: bool = True
    ends: bool = True
    voice: int = 0  # 1 is the top; 0 where the staff has one, or nothing says it


def syllables_of(elements: Iterable[Any], voices: Mapping[int, int], losses: Counter[str]) -> tuple[Syllable, ...]:
    """The syllables below music21's notes, whose voices are known by `id`; counts those of grace notes and rests."""
    found = set[Syllable]()
    for element in elements:
        for lyric in element.lyrics:
            text = printable(lyric.text or "")
            each = lyric.components if lyric.isComposite else [lyric]
            begins, ends = each[0].syllabic not in ("middle", "end"), each[-1].syllabic not in ("begin", "middle")
            if text and (element.isRest or element.duration.isGrace):
                losses["lyrics"] += 1
            elif text:
                onset = round(Fraction(element.offset) * UNITS)
                bare, voice = _bare(text, begins, ends), voices.get(id(element), 0)
                found.add(Syllable(onset, lyric.number, bare, begins, ends, voice))
    return tuple(sorted(found, key=lambda each: (each.onset, each.verse, each.voice, each)))


def _bare(text: str, begins: bool, ends: bool) -> str:
    """Without the hyphens that some formats leave in it."""
    bare = text if begins else text.lstrip("- ")
    bare = bare if ends else bare.rstrip("- ")
    return bare or text


def cut(syllables: Sequence[Syllable], stays: Callable[[int], bool]) -> tuple[Syllable, ...]:
    """Those whose place stays. A word ends where the rest of it is cut off, or its hyphens would go on to the end of
    the music."""
    kept, is_cut = list[Syllable](), dict[tuple[int, int], bool]()  # whether the next of its verse does not stay
    for each in reversed(syllables):
        if stays(each.onset):
            kept.append(each._replace(ends=each.ends or is_cut.get((each.verse, each.voice), False)))
        is_cut[each.verse, each.voice] = not stays(each.onset)
    return tuple(reversed(kept))


def sing(voices: Mapping[int, Any], syllables: Iterable[Syllable], onset: int, losses: Counter[str]) -> None:
    """Puts syllables below the notes of a measure that begins at `onset`, of their own voices if these begin notes
    there; counts those where no note begins."""
    for each in sorted(syllables, key=lambda each: each.voice):
        at = Fraction(each.onset - onset, UNITS)
        own_first = sorted(voices, key=lambda voice: voice != each.voice)
        begun = (element for voice in own_first for element in voices[voice].notes if element.offset == at)
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


def in_midi(syllables: Collection[Syllable]) -> dict[int, str]:
    """The texts of a MIDI track by their places, those of the first verse; a hyphen goes on with the word."""
    texts: dict[int, str] = {}
    first = min((each.verse for each in syllables), default=1)
    for each in syllables:
        if each.verse == first:
            texts.setdefault(each.onset, each.text + "-" * (not each.ends))
    return texts


def is_lyric(event: Event) -> bool:
    """Whether a MIDI event is a syllable."""
    return event.kind == META and event.data[1] == LYRIC


def syllables_in(track: EventTrack, per_unit: float) -> list[Syllable]:
    """The syllables of a MIDI track. Words end with a space where some do, else where no hyphen follows."""
    events = [event for event in track.events if is_lyric(event)]
    encoding = guess_encoding([event.text for event in events if not is_utf8(event.text)])
    texts = [printable(as_text(event.text, encoding)).lstrip(LINE_BREAKS).strip() for event in events]
    has_hyphens = any(text.endswith("-") for text in texts)
    has_spaces = not has_hyphens and any(event.text.endswith(b" ") for event in events)
    syllables, begins = list[Syllable](), True
    for event, text in zip(events, texts, strict=True):
        if text.strip("-"):
            ends = event.text.endswith((b" ", b"\r", b"\n")) if has_spaces else not text.endswith("-")
            syllables.append(Syllable(round(event.tick / per_unit), 1, _bare(text, begins, ends), begins, ends))
            begins = ends
    return syllables


def printable(text: str) -> str:
    """Without characters that XML lacks, controls and halves of pairs, in one line."""
    return " ".join("".join(x if x.isprintable() else " " for x in text).split())
