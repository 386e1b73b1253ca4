"""Accidentals, ties and octaves of ABC, as its standard 2.1 has them: music21 ends an accidental with its note, ties no
chords, and knows no transposing voices."""

import re
from typing import Any

PITCH = re.compile(r"((?<![_^=])[_^=]{1,2}|)([A-Ga-g])([,']*)([\d/]*)(-?)")
EVENT = re.compile(rf'("[^"\n]*")|(\{{[^{{}}\n]*\}})|(\|)|[zx]([\d/]*)|\[([^\[\]|\n]*)\]([\d/]*)(-?)|{PITCH.pattern}')
MOVED = re.compile(r"(?:^|[\s=\"])(?:treble|bass|alto|tenor|[GFC])\d?([+-]8)(?!\d)")
CLEF = re.compile(
    r"(?:\bclef=\s*\"?([GFC])|\b(treble|bass|baritone|tenor|alto|mezzosoprano|soprano))([1-5]?)(?:([+-])8)?"
)
CLEFS = {"treble": "G2", "bass": "F4", "baritone": "F3", "tenor": "C4", "alto": "C3", "mezzosoprano": "C2"}
CLEFS |= {"soprano": "C1", "G": "G2", "F": "F4", "C": "C3"}
MODES = r"(?i:maj|min|ion|dor|phr|lyd|mix|aeo|loc)[a-z]*|m"
KEY = re.compile(rf"(none|HP|Hp|[A-Ga-g][#b]?)(?=$|[\s_^=]|{MODES})\s*({MODES})?(?![a-z])")
ACCIDENTAL = re.compile(r"([_^=]{1,2})([A-Ga-g])(?![a-z])")
PIPES = "exp ^F ^C =G"  # of K:HP and K:Hp
OCTAVE, TRANSPOSE = (re.compile(rf"\b{word}=\s*([+-]?\d{{1,2}})(?!\d)") for word in ("octave", "transpose"))
Place = tuple[str, int]  # a letter and its octave; (C, 0) is the middle one


class Pitches:
    """The pitches of a voice, by the numbers of its notes and rests from 0; all notes of a bracket have one number.

    `last`: how far an accidental reaches within its bar: `pitch`, all octaves; `octave`; or `not` beyond its note.
    """

    def __init__(self, last: str = "pitch") -> None:
        self.last = last
        self.shifts: list[int] = []  # semitones of each note or rest
        self.notes = 0  # beside rests
        self.bars = [0]  # the number that follows each bar line
        self.clefs: list[tuple[int, str, int]] = []  # number of the next note or rest, letter and line, octaves
        self.ties: dict[int, set[Place]] = {}
        self._octave, self._clef, self.semitones = 0, 0, 0
        self._key: dict[str, str] = {}  # accidentals of the key, beside those of its signature
        self._bar: dict[object, str] = {}  # the accidentals since the bar line
        self._tied: dict[Place, str] = {}  # by the note before

    def placed(self, words: str) -> None:
        """Takes the clef, octave and transposition that a field says."""
        if re.search(r"clef|treble|bass|alto|tenor", words):
            moved = MOVED.search(words)
            self._clef = int(moved[1]) // 8 if moved else 0
            if clef := CLEF.search(words):
                name = CLEFS[clef[1] or clef[2]]
                self.clefs.append(
                    (len(self.shifts), name[0] + (clef[3] or name[1]), int(f"{clef[4] or ''}{bool(clef[4]):d}"))
                )
        if found := OCTAVE.search(words):
            self._octave = int(found[1])
        if found := TRANSPOSE.search(words):
            self.semitones = int(found[1])

    def key(self, field: str) -> str:
        """Takes what a key's field says, and has its key and mode alone, "" where it says a clef."""
        self.placed(field)
        said = re.sub(r"\b[a-z]{2,}=\S*", "", field).strip()
        found = KEY.match(said)
        if found is not None and found[1] in ("HP", "Hp"):
            said = PIPES
        changes = ACCIDENTAL.findall(said)
        if found is None and not changes:
            return ""
        self._key = dict.fromkeys("ABCDEFG", "=") if re.search(r"\bexp\b", said) else {}
        self._key |= {letter.upper(): accidental for accidental, letter in changes}
        if found is None or found[1] in ("none", "HP", "Hp"):
            return "none" if found is None else found[1]
        return f"{found[1][0].upper()}{found[1][1:]} {found[2] or ''}".strip()

    def read(self, line: str) -> str:
        """The line with each accidental where it is heard, for a reader that carries none."""
        return EVENT.sub(self._event, line)

    def _event(self, found: re.Match[str]) -> str:
        word, grace, bar, rest, chord, length, tie = found.group(0, 2, 3, 4, 5, 6, 7)
        if found[1]:
            return word
        if bar:
            self._bar.clear()
            self.bars.append(len(self.shifts))
            return word
        if grace:
            return PITCH.sub(lambda each: self._pitch(each, {}), word)
        tied, self._tied = self._tied, {}
        if rest is not None:
            self.shifts.append(0)
            return f"z{rest}"  # music21 gives x no time
        if chord is None:
            said = self._pitch(re.fullmatch(PITCH, word) or found, tied)
        else:
            said = "[" + PITCH.sub(lambda each: self._pitch(each, tied, bool(tie)), chord) + f"]{length}{tie}"
        if self._tied:
            self.ties[len(self.shifts)] = {*self._tied}
        self.notes += 1
        self.shifts.append(12 * (self._octave + self._clef) + self.semitones)
        return said

    def _pitch(self, found: re.Match[str], tied: dict[Place, str], ties: bool = False) -> str:
        accidental, letter, marks, length, tie = found.groups()
        place = letter.upper(), letter.islower() + marks.count("'") - marks.count(",")
        key = {"pitch": letter.upper(), "octave": place}.get(self.last)
        if accidental:
            if key is not None:
                self._bar[key] = accidental
        else:
            accidental = tied.get(place) or self._bar.get(key) or self._key.get(letter.upper(), "")
        if tie or ties:
            self._tied[place] = accidental
        return f"{accidental}{letter}{marks}{length}{tie}"

    def put_on(self, elements: list[Any]) -> None:
        """Ties and transposes music21's notes, one element a number."""
        from music21.tie import Tie

        for index, places in self.ties.items():
            before = {_place(note): note for note in _each(elements[index])}
            after = {_place(note): note for element in elements[index + 1 : index + 2] for note in _each(element)}
            for place in places & before.keys() & after.keys():
                goes_on = before[place].tie is not None and before[place].tie.type in ("stop", "continue")
                before[place].tie = Tie("continue" if goes_on else "start")
                after[place].tie = Tie("stop")
        for element, shift in zip(elements, self.shifts, strict=True):
            if shift:
                element.transpose(shift, inPlace=True)


def _each(element: Any) -> list[Any]:
    return list(getattr(element, "notes", () if element.isRest else (element,)))


def _place(note: Any) -> Place:
    return note.pitch.step, note.pitch.octave - 4
