"""The voices of ABC: each becomes a tune of its own, since music21 puts them one after the other."""

import re
from collections.abc import Iterator

FIELD = re.compile(r"^([A-Za-z]):(.*)")
INLINE = re.compile(r"^\[V: *([^\s\]]+)[^\]]*\](.*)")
# what is no music: decorations, remarks, lyrics' and layout's fields within the line
NO_MUSIC = re.compile(r'![^!\n]*!|\+[a-z.]+\+|"[^"\n]*"|\[[PQrRINTUw]:[^\]]*\]|(?<!\\)%.*|\by\d*')
HEAD = "TCMLQK"


def each_voice(text: str) -> list[str]:
    """The first tune of a file as one text a voice, in the order in which they come."""
    head: dict[str, str] = {}
    voices: dict[str, list[str]] = {}
    voice, in_body = "", False
    for line in _first_tune(text):
        field, inline = FIELD.match(line), INLINE.match(line)
        if field and field[1] == "V":
            voice = (field[2].split() or [""])[0]
        elif field and not in_body:
            head.setdefault(field[1], NO_MUSIC.sub("", field[2]).strip())
            in_body = field[1] == "K"
        elif field:
            if field[1] in "KLM":
                voices.setdefault(voice, []).append(line)
        elif inline:
            voice = inline[1]
            voices.setdefault(voice, []).append(NO_MUSIC.sub("", inline[2]))
        elif in_body and line.strip():
            voices.setdefault(voice, []).append(NO_MUSIC.sub("", line))
    head = {"L": "1/8", "K": "C"} | head
    fields = [f"{key}:{head[key]}" for key in HEAD if key in head]
    return ["\n".join(["X:1", *fields, *music]) + "\n" for music in voices.values() if any(map(str.strip, music))]


def _first_tune(text: str) -> Iterator[str]:
    begun = False
    for line in text.replace("\r", "\n").split("\n"):
        if line.startswith("%"):
            continue
        if re.match(r"^X: *\d", line):
            if begun:
                return
            begun = True
        yield line
