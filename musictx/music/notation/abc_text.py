"""Text of ABC: letters with accents, which its standard spells with signs before them."""

import html
import re
import unicodedata
from collections.abc import Iterator

from musictx.music.notation.lyrics import printable

REMARK = re.compile(r"(?<!\\)%.*")
ACCENTS = dict(zip("`'^~\"cvuH", "\u0300\u0301\u0302\u0303\u0308\u0327\u030c\u0306\u030b", strict=True))
LETTERS = {"AA": "Å", "aa": "å", "AE": "Æ", "ae": "æ", "OE": "Œ", "oe": "œ", "ss": "ß", "/O": "Ø", "/o": "ø"}
SPELLED = re.compile(
    r"\\(u[\dA-Fa-f]{4}|[`'^~\"][A-Za-z]|c[Cc]|v[CcSsZz]|u[AaEeGgUu]|H[OoUu]|AA|aa|AE|ae|OE|oe|ss|/[Oo]|[%&\\])|&#?\w+;"
)
SIGN = re.compile(r'"[^"\n]*"|([~H-Wh-w]|\.(?![(|:-]))')  # letters for decorations; a dot may be of a line or tie
NAMES = {
    "~": "roll",
    "J": "slide",
    "M": "mordent",
    "O": "coda",
    "P": "mordent",
    "R": "roll",
    "S": "segno",
    "T": "trill",
}
ORNAMENT = re.compile(r".*(?:trill|mordent|turnx?|roll|arpeggio|slide|/)\(?")
DYNAMIC = re.compile(r"m?[pf]|p+|f+|sf[pz]?|[<>]\(|(?:de|di|cre)\w+\(|rfz|fp")
JUMP = re.compile(r"segno|coda|d[aS]\w*|D\.[CS]\..*|fine", re.IGNORECASE)
SPAN = re.compile(r".*\(")


def signs_in(music: str) -> Iterator[str]:
    """The kinds of loss that decorations of one letter are."""
    yield from (kind_of(NAMES.get(sign, "articulation")) for sign in SIGN.findall(music) if sign)


def kind_of(decoration: str) -> str:
    """The kind of loss that a decoration between signs is; "" for the end of a line."""
    if decoration.endswith(")"):
        return ""
    kinds = (("ornaments", ORNAMENT), ("dynamics", DYNAMIC), ("repeats", JUMP), ("spans", SPAN))
    return next((kind for kind, pattern in kinds if pattern.fullmatch(decoration)), "articulations")


def plain(text: str) -> str:
    """The text as people read it."""
    return printable(SPELLED.sub(_letter, text))


def without_remark(text: str) -> str:
    """A line as far as a remark begins."""
    return REMARK.sub("", text)


def _letter(found: re.Match[str]) -> str:
    said = found[1]
    if said is None:
        return html.unescape(found[0])
    if said in LETTERS or len(said) == 1:
        return LETTERS.get(said, said)
    if len(said) > 2:
        return chr(int(said[1:], 16))
    return unicodedata.normalize("NFC", said[1] + ACCENTS[said[0]])
