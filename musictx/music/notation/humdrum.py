"""Humdrum for music21: each voice in a spine of its own, since it loses those that split twice; words below notes."""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

from musictx.errors import counted
from musictx.music.harmony import key_sharps
from musictx.music.notation.lyrics import Syllable, printable, put

LENGTH = re.compile(r"(\d{1,6})(?:%(\d{1,6}))?(\.{0,6})")
MOST_COLUMNS, MOST_TOKENS = 500, 2**22  # a voice that splits off once has as many places as the others
MOST_SIGNS, MOST_DOTS = 1000, 100  # of a chord or word
KEY_NAMES = re.compile(r"(?m)(^|(?<=\t))\*([A-Ga-g][#-]?):[^\t\n]*")
SIGNED = re.compile(r"\*k\[([^\]]*)\]")
PATHS = {"*^", "*v", "*x", "*+", "*-"}
Column = tuple[int, int]  # the spine that it comes from, and which of its voices


class Spines:
    """The spines of a text: `text` has those of notes, a voice in each; other words of it are for `put_on`."""

    def __init__(self, text: str, losses: Counter[str]) -> None:
        self.kinds: list[str] = []
        self.rows: list[tuple[list[Column], list[str]]] = []
        self.above: list[str] = []  # lines of the whole score
        self.losses = losses
        self._read(text)
        self.onsets = [*self._onsets()]
        self.staves = [spine for spine, kind in enumerate(self.kinds) if kind == "**kern"]
        losses["spines"] += sum(kind not in ("**kern", "**text") for kind in self.kinds)
        used = {column for columns, _ in self.rows for column in columns}
        self.voices = [(spine, voice) for spine in self.staves for voice in range(sum(s == spine for s, _ in used))]
        if len(self.voices) * len(self.rows) > MOST_TOKENS:
            raise ValueError(f"its {len(self.voices)} voices have more than {MOST_TOKENS:,} places")
        self.text = "\n".join([*self.above, *self._lines()]) + "\n"

    def _read(self, text: str) -> None:
        columns: list[Column] = []
        for number, line in enumerate(re.split(r"\r\n?|\n", text), 1):
            tokens = re.split(r"\t+", line.rstrip())
            if line.startswith("!!"):
                self.above.append(line)
            elif tokens[0].startswith("**") and not columns:
                self.kinds = self.kinds or tokens
                if len(tokens) != len(self.kinds):  # another score, not more of this one
                    self.losses["movements"] += 1
                    return
                columns = [(spine, 0) for spine in range(len(tokens))]
            elif columns and tokens[0]:
                if len(tokens) != len(columns):
                    raise ValueError(f"line {number} has {counted(len(tokens), 'spine')} in place of {len(columns)}")
                if len(columns) > MOST_COLUMNS:
                    raise ValueError(f"line {number} has more than {MOST_COLUMNS} spines")
                if max(map(len, tokens)) > MOST_SIGNS or max(token.count(".") for token in tokens) > MOST_DOTS:
                    raise ValueError(f"line {number} has a note of too many signs")
                if not line.startswith("!"):
                    self.rows.append((columns, tokens))
                if line.startswith("*"):
                    for (spine, _), token in zip(columns, tokens, strict=True):
                        self.kinds[spine] = token if token.startswith("**") else self.kinds[spine]
                    columns = self._after(columns, tokens)

    def _after(self, columns: list[Column], tokens: list[str]) -> list[Column]:
        """The columns after a line that may split, join, exchange, add or end some."""
        taken = set(columns)
        after: list[Column] = []
        exchanged: list[int] = []
        joined: Column | None = None
        for (spine, voice), token in zip(columns, tokens, strict=True):
            if token == "*v" and joined is not None and joined[0] == spine:
                after[-1] = joined = min(joined, (spine, voice))
                continue
            joined = (spine, voice) if token == "*v" else None
            if token == "*-":
                continue
            after.append((spine, voice))
            if token == "*^":
                new = next((spine, n) for n in range(len(taken) + 1) if (spine, n) not in taken)
                taken.add(new)
                after.append(new)
            elif token == "*+":
                self.kinds.append("**")
                after.append((len(self.kinds) - 1, 0))
            elif token == "*x":
                exchanged.append(len(after) - 1)
        for left, right in zip(exchanged[::2], exchanged[1::2], strict=False):
            after[left], after[right] = after[right], after[left]
        return after

    def _onsets(self) -> Iterator[Fraction]:
        """When each row begins, and where the last one ends, in quarters."""
        now, ends = Fraction(0), dict[Column, Fraction]()
        for columns, tokens in self.rows:
            is_sound = _is_sound(tokens)
            lengths = {
                column: _quarters(token)
                for column, token in zip(columns, tokens, strict=True)
                if is_sound and self.kinds[column[0]] == "**kern" and _quarters(token)
            }
            ends = {column: end for column, end in ends.items() if column in columns}
            # notes begin where those before end in their voice; rows without a length before whatever ends first
            free = [ends[column] for column in lengths if column in ends] or [min(ends.values(), default=now)]
            now = max(now, *free) if is_sound else now
            yield now
            ends |= {column: now + length for column, length in lengths.items()}
        yield max([now, *ends.values()])

    def _lines(self) -> Iterator[str]:
        yield "\t".join("**kern" for _ in self.voices)
        sounds = [onset for (_, tokens), onset in zip(self.rows, self.onsets, strict=False) if _is_sound(tokens)]
        ends = iter([*sounds[1:], self.onsets[-1]])
        for (columns, tokens), onset in zip(self.rows, self.onsets, strict=False):
            said = dict(zip(columns, tokens, strict=True))
            if tokens[0].startswith("*"):
                words = [said.get(voice, said.get((voice[0], 0), "*")) for voice in self.voices]
                yield "\t".join("*" if word in PATHS or word.startswith("**") else word for word in words)
            elif tokens[0].startswith("="):
                yield "\t".join(tokens[0] for _ in self.voices)
            else:
                rest = _rest(next(ends) - onset)
                yield "\t".join(said.get(voice, rest) for voice in self.voices)
        yield "\t".join("*-" for _ in self.voices)

    def put_on(self, score: Any, losses: Counter[str]) -> None:
        """Puts the voices of a staff together, and the words below its notes; counts syllables without a note."""
        from music21.stream import Voice

        parts = {int(str(part.id).removeprefix("spine_")): part for part in score.parts}
        staves, names = dict[int, Any](), self._names()
        for number, (spine, voice) in enumerate(self.voices):
            if not voice:
                staves[spine] = parts[number]
                staves[spine].partName = names[spine] or staves[spine].partName
                continue
            flat, beside = parts[number].flatten(), Voice()
            for note in flat.notes:
                beside.insert(flat.elementOffset(note), note)
            staves[spine].insert(0, beside)
            score.remove(parts[number])
        losses["lyrics"] += sum(self._sing(spine, staves) for spine, kind in enumerate(self.kinds) if kind == "**text")

    def _names(self) -> dict[int, str]:
        """The name of each staff that a score prints, *I"Violino; the upper one's of staves of one part, as *part1."""
        parts = {spine: self._first(spine, "*part") or str(spine) for spine in self.staves}
        named = {parts[spine]: name for spine in self.staves if (name := self._first(spine, '*I"'))}
        return {spine: named.get(part, "") for spine, part in parts.items()}

    def _first(self, spine: int, mark: str) -> str:
        """The rest of a spine's first word that begins with `mark`."""
        words = (
            word for columns, tokens in self.rows for (s, _), word in zip(columns, tokens, strict=True) if s == spine
        )
        return next((word.removeprefix(mark).strip() for word in words if word.startswith(mark)), "")

    def _sing(self, spine: int, staves: dict[int, Any]) -> int:
        below = max((each for each in staves if each < spine), default=None)
        verse = 1 + sum(kind == "**text" for kind in self.kinds[(below or 0) : spine])
        notes = dict[Fraction, Any]()
        if below is not None:
            flat = staves[below].flatten()
            notes = {Fraction(flat.elementOffset(each)): each for each in flat.notes if not each.duration.isGrace}
        lost = 0
        for (columns, tokens), onset in zip(self.rows, self.onsets, strict=False):
            word = dict(zip(columns, tokens, strict=True)).get((spine, 0), ".")
            text = printable(word.strip("-_|"))
            if text and _is_sound(tokens) and word != ".":
                plays = any(column[0] == below and token != "." for column, token in zip(columns, tokens, strict=True))
                if plays and onset in notes:
                    put(notes[onset], Syllable(0, verse, text, not word.startswith("-"), not word.endswith("-")))
                lost += not plays or onset not in notes
        return lost


def _is_sound(tokens: list[str]) -> bool:
    return not tokens[0].startswith(("*", "="))


def _quarters(token: str) -> Fraction:
    """How long a token is; 0 of one that takes no time."""
    found = LENGTH.search(token)
    if found is None or "q" in token or "Q" in token:
        return Fraction(0)
    number = found[1]
    length = Fraction(4 * int(found[2] or 1), int(number)) if int(number) else Fraction(8 * 2 ** (len(number) - 1))
    return length * (2 - Fraction(1, 2 ** len(found[3])))


def _rest(quarters: Fraction) -> str:
    if not quarters:
        return "."
    recip = 4 / quarters
    return f"{recip.numerator}r" if recip.denominator == 1 else f"{recip.numerator}%{recip.denominator}r"


def without_names(text: str) -> str:
    """A text of Humdrum without names of keys, which music21 takes for signatures; but for one that says the mode of
    the signature before it."""
    lines, sharps = text.split("\n"), None
    for n, line in enumerate(lines):
        if not line.startswith(("*", "!")):
            sharps = None
        elif found := SIGNED.search(line):
            sharps = found[1].count("#") - found[1].count("-")
        lines[n] = KEY_NAMES.sub(partial(_mode_of, sharps), line)
    return "\n".join(lines)


def _mode_of(sharps: int | None, name: re.Match[str]) -> str:
    """A name of a key if it signs so many sharps."""
    key = f"{name[2][0].upper()}{name[2][1:].replace('-', 'b')}" + " minor" * name[2].islower()
    return name[0] if key_sharps(key) == sharps else f"{name[1]}*"
