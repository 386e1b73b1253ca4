"""Errors in the words of the page: settings have the names of its controls, and advice asks for no others."""

import re
from copy import copy

from musictx.errors import SETTING, ConfigError, UserError, as_word, with_keys

CONTROLS = {  # setting -> how the label of its control begins
    "temperature": "boldness",
    "top_p": "unlikely notes",
    "seed_guidance": "how close",
    "variations": "variations",
    "chords": "chords",
    "key": "key",
    "density": "notes a second",
    "lowest": "lowest note",
    "highest": "highest note",
    "length_s": "new music",
    "Length.seconds": "new music",
    "Length.bars": "new music",
    "from_s": "fill from",
    "to_s": "fill to",
    "voices": "the highest notes are the",
}
CLAUSE = re.compile(r", or |; |, ")


def on_page(error: UserError) -> str:
    """The error in one line."""
    shown = copy(error)
    shown.hint = possible(error.hint)
    if isinstance(shown, ConfigError):
        shown.allowed, shown.why = possible(shown.allowed), possible(shown.why)
        if shown.field not in CONTROLS:
            name = shown.field.rpartition(".")[2].replace("_", " ")
            advice = "; ".join(part for part in (shown.allowed and f"give {shown.allowed}", shown.hint) if part)
            shown = UserError(
                ": ".join(filter(None, [f"{name} {as_word(shown.got)}", with_keys(shown.why, CONTROLS)])), advice
            )
            shown.source = error.source
    return shown.line(CONTROLS)


def possible(text: str) -> str:
    """The text without its clauses that name settings which the page lacks."""
    separators = ["", *CLAUSE.findall(text)]
    clauses = [
        (separator, clause)
        for separator, clause in zip(separators, CLAUSE.split(text), strict=True)
        if all(match[1] + match[2] in CONTROLS for match in SETTING.finditer(clause))
    ]
    return "".join(f"{separator if k else ''}{clause}" for k, (separator, clause) in enumerate(clauses))
