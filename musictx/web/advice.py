"""Errors in the words of the page: its labels, and no advice that it cannot follow."""

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
    "voices": "the highest part is the",
}
CLAUSE = re.compile(r", or |; |, ")


def on_page(error: UserError) -> str:
    """An error in one line of the page."""
    answer = copy(error)
    answer.hint = page_clauses(error.hint)
    if isinstance(answer, ConfigError):
        answer.allowed, answer.why = page_clauses(answer.allowed), page_clauses(answer.why)
        if answer.field not in CONTROLS:
            name = answer.field.rpartition(".")[2].replace("_", " ")
            advice = "; ".join(part for part in (answer.allowed and f"give {answer.allowed}", answer.hint) if part)
            answer = UserError(
                ": ".join(filter(None, [f"{name} {as_word(answer.got)}", with_keys(answer.why, CONTROLS)])), advice
            )
            answer.source = error.source
    return answer.line(CONTROLS)


def page_clauses(text: str) -> str:
    """The text without clauses on settings that the page lacks."""
    separators = ["", *CLAUSE.findall(text)]
    clauses = [
        (separator, clause)
        for separator, clause in zip(separators, CLAUSE.split(text), strict=True)
        if all(match[1] + match[2] in CONTROLS for match in SETTING.finditer(clause))
    ]
    return "".join(f"{separator if k else ''}{clause}" for k, (separator, clause) in enumerate(clauses))
