"""The rows of raw files about scores: round trips, what a model of them does, loudness."""

from collections.abc import Iterator
from itertools import product
from typing import Any

from pages import Row
from raw_music import Make

LEFT_OUT = ("grace", "cue", "unpitched", "unread")  # kinds of lost notes


def round_trips(found: Any, make: Make) -> Iterator[Row]:
    """What scores keep when they are written and read again."""
    archives = {name: each for name, each in found.items() if isinstance(each, dict)}
    names = " ".join(f"{name}.zip" for name in archives)
    command = f"python studies/notation.py --archives {names} --every {found['every']}"
    title = f"Round trips of scores, every {found['every']}th of each archive"
    for name, each in archives.items():
        columns = {"scores": each["scores"], "read": each["read"]}
        for what in ("notes", "bars", "staves"):
            columns[what] = each["has"][what]
            columns |= {f"{what}, {form}": each[key][what] for key, form in FORMS.items()}
        columns["left out when read"] = sum(each["losses"].get(kind, 0) for kind in LEFT_OUT)
        columns["moved to the grid"] = each["losses"].get("finer", 0)
        for column, count in columns.items():
            claim = f"round trip of scores, {name}: {column}"
            yield make(command, "scores", claim, [count], table=title, line=name, column=column)
    title = "Lyrics and chord symbols in these round trips; MIDI holds the first verse, and no symbols"
    for name, (what, words) in product(archives, {"syllables": "syllables", "symbols": "chord symbols"}.items()):
        for key, form in {"has": "", "musicxml": ", back from MusicXML", "midi": ", back from MIDI"}.items():
            column, figure = f"{words}{form}", [archives[name][key][what]]
            if (what, key) != ("symbols", "midi"):
                claim = f"round trip of scores, {name}: {column}"
                yield make(command, "scores", claim, figure, table=title, line=name, column=column)


FORMS = {"musicxml": "back from MusicXML", "midi": "back from MIDI"}


def in_bars(found: Any, make: Make) -> Iterator[Row]:
    """What a model of scores does on held-out works."""
    command = "python studies/score_measures.py --store outputs/score_music/store --only"
    for part, each in ((part, each) for part, each in found.items() if part in MEASURED):
        for (head, lines), title in zip(each["tables"].items(), MEASURED[part], strict=True):
            cells = [(line, column, cell) for line, row in lines.items() for column, cell in row.items()]
            for line, column, cell in (each for each in cells if each[2] is not None):
                claim = f"score model, {part}, {head}: {line}, {column}"
                figure = cell if isinstance(cell, list) else [cell]
                yield make(
                    f"{command} {part}{SIZES.get(part, '')}",
                    "score-model",
                    claim,
                    figure,
                    table=title,
                    line=line,
                    column=column,
                )


SIZES = dict.fromkeys(("continuations", "fills", "hands"), " --seeds 48") | {"touch": " --files 24"}
MEASURED = {
    "likelihood": ("Nats a note and a bar, validation, inputs of 1,024 ids",),
    "continuations": (
        "8 bars after 8 of held-out works",
        "8 bars after 8 of held-out works: mean absolute difference from the composers' own",
    ),
    "fills": ("One or two bars of all parts, filled",),
    "tune": ("Nats a note of the parts below a tune, and what it saves",),
    "hands": ("Dissonance of a tune above the hands of songs", "Dissonance of tunes that have no hands of their own"),
    "touch": ("Files as people give them, 8 bars more",),
}


def harmonised(found: Any, make: Make) -> Iterator[Row]:
    """The chords found for tunes, and what hands make of them."""
    command = "python studies/tune_chords.py --tunes openewld.zip --store outputs/score_music/store"
    each = found["validation"]
    for part, title in {"chords": "Chords found for held-out tunes", "hands": "Hands below these tunes"}.items():
        for line, columns in each[part].items():
            for column, figure in ({"tunes": [each["tunes"]]} | columns).items():
                claim = f"chords of tunes, {part}, {line}: {column}"
                yield make(command, "score-model", claim, figure, table=title, line=line, column=column)
    for way in ("free", "nearest"):
        claim = f"chords of tunes: share of the hands in the written chord, found less {way}"
        yield make(command, "score-model", claim, each[f"found above {way}"])


def ordered(found: Any, make: Make) -> Iterator[Row]:
    """What models make of the same scores in other orders of ids, and other kinds of model of the same ids."""
    for line, each in found.items():
        columns: dict[str, list[float]] = {"nats a note": each["nats a note"]}
        columns |= {"more than ahead": each["more than ahead"]} if "more than ahead" in each else {}
        columns |= {f"random seed {n}": [cost] for n, cost in enumerate(each["of each seed"], 1)}
        columns |= {"ids a note": [each["ids a note"]], "rate": [each["rate"]], "steps": [each["steps"][0]]}
        for column, figure in columns.items():
            cell = {"table": ORDERED, "line": line, "column": column}
            yield make(ORDERS, "score-model", f"orders of scores, {line}: {column}", figure, **cell)


ORDERED = "The same scores in four orders; in the first of these a table and an LSTM, validation"
ORDERS = "python studies/score_orders.py --store outputs/score_music/works --seconds 300"


def scored(found: Any, make: Make, label: str = "score model", begin: str = "") -> Iterator[Row]:
    """The likelihood of free scores; `begin` fetches the bundle."""
    command = f"{begin}musictx evaluate {found['bundle']} data.path={found['store']} data.segment={found['segment']}"
    claim = f"{label}, free scores, inputs of 1,024: {found['split']}"
    yield make(command, "likelihood", claim, found["per_token"], "nats a token")


def played(found: Any, make: Make) -> Iterator[Row]:
    """How far predicted loudness and articulation of held-out songs are from the played."""
    command = "python studies/humanize.py --pop pop909.zip --annotations pop909-annotations.zip"
    about = [("share of onsets within 1/240 of a quarter of the score's places", found["exact_onsets"])]
    about += [("parameters of the network", found["parameters"]), ("notes of all songs", found["notes"])]
    about += [(f"songs, {side}", count) for side, count in found["songs"].items()]
    for claim, figure in about:
        yield make(command, "loudness", f"loudness and articulation, POP909: {claim}", [figure])
    for each, (column, key) in product(found["rows"], TOUCHES.items()):
        title = f"Mean absolute errors, held-out songs, {each['split']}, {found['seeds']} seeds"
        claim = f"humanize, POP909, {each['split']}: {each['model']}, {column}"
        if key in each:
            yield make(command, "loudness", claim, each[key], table=title, line=each["model"], column=column)


TOUCHES = {
    "velocity": "velocity",
    "velocity, less than part and place": "velocity saved",
    "velocity, volumes of parts given": "velocity within a song",
    "held share of the length": "held",
}


def sung_on(found: Any, make: Make) -> Iterator[Row]:
    """What the models of scores and of chorales write after eight bars of four voices."""
    command = "python studies/score_choirs.py --store outputs/score_music/store --jsb Jsb16thSeparated.json"
    titles = {"all": "four voices", "Bach": "chorales of Bach", "others": "four voices of others"}
    for group, words in titles.items():
        for head, lines in found[group]["tables"].items():
            title = f"8 bars after 8 of held-out {words}: {DISTANCE if head == 'from the composers' else 'means'}"
            cells = ((line, column, cell) for line, row in lines.items() for column, cell in row.items())
            for line, column, cell in (each for each in cells if each[2] is not None):
                claim = f"four voices, {group}, {head}: {line}, {column}"
                figure = cell if isinstance(cell, list) else [cell]
                cell = {"table": title, "line": line, "column": column}
                yield make(command, "score-model", claim, figure, older=True, **cell)  # the choice of works has changed


DISTANCE = "mean absolute difference from the composers' own"
