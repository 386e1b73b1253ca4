"""The voices of ABC, as music21 reads them, and what it does not read."""

import re
from collections import Counter
from typing import Any

from musictx.music.notation.abc_lyrics import SILENT, Words
from musictx.music.notation.abc_meters import BARS_OF_REST, FIELD, change_bar, is_compound, meter_of
from musictx.music.notation.abc_pitches import Pitches
from musictx.music.notation.abc_text import plain

NAME = re.compile(r'\b(?:name|nm)=(?:"([^"\n]*)"|(\S+))')
# letters that stand for decorations, but not within a symbol: music21 takes some for notes
DECORATION = re.compile(r'("[^"\n]*")|[.~H-Wh-w]')
GRACE = re.compile(r"\{([^{}\n]*)\}")
REPEAT = re.compile(r"(?<!\(\d)[:|]*(?::\||\|:|::)[:|]*")  # music21 finds no bars around some
TUPLET = re.compile(r"\(([579])(?!:?\d)(?::(?=:))?")  # without how many notes' time it takes: three in compound meters


class Voice:
    """The lines of a voice, and what music21 does not read of it."""

    def __init__(self, carried: str, layers: int = 0) -> None:
        self.layers = [Layer(self, number, carried) for number in range(1, layers + 1)]
        self.lines: list[str] = []
        self.words, self.pitches = Words(), Pitches(carried)
        self.name = ""
        self.program: int | None = None
        self.title, self.composer = "", ""
        self._about = ""
        self.tempi: list[tuple[int, float]] = []  # notes before it, and quarters a minute
        self.changes: list[tuple[int, str, str]] = []  # bars before it, field, words
        self.bars, self._is_begun, self.is_compound = 0, False, False
        self.repeats = 0

    def about(self, words: str) -> None:
        """Takes what a field of the voice says after its name."""
        if name := NAME.search(words):
            self.name = plain(name[1] or name[2] or "")
        self._about = re.sub(r'\b(?:name|nm|sname|snm)="[^"]*"', "", words)
        for each in (self, *self.layers):
            each.pitches.placed(self._about)

    def begin(self, field: str, meter: str) -> None:
        """Takes the head's meter, and its key, whose clef is for voices that say none."""
        self.is_compound = is_compound(meter)
        for each in (self, *self.layers):
            each.pitches.key(field)
            each.pitches.placed(self._about)

    def change(self, field: str, words: str) -> None:
        """Takes a key, unit or meter within the tune."""
        self.is_compound = is_compound(words) if field == "M" else self.is_compound
        for each in (self, *self.layers):
            said = each.pitches.key(words) if field == "K" else meter_of(words) if field == "M" else words
            each.lines += [f"{field}:{said}"] * bool(said.strip())
            each.changes += [(each.bars, field, said)] * bool(said.strip() and field in "KM")

    def play(self, music: str, losses: Counter[str]) -> None:
        """Takes a line of notes."""
        played, signs = REPEAT.subn("|", DECORATION.sub(r"\1", music))
        played = TUPLET.sub(r"(\1:3", played) if self.is_compound else played
        self.repeats += signs
        bars = [bar.split("&") for bar in played.split("|")]
        losses["overlay"] += sum(max(len(bar) - 1 - len(self.layers), 0) for bar in bars)
        played = "|".join(bar[0] for bar in bars)
        if played.strip():
            self.lines.append(self._read(played, losses))
            self._count(played)
            self.words.play(played)
            for each in self.layers:
                each.play_beside(bars, losses)

    def _count(self, played: str) -> None:
        """Counts the bars that end in a line."""
        for count, bar in enumerate(SILENT.sub("", played).split("|")):
            self.bars += self._is_begun and count > 0
            rests = BARS_OF_REST.search(bar)
            self.bars += max(int(rests[1] or 1) - 1, 0) if rests else 0
            self._is_begun = bool(re.search("[A-Ga-gxzXZ]", bar)) or (self._is_begun and not count)

    def _read(self, played: str, losses: Counter[str]) -> str:
        read = self.pitches.read(played)
        losses["grace"] += sum(len(re.findall("[A-Ga-g]", each)) for each in GRACE.findall(read))
        return GRACE.sub("", read)

    def _heard(self, score: Any, losses: Counter[str]) -> list[Any]:
        """Its notes in music21's score; where these are others, octaves and ties of brackets are lost."""
        heard = [each for each in score.flatten().notes if "Harmony" not in each.classes and not each.duration.isGrace]
        if len(heard) == len(self.pitches.shifts):
            self.pitches.put_on(heard)
        losses["unread"] += abs(len(heard) - len(self.pitches.shifts))
        return heard

    def put_on(self, score: Any, losses: Counter[str]) -> None:
        """Completes music21's score of it. Where this has other notes, words and tempi may be lost."""
        from music21.instrument import Instrument
        from music21.tempo import MetronomeMark

        self.part = part = score.parts[0]
        score.metadata.title, score.metadata.composer = self.title, self.composer
        part.partName, sound = self.name, Instrument()
        sound.midiProgram = self.program
        part.insert(0, sound)
        heard = self._heard(score, losses)
        for before, speed in self.tempi:
            if before < len(heard):
                part.insert(heard[before].getOffsetInHierarchy(part), MetronomeMark(number=speed))
        losses["lyrics"] += self.words.put_below(heard)
        measures = part.getElementsByClass("Measure")
        if len(measures) == self.bars + self._is_begun:
            for before, field, words in self.changes:
                if before < len(measures):
                    change_bar(measures[before], field, words)


class Layer(Voice):
    """The music behind the nth & of each bar, and the voice's own in bars without it, which gives it its time."""

    def __init__(self, voice: Voice, number: int, carried: str) -> None:
        super().__init__(carried)
        self.voice, self.number = voice, number
        self.own: list[int] = []  # its notes that are not the voice's
        self._bar = 0, 0, 0  # where it begins: line, sign, note

    def play_beside(self, bars: list[list[str]], losses: Counter[str]) -> None:
        """Takes a line's bars, each as the voice's music and that behind each &."""
        line = ""
        for count, bar in enumerate(bars):
            is_own = len(bar) > self.number
            if count:
                line += self.pitches.read("|")
                self._bar = len(self.lines), len(line), len(self.pitches.shifts)
            elif is_own:
                self._go_back()
            before = len(self.pitches.shifts)
            line += self._read(bar[self.number if is_own else 0], losses if is_own else Counter())
            self.own += range(before, len(self.pitches.shifts)) if is_own else ()
        self.lines.append(line)

    def _go_back(self) -> None:
        """Leaves the bar's music on lines before: an & goes back to the bar's beginning."""
        number, sign, note = self._bar
        self.lines[number:] = [
            line if FIELD.match(line) else line[: sign * (n == 0)] for n, line in enumerate(self.lines[number:])
        ]
        self.pitches.cut(note)
        self.own = [each for each in self.own if each < note]

    def put_on(self, score: Any, losses: Counter[str]) -> None:
        """Puts its notes beside those of its voice."""
        (part,), heard = score.parts, self._heard(score, losses)
        for note in [heard[n] for n in self.own if n < len(heard)]:
            self.voice.part.insert(note.getOffsetInHierarchy(part), note)
        score.remove(part)
