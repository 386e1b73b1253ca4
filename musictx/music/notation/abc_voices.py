"""The voices of ABC: music21 says how long and high their notes are; bars, keys and tempi get their places here."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import Any

from musictx.music.notation.abc_lyrics import Words
from musictx.music.notation.abc_meters import Rests, is_compound, signature_of, sum_of, tempo_of, whole_notes
from musictx.music.notation.abc_pitches import Pitches
from musictx.music.notation.abc_text import plain, signs_in
from musictx.music.notation.abc_tuplets import as_lengths, within_bars

NAME = re.compile(r'\b(?:name|nm)=(?:"([^"\n]*)"|(\S+))')
# letters that stand for decorations, but not within a symbol: music21 takes some for notes
DECORATION = re.compile(r'("[^"\n]*")|[.~H-Wh-w]')
GRACE = re.compile(r"\{([^{}\n]*)\}")
OVER_BARS = re.compile(r"\(&([^&()\n]*)((?:&(?!\))[^&()\n]*)*)&\)")  # the music and others beside it
SLUR = re.compile(r"\((?!\d)|[)!]")  # and an old sign for the line's end
REPEAT = re.compile(r"(?<!\(\d)(?<!\(\d:)[:|]*(?::\||\|:|::)[:|]*")  # all bars alike
TUPLET = re.compile(r"\(([579])(?!:?\d)(?::(?=:))?")  # without how many notes' time it takes: three in compound meters
BARS_OF_REST = re.compile(r"[ZX](\d{0,3})")


class Line:
    """Music that is a tune of its own for music21."""

    def __init__(self, carried: str) -> None:
        self.lines: list[str] = []
        self.pitches = Pitches(carried)

    def read(self, played: str, losses: Counter[str]) -> None:
        """Takes notes and bar lines."""
        read = self.pitches.read(played)
        losses["grace"] += sum(len(re.findall("[A-Ga-g]", each)) for each in GRACE.findall(read))
        self.lines.append(GRACE.sub("", read))

    def heard(self, score: Any, losses: Counter[str]) -> list[Any]:
        """Its notes and rests in music21's score, as high as they sound; counts those that only one of both has."""
        flat = score.flatten().notesAndRests
        heard = [each for each in flat if "Harmony" not in each.classes and not each.duration.isGrace]
        losses["unread"] += abs(len(heard) - len(self.pitches.shifts))
        if len(heard) == len(self.pitches.shifts):
            self.pitches.put_on(heard)
        return heard


class Voice(Line):
    """A voice, and what music21 does not read of it."""

    def __init__(self, carried: str, layers: int = 0) -> None:
        super().__init__(carried)
        self.layers = [Layer(self, carried) for _ in range(layers)]
        self.words, self.rests = Words(), Rests()
        self.name = self.brace = ""
        self.program: int | None = None  # from here on
        self.sounds: list[int | None] = []  # programs of its notes, the first from the beginning
        self.title, self.composer = "", ""
        self._about = ""
        self.changes: list[tuple[int, str, Any]] = []  # notes and rests before it, field, value
        self.repeats, self._is_compound, self._key = 0, False, ""
        self.bars: list[Fraction] = []  # where each begins, in quarters, once music21 has read them

    def about(self, words: str) -> None:
        """Takes what a field of the voice says after its name."""
        if name := NAME.search(words):
            self.name = plain((name[1] or name[2] or "").replace("\\n", " "))
        self._about = re.sub(r'\b(?:name|nm|sname|snm)="[^"]*"', "", words)
        for each in (self, *self.layers):
            each.pitches.placed(self._about)

    def move(self, semitones: int) -> None:
        """Moves its notes and its key from here on."""
        for each in (self, *self.layers):
            each.pitches.semitones = semitones
        if self._key:
            self.changes.append((len(self.pitches.shifts), "K", signature_of(self._key, semitones)))

    def begin(self, head: dict[str, str]) -> None:
        """Takes unit, meter, key and tempo of the head; the key's clef is for voices that say none."""
        for field in "LMKQ":
            self.change(field, head.get(field, ""))
        for each in (self, *self.layers):
            each.pitches.placed(self._about)

    def change(self, field: str, words: str) -> bool:
        """Takes a key, unit, meter or tempo from here on; whether it is one."""
        value: Any = None
        if field == "M":
            value, self._is_compound = sum_of(words), is_compound(words)
            self.rests.bar = whole_notes(words) or self.rests.bar
        elif field == "Q":
            value = tempo_of(words, self.rests.unit)
        elif field == "L":
            self.rests.unit = whole_notes(words) or self.rests.unit
        for each in (self, *self.layers) if field in "KL" else ():
            said = each.pitches.key(words) if field == "K" else words.strip()
            each.lines += [f"{field}:{said}"] * bool(said)
        if field == "K" and (said := self.pitches.key(words)):
            self._key, value = said, signature_of(said, self.pitches.semitones)
        if value:
            self.changes.append((len(self.pitches.shifts), field, value))
        return bool(value)

    def play(self, music: str, losses: Counter[str]) -> None:
        """Takes a line of notes."""
        losses.update(signs_in(music))
        losses["overlay"] += sum(others.count("&") for _, others in OVER_BARS.findall(music))
        music = OVER_BARS.sub(r"\1", music)
        played, signs = REPEAT.subn("|", DECORATION.sub(r"\1", SLUR.sub("", music)))
        played = BARS_OF_REST.sub(self.rests.of, played)
        played = TUPLET.sub(r"(\1:3", played) if self._is_compound else played
        played = within_bars(as_lengths(played, self._is_compound))
        self.repeats += signs
        bars, first = [bar.split("&") for bar in played.split("|")], len(self.pitches.bars) - 1
        losses["overlay"] += sum(max(len(bar) - 1 - len(self.layers), 0) for bar in bars)
        played = "|".join(bar[0] for bar in bars)
        if played.strip():
            before = self.pitches.notes
            self.read(played, losses)
            self.sounds += [self.program] * (self.pitches.notes > before and self.program not in self.sounds)
            self.words.play(played)
        for n, layer in enumerate(self.layers, 1):
            for number, bar in enumerate(bars, first):
                if len(bar) > n:
                    layer.play_beside(bar[n], number, losses)

    def put_on(self, score: Any, losses: Counter[str]) -> None:
        """Completes music21's score of it. Where this has other notes, its bars stay, and words and tempi are lost."""
        from music21.instrument import Instrument

        heard = self.heard(score, losses)
        if len(heard) == len(self.pitches.shifts):
            score.replace(score.parts[0], self._in_bars(heard, [*score.flatten().getElementsByClass("Harmony")]))
        part = score.parts[0]
        score.metadata.title, score.metadata.composer = self.title, self.composer
        part.partName, sound = self.name, Instrument()
        part.groups.extend([self.brace] if self.brace else [])
        sound.midiProgram = self.sounds[0] if self.sounds else self.program
        losses["sounds"] += max(len(self.sounds) - 1, 0)  # a staff has one
        part.insert(0, sound)
        losses["lyrics"] += self.words.put_below([each for each in heard if not each.isRest])

    def _in_bars(self, heard: Sequence[Any], symbols: Sequence[Any]) -> Any:
        """A part of music21 with its notes in their bars, keys, meters and tempi."""
        from music21.clef import clefFromString
        from music21.duration import Duration
        from music21.key import KeySignature
        from music21.meter import TimeSignature
        from music21.stream import Measure, Part, Stream
        from music21.tempo import MetronomeMark

        onsets = onsets_of(heard)
        self.bars = [onsets[n] for n in self.pitches.bars]
        begins = sorted({Fraction(0), *self.bars} - {onsets[-1]}) or [Fraction(0)]
        self.part = Part()
        measures: list[Stream] = [Measure(number=n) for n in range(1, len(begins) + 1)]
        if len(self.pitches.bars) == 1:  # no bar lines: bars by the meter
            measures = [self.part]

        def put(onset: Fraction, element: Any) -> None:
            n = bisect_right(begins, onset) - 1
            measures[n].insert(onset - begins[n], element)

        for each in symbols:
            put(Fraction(each.offset), each)
        for onset, each in zip(onsets, heard, strict=False):
            put(onset, each)
        for before, field, value in self.changes:
            following = [begin for begin in begins if begin >= onsets[before]]
            if field == "M" and following:
                signed = measures[begins.index(following[0])]
                signed.removeByClass("TimeSignature")  # of two at one place the later counts
                signed.insert(0, TimeSignature(value))
            elif onsets[before] < onsets[-1] and field == "K":
                signature = KeySignature(value[0])
                put(onsets[before], signature.asKey(value[1]) if value[1] else signature)
            elif onsets[before] < onsets[-1] and field == "Q":
                put(onsets[before], MetronomeMark(number=value[0], referent=Duration(value[1])))
        for before, name, octaves in self.pitches.clefs:
            put(onsets[min(before, len(onsets) - 1)], clefFromString(name, octaves))
        for begin, measure in zip(begins, measures, strict=True):
            if measure is not self.part:
                self.part.insert(begin, measure)
        return self.part


class Layer(Line):
    """The music behind the nth & of each bar, which begins with the bar."""

    def __init__(self, voice: Voice, carried: str) -> None:
        super().__init__(carried)
        self.voice = voice
        self.spans: list[tuple[int, int, int]] = []  # bar, first note or rest, and the one after the last

    def play_beside(self, music: str, bar: int, losses: Counter[str]) -> None:
        """Takes the music of a bar."""
        before = len(self.pitches.shifts)
        self.read("|" + music, losses)
        self.spans.append((bar, before, len(self.pitches.shifts)))

    def put_on(self, score: Any, losses: Counter[str]) -> None:
        """Puts its notes beside those of its voice."""
        from music21.stream import Voice as StreamVoice

        heard = self.heard(score, losses)
        score.remove(score.parts[0])
        if not self.voice.bars or len(heard) != len(self.pitches.shifts):
            losses["overlay"] += len(self.spans)
            return
        onsets, beside = onsets_of(heard), StreamVoice()
        self.voice.part.insert(0, beside)
        for bar, first, end in self.spans:
            for n in (n for n in range(first, end) if not heard[n].isRest):
                beside.insert(self.voice.bars[bar] + onsets[n] - onsets[first], heard[n])


def onsets_of(heard: Sequence[Any]) -> list[Fraction]:
    """Where each begins that follows the one before, and where the last one ends, in quarters."""
    return [Fraction(0), *accumulate(Fraction(each.duration.quarterLength) for each in heard)]
