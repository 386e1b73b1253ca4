"""Names in a MIDI file as text: the format does not say which letters their bytes are, so they are guessed."""

import re
from collections.abc import Sequence

KANA = re.compile("[ぁ-ヶ]")
# other letters read as Japanese: an accent in a word swallows the letter after it, one between spaces stands alone
TORN = re.compile("[A-Za-z][^\x00-\x7f]|[^\x00-\x7f][a-z]|[｡-ﾟ][A-Z]|(?<![^\x00-\x7f])[｡-ﾟ](?![^\x00-\x7f])")


def guess_encoding(texts: Sequence[bytes]) -> str:
    """The encoding of a file's texts, those that are not UTF-8: Shift-JIS or that of Western Europe."""
    try:
        japanese = "\n".join(text.decode("cp932") for text in texts)
    except UnicodeDecodeError:
        return "cp1252"
    return "cp932" if KANA.search(japanese) or not TORN.search(japanese) else "cp1252"


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def as_text(text: bytes, encoding: str) -> str:
    """A text in UTF-8, or else in `encoding`; a byte that this lacks is a letter of Latin-1."""
    for name in ("utf-8", encoding):
        try:
            return text.decode(name)
        except UnicodeDecodeError:
            continue
    return text.decode("latin-1")
