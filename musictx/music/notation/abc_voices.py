"""The voices of ABC: each becomes a tune of its own, since music21 puts them one after the other."""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from musictx.music.notation.abc_lyrics import Words
from musictx.music.notation.abc_pitches import Pitches
from musictx.music.notation.abc_text import plain, without_remark
from musictx.music.notation.chord_symbols import ChordSymbol, symbol_named
from musictx.music.notation.notation import MOST_BARS

FIELD = re.compile(r"^([A-Za-z+]):(.*)")
VOICE = re.compile(r"\[V: *([^\s\]]+)([^\]]*)\]")
NAME = re.compile(r'\b(?:name|nm)=(?:"([^"\n]*)"|(\S+))')
PROGRAM = re.compile(r"^(?:%%|I: *)MIDI *=? *program +(\d+ +)?(\d+)")
CARRIED = re.compile(r"(?m)^(?:%%|I: *)propagate-accidentals +(\w+)")
# not music: decorations, remarks, names of endings, lyrics' and layout's fields within the line
NO_MUSIC = re.compile(r'![^!\n]*!|\+[a-z.]+\+|\[?"[^"\n]*"|\[[INPrRTUw]:[^\]]*\]|(?<!\\)%.*|\by\d*')
# letters that stand for decorations, but not within a symbol: music21 takes some for notes
DECORATION = re.compile(r'("[^"\n]*")|[.~H-Wh-w]')
GRACE = re.compile(r"\{([^{}\n]*)\}")
NOTES = re.compile(r"[A-Ga-gzx]:\s*(?:[|:\d\[]|$)")  # F:| is a note and the end of a repeat, no field
IN_CHORD = re.compile(r'\[("[^"\n]*")(?=[^\[\]|\n]*\])')  # words within the bracket of notes, not of an ending
INLINE = re.compile(r"\[([KLMQ]:[^\]]*)\]")  # music21 reads these fields only as lines
BARS_OF_REST = re.compile(r"[ZX](\d{0,3})")
GOES_ON = re.compile(r"\n+\+:|(?<=[^\n])\\[ \t]*\n+w:|(?<=&)[ \t]*\\[ \t]*\n")
TEXTS = re.compile(r"(?ms)^%%begin(\w+).*?(?:^%%end\1[^\n]*$|\Z)")  # beside the music
REPEAT = re.compile(r"[:|]*(?::\||\|:|::)[:|]*")  # music21 finds no bars around some
LAYERS = 3  # beside a voice: a staff has four
HEAD = "TCMLQK"
# names that stand for a tune's chord symbols: music21 takes a minus for a flat, and refuses some kinds
MARKS = [
    f"{root}{sharp}{kind}" for kind in ("", "m", "7", "m7", "6", "m6") for sharp in ("", "#") for root in "CDEFGAB"
]


class Voice:
    """The lines of a voice, and what music21 does not read of it."""

    def __init__(self, carried: str, layers: int = 0) -> None:
        self.layers = [Layer(self, number, carried) for number in range(1, layers + 1)]
        self.lines: list[str] = []
        self.words, self.pitches = Words(), Pitches(carried)
        self.name, self.program = "", 0
        self.title, self.composer = "", ""
        self._about = ""
        self.tempi: list[tuple[int, float]] = []  # notes before it, and quarters a minute
        self.repeats = 0

    def about(self, words: str) -> None:
        """Takes what a field of the voice says after its name."""
        if name := NAME.search(words):
            self.name = plain(name[1] or name[2] or "")
        self._about = re.sub(r'\b(?:name|nm|sname|snm)="[^"]*"', "", words)
        for each in (self, *self.layers):
            each.pitches.placed(self._about)

    def in_key(self, field: str) -> None:
        """Takes the key of the head, whose clef is for voices that say none."""
        for each in (self, *self.layers):
            each.pitches.key(field)
            each.pitches.placed(self._about)

    def change(self, field: str, words: str) -> None:
        """Takes a key, unit or meter within the tune."""
        for each in (self, *self.layers):
            said = each.pitches.key(words) if field == "K" else words
            each.lines += [f"{field}:{said}"] * bool(said.strip())

    def play(self, music: str, losses: Counter[str]) -> None:
        """Takes a line of notes."""
        played, signs = REPEAT.subn("|", DECORATION.sub(r"\1", music))
        self.repeats += signs
        bars = [bar.split("&") for bar in played.split("|")]
        losses["overlay"] += sum(max(len(bar) - 1 - len(self.layers), 0) for bar in bars)
        played = "|".join(bar[0] for bar in bars)
        if played.strip():
            self.lines.append(self._read(played, losses))
            self.words.play(played)
            for each in self.layers:
                each.play_beside(bars, losses)

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


def each_voice(text: str, losses: Counter[str]) -> tuple[list[str], dict[str, ChordSymbol], list[Voice]]:
    """The first tune of a file as one text a voice, in their order, the chord symbols that names in it stand for, and
    the voices; counts losses, and each symbol until it is found."""
    symbols: dict[ChordSymbol, str] = {}
    head: dict[str, str] = {}
    voices: dict[str, Voice] = {}
    carried = (CARRIED.findall("".join(re.split(r"(?m)^(?=X: *\d)", text)[:2])) or ["pitch"])[0]
    key, program = "", 0  # of voices that begin later too
    tune = [*_first_tune(text, losses)]
    layers = min(max((bar.count("&") for line in tune for bar in NO_MUSIC.sub("", line).split("|")), default=0), LAYERS)
    last = ""  # voice that the head speaks of
    name, in_body, has_key = "", False, bool(re.search(r"(?m)^K:", text))

    def voice(name: str) -> Voice:
        if name not in voices:
            voices[name] = new = Voice(carried, layers)
            new.in_key(key)
            new.program = program
        return voices[name]

    for line in tune:
        field = None if in_body and NOTES.match(line) else FIELD.match(line)
        if sound := PROGRAM.match(line):
            if in_body or last:
                voice(name if in_body else last).program = min(int(sound[2]), 127)
            elif not sound[1]:  # else it is that of a channel
                program = min(int(sound[2]), 127)
        elif field and field[1] == "V":
            last, about = ((without_remark(field[2]).split(maxsplit=1) or [""]) + [""])[:2]
            voice(last).about(about)
            name = last if in_body else name or last
        elif field and not in_body:
            said = plain(without_remark(field[2])) if field[1] in "TC" else NO_MUSIC.sub("", field[2])
            head.setdefault(field[1], said.strip())
            in_body = field[1] == "K"
            if in_body:
                key = without_remark(field[2])
                for each in voices.values():
                    each.in_key(key)
        elif field and in_body:
            if field[1] == "Q":
                speed = _quarters_a_minute(field[2])
                losses["wordy"] += speed is None
                voice(name).tempi += [] if speed is None else [(len(voice(name).pitches.shifts), speed)]
            if field[1] == "w":
                voice(name).words.sing(field[2])
            losses["lyrics"] += len(field[2].split()) * (field[1] == "W")
            if field[1] in "KLM":
                voice(name).change(field[1], NO_MUSIC.sub("", field[2]))
        elif line.strip() and (in_body or not has_key):
            in_body = True
            line = IN_CHORD.sub(r"\1[", line)
            before, *others = VOICE.split(NO_MUSIC.sub(lambda word: _mark(word[0], symbols, losses), line))
            voice(name).play(before, losses)
            for name, about, music in zip(others[::3], others[1::3], others[2::3], strict=True):
                voice(name).about(about)
                voice(name).play(music, losses)
    head = {"L": "1/16" if 0 < _whole_notes(head.get("M", "")) < Fraction(3, 4) else "1/8", "K": "C"} | head
    head["K"] = Pitches().key(head["K"]) or "C"
    fields = [f"{each}:{head[each]}" for each in HEAD if each in head]
    playing = [each for voice in voices.values() for each in (voice, *voice.layers) if any(map(str.strip, each.lines))]
    tunes = [[*_rests(each.lines, head)] for each in playing]
    losses["repeats"] += max((each.repeats for each in voices.values()), default=0)
    for each in playing[:1]:
        each.title, each.composer = head.get("T", ""), head.get("C", "")
    texts = ["\n".join(["X:1", *fields, *music]) + "\n" for music in tunes]
    return texts, {mark: symbol for symbol, mark in symbols.items()}, playing


def _mark(word: str, symbols: dict[ChordSymbol, str], losses: Counter[str]) -> str:
    """The name that stands for a chord symbol, "" for other words."""
    symbol = symbol_named(word.strip('"').strip("()")) if word[0] == '"' else None
    if symbol is None:
        losses["words"] += word[0] == '"'
        return ""
    losses["symbols"] += 1
    if symbol not in symbols and len(symbols) < len(MARKS):
        symbols[symbol] = MARKS[len(symbols)]
    return f'"{symbols[symbol]}"' if symbol in symbols else ""


def _rests(music: list[str], head: dict[str, str]) -> Iterator[str]:
    """The lines with rests of a bar in place of Z4, which music21 skips. Raises ValueError for too many."""
    bar, unit = _whole_notes(head.get("M", "")) or Fraction(1), _whole_notes(head["L"])
    if sum(int(n or 1) for line in music for n in BARS_OF_REST.findall(line)) > MOST_BARS:
        raise ValueError(f"it has more than {MOST_BARS:,} bars of rests")
    for line in music:
        field = FIELD.match(line)
        if field and field[1] == "M":
            bar = _whole_notes(field[2]) or bar
        elif field and field[1] == "L":
            unit = _whole_notes(field[2])
        before, *others = BARS_OF_REST.split(line)
        rest = f"z{bar / unit}" if unit else "z"
        counts = [int(n or 1) for n in others[::2]]
        rests = ["|".join([rest] * n) + after for n, after in zip(counts, others[1::2], strict=True)]
        yield line if field else before + "".join(rests)


def _whole_notes(text: str) -> Fraction:
    """The length of a meter or unit; 0 where it has none."""
    if text.strip() in ("C", "C|"):
        return Fraction(1)
    numbers = re.match(r"\s*\(?([\d+ ]+)\)?/(\d+)", text)
    if numbers is None or not int(numbers[2]):
        return Fraction(0)
    return Fraction(sum(map(int, re.findall(r"\d+", numbers[1]))), int(numbers[2]))


def _quarters_a_minute(text: str) -> float | None:
    """The tempo of a field, as "Lento" 1/8 3/8=40; None without a number."""
    beats, equals, number = re.sub(r'"[^"]*"', "", text).rpartition("=")
    found = re.match(r"\s*(\d{1,4}(?:\.\d+)?)", number)
    beat = sum(_whole_notes(each) for each in re.findall(r"\d+/\d+", beats)) if equals else Fraction(1, 4)
    return float(4 * beat) * float(found[1]) if found and beat else None


def _first_tune(text: str, losses: Counter[str]) -> Iterator[str]:
    """The lines of the first tune, fields alone, with what goes on with them, without texts."""
    tunes, is_apart = 0, False
    text = TEXTS.sub("", re.sub(r"\r\n?", "\n", text))
    for line in GOES_ON.sub(" ", text).split("\n"):
        tunes += bool(re.match(r"^X: *\d", line))
        # the standard ends a tune with an empty line; people write bars behind one, and remarks
        is_apart = not line.strip() or (is_apart and "|" not in line and not FIELD.match(line))
        if is_apart:
            continue
        if tunes < 2 and (not line.startswith("%") or PROGRAM.match(line)):
            yield from INLINE.sub(r"\n\1\n", line).split("\n")
    losses["tunes"] += max(tunes - 1, 0)
