"""The letters of names in a MIDI file, which names no encoding."""

import re
from collections.abc import Sequence

KANA = re.compile("[ぁ-ヶ]")
# other letters read as Japanese: an accent in a word swallows the letter after it, one between spaces stands alone
TORN = re.compile("[A-Za-z][^\x00-\x7f]|[^\x00-\x7f][a-z]|[｡-ﾟ][A-Z]|(?<![^\x00-\x7f])[｡-ﾟ](?![^\x00-\x7f])")
RUSSIAN = re.compile("(?<![А-яЁё])[А-ЯЁ]?[а-яё]{2,}(?![А-яЁё])")
# other letters read as Russian: accents beside letters without any, capitals within a word, signs
NO_RUSSIAN = re.compile("[A-Za-z][А-яЁё]|[А-яЁё][A-Za-z]|[а-яё][А-ЯЁ]|[^\x00-\x7fА-яЁё«»—–№ ]")
AROUND = "\ufeff\0 \t\r\n"  # some programs write a mark of UTF-8, zeros or spaces around a name


def guess_encoding(texts: Sequence[bytes]) -> str:
    """The encoding of texts beside UTF-8: Russian, Shift-JIS or that of Western Europe."""
    russian = "\n".join(text.decode("cp1251", "replace") for text in texts)
    if RUSSIAN.search(russian) and not NO_RUSSIAN.search(russian):
        return "cp1251"
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
    """A text in UTF-8, `encoding` or Latin-1, without the marks `AROUND` it."""
    for name in ("utf-8", encoding):
        try:
            return text.decode(name).strip(AROUND)
        except UnicodeDecodeError:
            continue
    return text.decode("latin-1").strip(AROUND)
