"""Free scores as pieces in ticks, exactly as they are written: music21 reads them, and no time is rounded."""

import contextlib
import io
import re
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import mido
import music21

from musictx.music.score import DRUMS

TICKS = 480  # a quarter: eighths, triplets, thirty-seconds and quintuplets are whole numbers
BPM = 100.0  # where a score says no tempo
VELOCITY = 80
NO_TICKS, NO_METER, NOT_READ = "with times between ticks", "without one meter throughout", "that music21 cannot read"
DRUM_CHANNEL = 9


class Note(NamedTuple):
    on: int
    off: int
    pitch: int
    velocity: int = VELOCITY


class Part(NamedTuple):
    name: str
    program: int
    notes: list[Note]


class Piece(NamedTuple):
    """Times are ticks; `upbeat` is what comes before the first bar line, `tempos` are ticks and quarters a minute."""

    parts: list[Part]
    signature: tuple[int, int]
    upbeat: int
    tempos: list[tuple[int, float]]

    @property
    def bar(self) -> int:
        beats, unit = self.signature
        return TICKS * 4 * beats // unit

    def later(self, ticks: int) -> "Piece":
        """The piece after a silence, in which its first tempo counts."""
        parts = [
            p._replace(notes=[n._replace(on=n.on + ticks, off=n.off + ticks) for n in p.notes]) for p in self.parts
        ]
        return self._replace(parts=parts, tempos=[(at + ticks if at else 0, bpm) for at, bpm in self.tempos])


class Unfit(Exception):
    """A score that is left out, and why."""


def in_ticks(quarters: Any) -> int:
    """A time of music21 in ticks. Raises Unfit where it lies between two."""
    ticks: int = round(quarters * TICKS)
    if abs(quarters * TICKS - ticks) > 1e-6:
        raise Unfit(NO_TICKS)
    return ticks


def read(data: bytes, suffix: str) -> Piece:
    """The piece of a score file. Raises Unfit for what music21 cannot read, and for what has no bars or no ticks."""
    try:
        parts = [part for text, form in texts(data, suffix) for part in parsed(text, form)]
    except Exception as error:  # of any kind: what music21 meets in a file is not foreseen
        raise Unfit(NOT_READ) from error
    named = [Part(str(p.partName or f"Part {k}"), program_of(p), joined(notes_of(p))) for k, p in enumerate(parts, 1)]
    signature, upbeat = meter_of(parts)
    return Piece([part for part in named if part.notes], signature, upbeat, tempos_of(parts))


def texts(data: bytes, suffix: str) -> Iterator[tuple[str, str]]:
    """What music21 reads of a file, and in which format: an ABC tune voice by voice."""
    if suffix == ".mxl":
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            name = next(n for n in packed.namelist() if n.endswith("xml") and not n.startswith("META-INF"))
            yield packed.read(name).decode(), "musicxml"
    elif suffix == ".abc":
        yield from ((voice, "abc") for voice in abc_voices(data.decode("utf-8", "replace")))
    else:
        yield data.decode("utf-8", "replace"), "humdrum"


def abc_voices(text: str) -> list[str]:
    """A tune of each voice of an ABC file, since music21 reads voices one after the other. Words are left out, and a
    tempo in the music comes to the head, where music21 looks for it."""
    music, voice, is_head = dict[str, list[str]](), "", True
    head = [f"Q:{said[1]}"] if (said := re.search(r"^[^%\n]*\[Q: *([^\]]*)\]", text, re.MULTILINE)) else []
    for line in text.splitlines():
        line = re.sub(r"![^!]*!", "", line.partition("%")[0]).strip()
        if not line or line[:2] in ("w:", "W:"):
            continue
        if found := re.match(r"\[?V: *(\S+?)(?:\]|\s|$)(.*)", line):
            voice, line = found[1], "" if line[0] == "V" else found[2]
        if is_head and re.match(r"[XMLKQ]:", line):
            head.append(line)
            is_head = line[0] != "K"
        elif not is_head and line:
            music.setdefault(voice, []).append(line)
    return ["\n".join([*head, *lines, ""]) for lines in music.values()]


def parsed(text: str, form: str) -> list[Any]:
    with contextlib.redirect_stderr(io.StringIO()):  # remarks on words and slurs
        return list(music21.converter.parse(text, format=form, forceSource=True).parts)


def program_of(part: Any) -> int:
    instrument = part.getInstrument()
    return int(instrument.midiProgram or 0) if instrument else 0


def notes_of(part: Any) -> Iterator[tuple[Note, str]]:
    """The notes of a part, each with its tie; without grace notes, which have no written time, and chord symbols."""
    for element in part.flatten().notes:
        if element.duration.isGrace or isinstance(element, music21.harmony.ChordSymbol):
            continue
        on = in_ticks(element.offset)
        off = on + in_ticks(element.quarterLength)
        for note in element.notes if isinstance(element, music21.chord.Chord) else [element]:
            if isinstance(note, music21.note.Note):
                yield Note(on, off, int(note.pitch.midi)), note.tie.type if note.tie else ""


def joined(tied: Iterator[tuple[Note, str]]) -> list[Note]:
    """Tied notes as one, and no pitch twice at once: a note ends where its pitch begins again."""
    whole, held = list[Note](), dict[int, int]()  # of each pitch: the note that is tied on
    for note, tie in sorted(tied):
        k = held.pop(note.pitch, None)
        if tie in ("continue", "stop") and k is not None and whole[k].off == note.on:
            whole[k] = whole[k]._replace(off=note.off)
        else:
            k = len(whole)
            whole.append(note)
        if tie in ("start", "continue"):
            held[note.pitch] = k
    return apart(whole)


def apart(notes: Sequence[Note]) -> list[Note]:
    """No pitch twice at once: of notes that begin together the longest, and each ends where its pitch begins again."""
    last, kept = dict[int, Note](), list[Note]()
    for note in sorted(notes, key=lambda note: (-note.on, -note.off)):
        after = last.get(note.pitch)
        if note.off > note.on and (after is None or after.on > note.on):
            last[note.pitch] = note if after is None else note._replace(off=min(note.off, after.on))
            kept.append(last[note.pitch])
    return sorted(kept)


def meter_of(parts: Sequence[Any]) -> tuple[tuple[int, int], int]:
    """The time signature and the upbeat. Raises Unfit unless all bars keep to one."""
    found = {(t.numerator, t.denominator) for part in parts for t in part.recurse().getElementsByClass("TimeSignature")}
    measures = [in_ticks(m.offset) for part in parts[:1] for m in part.getElementsByClass("Measure")]
    if len(found) != 1 or len(measures) < 2:
        raise Unfit(NO_METER)
    (beats, unit) = found.pop()
    bar = TICKS * 4 * beats // unit
    upbeat = measures[1] % bar
    if any((at - upbeat) % bar for at in measures[1:]) or measures[1] > bar:
        raise Unfit(NO_METER)
    return (beats, unit), upbeat


def tempos_of(parts: Sequence[Any]) -> list[tuple[int, float]]:
    """The tempos that a score says, the first at tick 0."""
    said = dict[int, float]()
    for part in parts:
        for mark in part.flatten().getElementsByClass("MetronomeMark"):
            if bpm := mark.getQuarterBPM():
                said.setdefault(in_ticks(mark.offset), float(bpm))
    found = sorted(said.items())
    return [(0, found[0][1] if found else BPM), *((at, bpm) for at, bpm in found if at)]


def midi_of(piece: Piece) -> mido.MidiFile:
    """The piece as a MIDI file. An upbeat is a short first bar."""
    file, (beats, unit) = mido.MidiFile(ticks_per_beat=TICKS), piece.signature
    clock = [(at, mido.MetaMessage("set_tempo", tempo=round(6e7 / bpm))) for at, bpm in piece.tempos]
    clock += [(piece.upbeat, mido.MetaMessage("time_signature", numerator=beats, denominator=unit))]
    if piece.upbeat:
        clock.append((0, short_bar(piece.upbeat, unit)))
    file.tracks.append(track("", clock))
    channels = (k for k in range(16) if k != DRUM_CHANNEL)
    for part in piece.parts:
        channel = DRUM_CHANNEL if part.program == DRUMS else next(channels)
        events = list[tuple[int, Any]]()
        if part.program != DRUMS:
            events.append((0, mido.Message("program_change", program=part.program, channel=channel)))
        for note in part.notes:
            key = {"note": note.pitch, "channel": channel}
            events.append((note.on, mido.Message("note_on", velocity=note.velocity, **key)))
            events.append((note.off, mido.Message("note_off", **key)))
        file.tracks.append(track(part.name, events))
    return file


def short_bar(ticks: int, unit: int) -> mido.MetaMessage:
    """The time signature of a bar that is so long, in this unit or in parts of it. Raises Unfit for none."""
    while unit <= 64:
        beats, rest = divmod(ticks * unit, 4 * TICKS)
        if not rest:
            return mido.MetaMessage("time_signature", numerator=beats, denominator=unit)
        unit *= 2
    raise Unfit(NO_METER)


def track(name: str, events: Sequence[tuple[int, Any]]) -> mido.MidiTrack:
    """A track of events at their ticks; at one tick notes end before others begin."""
    out, now = mido.MidiTrack([mido.MetaMessage("track_name", name=name.encode("ascii", "replace").decode())]), 0
    for at, message in sorted(events, key=lambda event: (event[0], event[1].type != "note_off")):
        out.append(message.copy(time=at - now))
        now = at
    return out
