"""The General MIDI sound that the name of a part says, in English, Italian, German, French or Latin."""

import re

# the first that is found counts: a bass clarinet is no bass
SOUNDS = {
    r"continuo|b\. ?c\.|drum|percussion|schlagzeug": None,
    r"soprano sax": 64,
    r"tenor sax": 66,
    r"(baritone|bari\.?) sax": 67,
    r"\bsax": 65,
    r"[ck]larin": 71,
    r"english horn|cor anglais|corno inglese|englischhorn": 69,
    r"oboe|hautbo": 68,
    r"bassoon|fagott|\bbasson\b": 70,
    r"piccolo": 72,
    r"recorder|blockfl|flauto dolce": 74,
    r"\bfl[uö]te|\bflaut": 73,
    r"trumpet|\btromb[ae]\b|trompete": 56,
    r"trombon|posaune": 57,
    r"\btuba": 58,
    r"\bhorn|\bcor(no|ni|s)?\b": 60,
    r"(double|string|upright) bass|[ck]ontraba|contrebass": 43,
    r"(electric|synth) bass|bass guitar|e-bass": 33,
    r"cello\b|violoncel|gamba|\bvcl?\.": 42,
    r"viola|bratsche|\bvla\.": 41,
    r"violin|\bviolons?\b|geige|\bvln\.|\bvl\.": 40,
    r"guitar|chitarra|gitarre|ukulele|mandolin": 24,
    r"banjo": 105,
    r"harpsi|cembalo|clavecin": 6,
    r"organ\b|organ[oi]\b|orgel|orgue": 19,
    r"\bharpe?\b|harfe|\barpa\b": 46,
    r"accordion|akkordeon|fisarmonica": 21,
    r"celesta": 8,
    r"glockenspiel": 9,
    r"vibraphon": 11,
    r"marimba": 12,
    r"xylophon": 13,
    r"timpani|pauke|timbale": 47,
    r"piano|klavier|fortepian": 0,
    r"\b(mezzo|soprano?|soprani|alto?s?|altus|tenore?s?|baritone?|bass(o|us|i|es)?|treble)\b": 53,
    r"\b(cant(o|us)|discant(o|us)?|voices?|vox|voc[ei]|chor|choir|chorus|coro|chant|gesang|singstimmen?)\b": 53,
    r"^[satb]\.? ?[12]?\.?$": 53,
}


def sound_of(name: str) -> int | None:
    """The sound from 0, None for a name that says none."""
    plain = name.lower().replace("v", "u") if name.isupper() else ""  # CANTVS, on old title pages
    names = (name.lower(), plain)
    return next((sound for words, sound in SOUNDS.items() if any(re.search(words, each) for each in names)), None)
