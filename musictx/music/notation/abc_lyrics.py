"""The lyrics of ABC, which stand in lines below the notes: music21 reads none."""

import re
from typing import Any

from musictx.music.notation.abc_text import plain, without_remark
from musictx.music.notation.lyrics import Syllable, put

SILENT = re.compile(r'"[^"\n]*"|\{[^{}\n]*\}|\[\w:[^\]\n]*\]')  # names of chords, grace notes, fields
NOTE = re.compile(r"\[[^\[\]|\n]*\]|[A-Ga-g]|\|")  # all notes of a bracket sound at once
TILDE = re.compile(r"(?<!\\)~")  # a space; after a stroke, an accent
WORD = re.compile(r"[|*_-]|(?:\\-|[^\s|*_-])+")


class Words:
    """The lyrics of a voice, by the numbers of its notes from 0."""

    def __init__(self) -> None:
        self.notes, self.lost = 0, 0
        self.syllables: list[Syllable] = []
        self._bars = [0]  # the first note of each bar since the lyrics before
        self._verse = 0
        self._ends = dict[int, bool]()  # whether the last syllable of each verse ends its word

    def play(self, line: str) -> None:
        """Counts the notes of a line."""
        if self._verse:
            self._bars, self._verse = [self.notes], 0
        for found in NOTE.findall(SILENT.sub("", line)):
            if found != "|":
                self.notes += 1
            elif self._bars[-1] < self.notes:
                self._bars.append(self.notes)

    def sing(self, text: str) -> None:
        """Puts the next verse below the notes since the lyrics before."""
        self._verse += 1
        words, first, at = without_remark(text), len(self.syllables), self._bars[0]
        for found in WORD.finditer(words):
            word, joins = found[0], found.start() and words[found.start() - 1] not in " \t-"
            if word == "|":
                at = min((each for each in self._bars if each >= at), default=self.notes)
            elif word == "-" and len(self.syllables) > first:
                self.syllables[-1] = self.syllables[-1]._replace(ends=False)
                self._ends[self._verse] = False
                at += not joins
            elif word in ("*", "_", "-"):
                at += 1
            elif at >= self.notes:
                self.lost += 1
            else:
                if said := plain(TILDE.sub(" ", word).replace("\\-", "-")):
                    self.syllables.append(Syllable(at, self._verse, said, self._ends.get(self._verse, True)))
                    self._ends[self._verse] = True
                at += 1

    def put_below(self, notes: list[Any]) -> int:
        """Puts the syllables below music21's notes; how many are lost: all where it has others."""
        if len(notes) != self.notes:
            return len(self.syllables) + self.lost
        for each in self.syllables:
            put(notes[each.onset], each)
        return self.lost
