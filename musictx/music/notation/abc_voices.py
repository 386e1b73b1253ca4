"""The voices of ABC: each becomes a tune of its own, since music21 puts them one after the other."""

import re
from collections import Counter
from collections.abc import Iterator

BODY = "IKLMmNPQRrsTUVWw+"  # fields within the music; all other letters before a colon are notes: F:| ends a repeat
FIELD = re.compile(r"^([A-Za-z+]):(.*)")
VOICE = re.compile(r"\[V: *([^\s\]]+)[^\]]*\]")
# not music: decorations, remarks, names of endings, lyrics' and layout's fields within the line
NO_MUSIC = re.compile(r'![^!\n]*!|\+[a-z.]+\+|\[?"[^"\n]*"|\[[INPQrRTUw]:[^\]]*\]|(?<!\\)%.*|\by\d*')
OVERLAY = re.compile(r"&[^|\n]*")
HEAD = "TCMLQK"


def each_voice(text: str, losses: Counter[str]) -> list[str]:
    """The first tune of a file as one text a voice, in their order; counts losses."""
    head: dict[str, str] = {}
    voices: dict[str, list[str]] = {}
    voice, in_body, has_key = "", False, bool(re.search(r"(?m)^K:", text))
    for line in _first_tune(text, losses):
        field = FIELD.match(line)
        if field and field[1] == "V":
            name = (field[2].split() or [""])[0]
            voice = name if in_body else voice or name
        elif field and not in_body:
            head.setdefault(field[1], NO_MUSIC.sub("", field[2]).strip())
            in_body = field[1] == "K"
        elif field and field[1] in BODY:
            if field[1] in "KLM":
                voices.setdefault(voice, []).append(line)
        elif line.strip() and (in_body or not has_key):
            in_body = True
            before, *others = VOICE.split(NO_MUSIC.sub("", line))
            for name, music in [(voice, before), *zip(others[::2], others[1::2], strict=True)]:
                voice = name
                played, overlays = OVERLAY.subn("", music)
                losses["overlay"] += overlays
                if played.strip():
                    voices.setdefault(voice, []).append(played)
    head = {"L": "1/8", "K": "C"} | head
    fields = [f"{key}:{head[key]}" for key in HEAD if key in head]
    return ["\n".join(["X:1", *fields, *music]) + "\n" for music in voices.values() if any(map(str.strip, music))]


def _first_tune(text: str, losses: Counter[str]) -> Iterator[str]:
    tunes = 0
    for line in text.replace("\r", "\n").split("\n"):
        tunes += bool(re.match(r"^X: *\d", line))
        if tunes < 2 and not line.startswith("%"):
            yield line
    losses["tunes"] += max(tunes - 1, 0)
