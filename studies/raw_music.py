"""The rows of raw files about the piano and chorale models: likelihood, guidance, and what a person meets."""

import statistics
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from pages import SPLIT, TEST, Row

Make = Callable[..., Row]  # `row` of a raw file
EVALUATE = "musictx evaluate piano data.path=outputs/stores/maestro data.segment=2048"
GUIDE_MAESTRO = "python studies/guidance.py --store outputs/stores/maestro{} --draws 2"
GUIDE_MAESTRO += " pieces=24 seed_seconds=10 length_seconds=15 span_seconds=5"
GUIDE = GUIDE_MAESTRO.format(
    " --beside outputs/stores/pop outputs/stores/quantised --models piano --strengths 0.25 0.5 0.75 1"
)
GUIDE_ALONE = GUIDE_MAESTRO.format(" --models piano --strengths 0.5 1 --json piano.json")
GUIDE_CHORALE = "python studies/guidance.py --store outputs/stores/jsb --models chorale"
GUIDE_SCORE = "python studies/guidance.py --store outputs/score_music/store --models score --draws 2"
GUIDE_SCORE += " --strengths 0.25 0.5 1 1.5 2"
KINDS = "python studies/alive.py --midi outputs/apart --apart --stores outputs/stores/maestro outputs/stores/pop"
KINDS += " --pieces 12 --draws 1"
AS_BEFORE = " rules.grid=off start=end sampler.guard=false sampler.seed_guidance=0.5"
NAMES = {"jsb": "JSB chorales", "maestro": "MAESTRO"}
PLAY = "python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop --copies"


def likelihood(found: Any, make: Make, split: str, *units: str) -> Iterator[Row]:
    for each in units:
        claim = f"piano model, MAESTRO, inputs of 2,048: {split}"
        command = EVALUATE + SPLIT * (split == "test")
        yield make(command, "likelihood", claim, found[f"per_{each}"], f"nats a {each}")


def with_context(found: Any, make: Make) -> Iterator[Row]:
    """Each token with at least `stride` ids before it, but for the first of a piece."""
    bundle, segment, stride = (found[each] for each in ("bundle", "segment", "stride"))
    command = f"musictx evaluate {bundle} data.path={found['store']} data.segment={segment} data.stride={stride}"
    claim = f"{bundle} model, at least {stride:,} ids before each token: {found['split']}"
    for each in "token", "note":
        yield make(command, "likelihood", claim, found[f"per_{each}"], f"nats a {each}")


def guided(found: Any, make: Make, name: str, command: str, label: str = "", **cell: Any) -> Iterator[Row]:
    """How often motifs of the seed return, without and with each strength of guidance."""
    found, composer = found[name], "Bach" if name == "chorale" else "composers"
    label = label or f"{name} model"
    yield make(
        command, "guidance", f"seed guidance of the {label}, by the rule of the script", [found["chosen"]], **cell
    )
    beside = {f"{store}, validation": each for store, each in found.get("beside", {}).items()}
    for split, rows in ({each: found[each] for each in ("validation", "test") if each in found} | beside).items():
        for each in rows["rows"]:
            kept = [statistics.mean(draw["retained"][i] for draw in each["draws"]) for i in range(3)]
            how = "without guidance" if each["strength"] is None else f"guidance {each['strength']:g}"
            claim = f"{label}, motifs of the seed that return, {composer} 1, chance 0: {how}, {split}"
            first = f"{command} && " if split == "test" and cell.get("older") else ""  # it chose in a run of its own
            yield make(first + command + TEST * (split == "test"), "guidance", claim, kept, **cell)


def led(found: Any, make: Make, store: str) -> Iterator[Row]:
    """How much of new music obeys each thing that `control.` asks for, beside chance and composers, and its price."""
    command = f"python studies/control.py --store outputs/stores/{store} --bundle {found['bundle']}"
    for name, each in found["steerings"].items():
        obeyed, kept = each["obeyed"], each["motifs of the seed"]
        cells = {"obeyed, led": obeyed["steered"], "not led": obeyed["unsteered"], "composers": obeyed["composers"]}
        cells |= {"more than not led": each["more than unsteered"]["difference"]}
        cells |= {"nats a token more": each["nats a token"]["difference"]}
        cells |= {"notes copied from the seed, more": each["notes from the seed"]["difference"]}
        cells |= {"motifs of the seed, led": kept["steered"], "motifs, not led": kept["unsteered"]}
        line = f"control.{name}"
        for column, figure in cells.items():
            if isinstance(figure, list):  # else too few pieces
                seeds = f"{found['pieces']} {found['split']} seeds of {NAMES[store]}"
                title = f"Led by `control.`, {seeds}, {found['length_s']:g} s after {found['seed_s']:g}"
                claim = f"{found['bundle']} model, {seeds}, {line}: {column}"
                yield make(command, "guidance", claim, figure, table=title, line=line, column=column)


MET: dict[str, tuple[str, ...]] = {  # of the figures of `alive.py`
    "continuations that wait over 3 s, where composers and seeds do not": ("stuck",),
    "notes": ("drawn", "notes"),
    "over 8 s": ("drawn", "over 8 s"),
    "composers' notes": ("true", "notes"),
    "composers' over 8 s": ("true", "over 8 s"),
    "half to twice the seed's pace": ("drawn", "half to twice the pace"),
    "composers' pace": ("true", "half to twice the pace"),
    "notes in the seed's scale": ("drawn", "in scale"),
    "composers' scale": ("true", "in scale"),
    "most copied of training, notes": ("drawn", "most copied of training"),
    "composers' most copied": ("true", "most copied of training"),
}


def met(found: Any, make: Make) -> Iterator[Row]:
    """What a person meets: of all continuations, then by the piece and the part of it that is the seed."""
    found = found["piano, default"]
    of = found["all"]
    for claim, figure in {
        f"waits over 3 s where composers and seeds have none, in {of['continuations']} continuations": of["stuck"],
        "waits over 3 s, in as many": of["drawn"]["still 3 s"],
        "composers' waits over 3 s, in a third as many": of["true"]["still 3 s"],
        "notes over 8 s": of["drawn"]["over 8 s"],
        "composers' notes over 8 s": of["true"]["over 8 s"],
        "waits that the net ended": of["net, waits"],
        "notes that the net ended": of["net, notes"],
    }.items():
        yield make(PLAY, "met", f"held-out pieces, continued by the defaults: {claim}", [figure], older=True)
    title = "What a person meets: three continuations of 30 s of each held-out piece"
    for (name, keys), (seeds, figure) in product(MET.items(), found.items()):
        for key in keys:
            figure = figure[key]
        yield make(PLAY, "met", f"{seeds}, {name}", [figure], table=title, line=seeds, column=name, older=True)
    again = "motifs of the seed that return in 30 s, piano model as it is used, composers 1, chance 0"
    for seeds, kept in ((seeds, each["retention"]) for seeds, each in found.items() if seeds != "all"):
        for figure in kept:  # none where the composers' own music does not follow the seed
            yield make(PLAY, "guidance", f"{again}: {seeds}", figure, older=True)


def like_composers(found: Any, make: Make, words: str = "", how: str = "by the defaults") -> Iterator[Row]:
    """Files of several kinds, continued in each form of seeds: what is measured, beside the composers'."""
    (forms,) = found["piano, default"].values()
    for form, figures in ((form, each) for form, each in forms.items() if isinstance(each, dict)):
        many = f"{figures['continuations']} continuations of {forms['seconds']:g} s"
        title = f"Files of {len(figures['kinds'])} kinds, {form}, continued {how}: {many}"
        columns = {
            "new music": "drawn",
            "composers'": "true",
            "share like the composers'": "inside",
            "of composers' own": "own inside",
        }
        for (line, each), (column, who) in product(figures.items(), columns.items()):
            if isinstance(each, dict) and each.get(who) is not None:
                cell = {"table": title, "line": line, "column": column}
                yield make(KINDS + words, "met", f"{form}, {how}, {line}: {column}", [each[who]], **cell)
