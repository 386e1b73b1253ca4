"""The lyrics of ABC, which stand in lines below the notes: music21 reads none."""

import re
from collections.abc import Iterator
from typing import Any

from musictx.music.notation.lyrics import Syllable, put

SILENT = re.compile(r'"[^"\n]*"|\{[^}\n]*\}|\[\w:[^\]\n]*\]')  # names of chords, grace notes, fields
NOTE = re.compile(r"\[[^\[\]|\n]*\]|[_^=]*[A-Ga-g]|\|")  # all notes of a bracket sound at once
WORD = re.compile(r"[|*_-]|(?:\\-|[^\s|*_-])+")
REMARK = re.compile(r"(?<!\\)%.*")


class Words:
    """The lyrics of a voice, by the numbers of its notes from 0."""

    def __init__(self) -> None:
        self.notes, self.lost = 0, 0
        self.syllables: list[Syllable] = []
        self._begins: list[int] = []  # the first note of each bar of the line
        self._verse, self._ends = 0, dict[int, bool]()  # whether the last syllable of each verse ends its word

    def play(self, line: str, goes_on: bool) -> None:
        """Counts the notes of a line, or of what goes on with the line before."""
        if not goes_on or not self._begins:
            self._begins = [self.notes]
        self._verse = 0
        for found in NOTE.findall(SILENT.sub("", line)):
            if found != "|":
                self.notes += 1
            elif self._begins[-1] < self.notes:
                self._begins.append(self.notes)

    def sing(self, text: str) -> None:
        """Puts the next verse below the notes of the line."""
        self._verse += 1
        begin, at = len(self.syllables), self._begins[0] if self._begins else 0
        text = REMARK.sub("", text)
        for found in WORD.finditer(text):
            word, joins = found[0], found.start() and text[found.start() - 1] not in " \t-"
            if word == "|":
                at = min((each for each in self._begins if each >= at), default=self.notes)
            elif word == "-" and len(self.syllables) > begin:
                self.syllables[-1] = self.syllables[-1]._replace(ends=False)
                self._ends[self._verse] = False
                at += not joins
            elif word in ("*", "_", "-"):
                at += 1
            elif at >= self.notes:
                self.lost += 1
            else:
                said = word.replace("~", " ").replace("\\-", "-").strip() or "~"
                self.syllables.append(Syllable(at, self._verse, said, self._ends.get(self._verse, True)))
                self._ends[self._verse] = True
                at += 1

    def put_below(self, voice: Any) -> int:
        """Puts the syllables below the notes of music21's voice; how many are lost: all where it counts other notes."""
        notes = [*_counted(voice)]
        if len(notes) != self.notes:
            return len(self.syllables) + self.lost
        for each in self.syllables:
            put(notes[each.onset], each)
        return self.lost


def _counted(voice: Any) -> Iterator[Any]:
    for element in voice.flatten().notes:
        if "Harmony" not in element.classes and not element.duration.isGrace:
            yield element
