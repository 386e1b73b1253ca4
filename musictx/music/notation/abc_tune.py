"""A tune of ABC: each voice becomes a tune of its own, since music21 puts them one after the other."""

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from musictx.music.notation.abc_meters import tempo_of, whole_notes
from musictx.music.notation.abc_text import kind_of, plain, without_remark
from musictx.music.notation.abc_voices import Layer, Voice
from musictx.music.notation.chord_symbols import ChordSymbol, higher, symbol_named

FIELD = re.compile(r"^([A-Za-z+]):(.*)")
VOICE = re.compile(r"\[V: *([^\s\[\]]{1,100})([^\[\]]{0,500})\]")
ORDER = re.compile(r"(?m)^%%(?:score|staves)(.*)")
BRACE = re.compile(r"\{([^{}]*)\}")
STAFF = re.compile(r"\([^()]*\)|[^\s()\[\]|*]+")
CARRIED = re.compile(r"(?m)^(?:%%|I: *)propagate-accidentals +(\w+)")
# not music: decorations, remarks, names of endings, lyrics' and layout's fields within the line
NO_MUSIC = re.compile(r'![^!\n]*!|\+[a-z.]+\+|\[?"[^"\n]*"|\[[INPrRTUw]:[^\[\]]{0,500}\]|(?<!\\)%.*|\by\d*')
NOTES = re.compile(r"[A-Ga-gzx]:\s*(?:[|:\d\[]|$)")  # F:| is a note and the end of a repeat, no field
WORDS = re.compile(r'"(\d+)"')
IN_CHORD = re.compile(r'\[("[^"\n]*")(?=[^\[\]|\n]*\])')  # words within the bracket of notes, not of an ending
# music21 reads these fields only as lines; those within remarks and words are none
INLINE = re.compile(r'(?<!\\)%.*|"[^"\n]*"|\[((?:[KLMQ]:|I: *MIDI)[^\[\]]{0,200})\]')
GOES_ON = re.compile(r"(?<!\n)\n+\+:|(?<=[^\n])\\[ \t]*\n+w:|(?<=&)[ \t]*\\[ \t]*\n")
# a number, or none, begins a tune; words do behind an empty line or before a title, else they go on with a field
TUNE = re.compile(r"(?m)^(?=X:[ \t]{0,99}(?:(?:\d\S*)?[ \t]{0,99}(?:%.*)?$|\d.*\nT:))|(?:\A|(?<=\n\n))(?=X:)")
TEXTS = re.compile(r"(?ms)^%%begin(\w+).*?(?:^%%end\1[^\n]*$|\Z)")  # beside the music
# names that stand for a tune's chord symbols: music21 takes a minus for a flat, and refuses some kinds
MARKS = [
    f"{root}{sharp}{kind}" for kind in ("", "m", "7", "m7", "6", "m6") for sharp in ("", "#") for root in "CDEFGAB"
]
SOUND = re.compile(r"^(?:%%|I: *)MIDI *=? *(?:program +(\d+ +)?(\d+)|transpose +([+-]?\d{1,2})(?!\d))")
WORD = re.compile(r"[A-Za-z]+\d?")
SINGERS = {"S": "Soprano", "A": "Alto", "T": "Tenor", "B": "Bass"}
LAYERS = 3  # beside a voice: a staff has four


def in_lines(text: str) -> str:
    """The text with line ends of one kind, and no blanks before them."""
    return re.sub(r"(?<![ \t])[ \t]*(?:\r\n?|\n)", "\n", text)


def each_voice(text: str, losses: Counter[str]) -> tuple[list[str], dict[str, ChordSymbol], list[Voice | Layer]]:
    """The first tune of a file as one text a voice, in their order, the chord symbols that names in it stand for, and
    the voices; counts losses, and each symbol until it is found."""
    symbols: dict[ChordSymbol, str] = {}
    head: dict[str, str] = {}
    voices: dict[str, Voice] = {}
    text = in_lines(text)
    carried = (CARRIED.findall("".join(TUNE.split(text, 2)[:2])) or ["pitch"])[0]
    program, transposed = None, 0  # of voices that begin later too
    tune = [*_first_tune(text, losses)]
    layers = min(max((bar.count("&") for line in tune for bar in NO_MUSIC.sub("", line).split("|")), default=0), LAYERS)
    last = ""  # voice that the head speaks of
    name, in_body, has_key = "", False, bool(re.search(r"(?m)^K:", text))

    def voice(name: str) -> Voice:
        if name not in voices:
            voices[name] = new = Voice(carried, layers)
            new.program = program
            new.move(transposed)
            if in_body:
                new.begin(head)
        return voices[name]

    def begin() -> None:
        unit = "1/16" if 0 < whole_notes(head.get("M", "")) < Fraction(3, 4) else "1/8"
        head.update({"L": unit, "K": "C"} | head)
        losses["wordy"] += "Q" in head and tempo_of(head["Q"], Fraction(1)) is None
        for each in voices.values():
            each.begin(head)

    def marked(music: str, words: list[str]) -> str:
        semitones = voice(name).pitches.semitones
        return WORDS.sub(lambda number: _mark(words[int(number[1])], semitones, symbols, losses), music)

    for line in tune:
        field = None if in_body and NOTES.match(line) else FIELD.match(line)
        if sound := SOUND.match(line):
            mine = voice(name if in_body else last) if in_body or last else None
            if sound[3] and mine:
                mine.move(int(sound[3]))
            elif sound[3]:
                transposed = int(sound[3])
            elif mine:
                mine.program = min(int(sound[2]), 127)
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
                head["K"] = without_remark(field[2])
                begin()
        elif field and in_body:
            if field[1] == "w":
                voice(name).words.sing(field[2])
            losses["lyrics"] += len(field[2].split()) * (field[1] == "W")
            if field[1] in "KLMQ":
                words = NO_MUSIC.sub("", field[2])
                losses["wordy"] += not voice(name).change(field[1], words) and field[1] == "Q"
        elif line.strip() and (in_body or not has_key):
            if not in_body:
                in_body = True
                begin()
            line = IN_CHORD.sub(r"\1[", line)
            held, quoted = _held(line, losses)
            begins, *others = VOICE.split(held)
            voice(name).play(marked(begins, quoted), losses)
            for name, about, music in zip(others[::3], others[1::3], others[2::3], strict=True):
                voice(name).about(about)
                voice(name).play(marked(music, quoted), losses)
    order = [each for line in ORDER.findall(text) for each in re.findall(r"[^\s()\[\]{}|*]+", line)]
    parts = sorted(voices.items(), key=lambda item: order.index(item[0]) if item[0] in order else len(order))
    for brace in BRACE.findall("".join(ORDER.findall(text))):
        staves = [staff.strip("( )") for staff in STAFF.findall(brace)]
        for each in staves if all(staff in voices for staff in staves) else ():  # none has two voices
            voices[each].brace = brace
    _name(voices)
    sounding = [voice for _, voice in parts if voice.pitches.shifts]
    playing: list[Voice | Layer] = []
    for upper in sounding:
        playing += [upper, *(layer for layer in upper.layers if layer.pitches.shifts)]
    losses["repeats"] += max((each.repeats for each in voices.values()), default=0)
    for upper in sounding[:1]:
        upper.title, upper.composer = head.get("T", ""), head.get("C", "")
    texts = ["\n".join(["X:1", *each.lines]) + "\n" for each in playing]
    return texts, {mark: symbol for symbol, mark in symbols.items()}, playing


def _name(voices: dict[str, Voice]) -> None:
    """Gives voices without a name that of their field; S, A, T and B are singers together."""
    kinds = {each: each.rstrip("0123456789") for each in voices}  # S1 and S2 are two of a kind
    sung = {letter for letter in SINGERS if {letter, SINGERS[letter]} & {*kinds.values()}}
    is_choir = len(sung) > 2 or {"S", "A"} <= sung  # else A and B are any two, and T is a tune
    for each, owner in voices.items():
        if not owner.name and not owner.brace and WORD.fullmatch(each):  # else it is a number, or a place on the page
            owner.name = SINGERS.get(each, each) if is_choir else each
            if not is_choir and kinds[each] in (*SINGERS, *SINGERS.values()) and not any(owner.sounds):
                owner.sounds = [0]


def _held(line: str, losses: Counter[str]) -> tuple[str, list[str]]:
    """The music of a line with numbers in place of words, which may have brackets in them; and the words. Counts
    decorations."""
    words: list[str] = []

    def hold(found: re.Match[str]) -> str:
        words.extend([found[0]] * (found[0][0] == '"'))
        if found[0][0] in "!+" and (kind := kind_of(found[0][1:-1])):
            losses[kind] += 1
        return f'"{len(words) - 1}"' if found[0][0] == '"' else ""

    return NO_MUSIC.sub(hold, line), words


def _mark(word: str, semitones: int, symbols: dict[ChordSymbol, str], losses: Counter[str]) -> str:
    """The name that stands for a chord symbol, which sounds so much higher than it is written; "" for other words."""
    symbol = symbol_named(word.strip('"').strip("()"))
    if symbol is None:
        losses["words"] += 1
        return ""
    symbol = higher(symbol, semitones)
    losses["symbols"] += 1
    if symbol not in symbols and len(symbols) < len(MARKS):
        symbols[symbol] = MARKS[len(symbols)]
    return f'"{symbols[symbol]}"' if symbol in symbols else ""


def _first_tune(text: str, losses: Counter[str]) -> Iterator[str]:
    """The lines of the first tune, fields alone, with what goes on with them, without texts."""
    is_apart = False
    text = TEXTS.sub("", text)
    losses["tunes"] += max(sum(1 for _ in TUNE.finditer(text)) - 1, 0)
    for line in GOES_ON.sub(" ", "".join(TUNE.split(text, 2)[:2])).split("\n"):
        # the standard ends a tune with an empty line; people write bars behind one, and remarks
        is_apart = not line.strip() or (is_apart and "|" not in line and not FIELD.match(line))
        if is_apart:
            continue
        if not line.startswith("%") or SOUND.match(line):
            yield from INLINE.sub(lambda each: f"\n{each[1]}\n" if each[1] else each[0], line).split("\n")
