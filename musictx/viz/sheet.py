"""A blind listening sheet: one HTML page with its sound inside, which needs no network and tells nothing before its key
is opened."""

import json
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template, ascii_uppercase
from typing import NamedTuple

RATINGS = {1: "1, badly", 2: "2", 3: "3", 4: "4", 5: "5, very well"}
MOST = len(ascii_uppercase)  # continuations of one seed


class Trial(NamedTuple):
    """One seed and its continuations in the order in which they are heard, all as MP3, and who made each."""

    seed: bytes
    sounds: list[bytes]
    sources: list[str]


def listening_sheet(trials: Sequence[Trial], composer: str, about: str, credit: str) -> str:
    """The page. `composer` is the source to be found; `about` is shown with the key, `credit` always."""
    folder = Path(__file__).parent
    parts = {suffix: folder.joinpath(f"sheet.{suffix}").read_text(encoding="utf-8") for suffix in ("html", "css", "js")}
    sources = [trial.sources for trial in trials]
    key = json.dumps({"composer": composer, "sources": sources, "about": about}, ensure_ascii=False).encode()
    heard = sha256(key)
    for trial in trials:
        heard.update(b"".join([trial.seed, *trial.sounds]))
    return Template(parts["html"]).substitute(
        style=parts["css"],
        script=parts["js"],
        sheet=heard.hexdigest()[:12],
        letters=f"A to {ascii_uppercase[len(sources[0]) - 1]}",
        trials="\n".join(_trial(n, trial, len(trials)) for n, trial in enumerate(trials, 1)),
        credit=escape(credit),
        key=b64encode(key).decode(),
    )


def _trial(n: int, trial: Trial, of: int) -> str:
    letters = ascii_uppercase[: len(trial.sounds)]
    rows = [
        f'<fieldset class="row"><legend>{letter}</legend>{_player(f"Piece {n}, continuation {letter}", sound)}\n'
        f"{_choices(f'rating-{n}-{letter}', f'How well does {letter} go on?', RATINGS)}</fieldset>"
        for letter, sound in zip(letters, trial.sounds, strict=True)
    ]
    return (
        f'<section aria-labelledby="piece-{n}"><h2 id="piece-{n}">Piece {n} of {of}</h2>\n'
        f'<div class="row"><p>First the beginning</p>{_player(f"Piece {n}, the beginning", trial.seed)}</div>\n'
        + "\n".join(rows)
        + f'\n<div class="row">{_choices(f"choice-{n}", "Which one is the composer’s?", {x: x for x in letters})}</div>'
        "</section>"
    )


def _player(label: str, sound: bytes) -> str:
    data = b64encode(sound).decode()
    return f'<audio controls aria-label="{label}" src="data:audio/mpeg;base64,{data}"></audio>'


def _choices(name: str, question: str, choices: dict[int, str] | dict[str, str]) -> str:
    """Radio buttons."""
    labels = (
        f'<label><input type="radio" name="{name}" value="{value}">{text}</label>' for value, text in choices.items()
    )
    group = f'<div class="choices" role="radiogroup" aria-labelledby="ask-{name}">{"".join(labels)}</div>'
    return f'<p id="ask-{name}">{question}</p>{group}'
