"""Makes all pages that state figures, from `studies/results.json`: docs/results.md, docs/results/, the others' figures.

    python studies/report.py            # after the raw files are committed

First the rows of the raw files of `RAW` take the place of their older ones in `studies/results.json`; all others stay
as they are. A row has a page, a claim, the figure, its interval (95 %, resampled pieces, unless the claim says
otherwise), the unit, the command, the commit that holds the raw file, the hash of the model's tensors where the raw
file names one, and the source. The rows of a table also have its title, line and column. `older` says that the command
is of the script of that commit, where the script of today has other options. `pages.py` says what a page makes of them.
"""

import json
import re
import statistics
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from pages import ROOT, SPLIT, TEST, Row, pages_of
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.files import replacing
from musictx.terminal import say

Make = Callable[..., Row]  # `row` of a raw file
ROWS, RESULTS = ROOT / "studies/results.json", ROOT / "studies/results"
WRITTEN = ("key", "says", "digits")  # of a row, by hand
EVALUATE = "musictx evaluate piano data.path=outputs/stores/maestro data.segment=2048"
GUIDE_MAESTRO = "python studies/guidance.py --store outputs/stores/maestro{} --draws 2"
GUIDE_MAESTRO += " pieces=24 seed_seconds=10 length_seconds=15 span_seconds=5"
GUIDE = GUIDE_MAESTRO.format(
    " --beside outputs/stores/pop outputs/stores/quantised --models piano --strengths 0.25 0.5 0.75 1"
)
GUIDE_ALONE = GUIDE_MAESTRO.format(" --models piano --strengths 0.5 1")
GUIDE_CHORALE = "python studies/guidance.py --store outputs/stores/jsb --models chorale"
KINDS = "python studies/alive.py --midi outputs/apart --apart --stores outputs/stores/maestro outputs/stores/pop"
KINDS += " --pieces 12 --draws 1"
AS_BEFORE = " rules.grid=off start=end sampler.guard=false sampler.seed_guidance=0.5"
PLAY = "python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop --copies"
LEFT_OUT = ("grace", "cue", "unpitched", "unread")  # kinds of lost notes


def row(source: Path, command: str, page: str, claim: str, figure: list[float], unit: str = "", **cell: str) -> Row:
    value, low, high = [*figure, None, None][:3]
    tensors = re.search(r'"tensors_sha256": "(\w+)"', source.read_text(encoding="utf-8"))
    found = {"page": page, "claim": claim, "figure": value, "low": low, "high": high, "unit": unit}
    found |= {"command": command, "commit": None, "tensors_sha256": tensors and tensors[1]}
    return found | {"source": source.relative_to(ROOT).as_posix(), **cell}


def likelihood(found: Any, make: Make, split: str, *units: str) -> Iterator[Row]:
    for each in units:
        claim = f"piano model, MAESTRO, inputs of 2,048: {split}"
        command = EVALUATE + SPLIT * (split == "test")
        yield make(command, "likelihood", claim, found[f"per_{each}"], f"nats a {each}")


def guided(found: Any, make: Make, name: str, command: str, label: str = "", **cell: Any) -> Iterator[Row]:
    """How often motifs of the seed return, without and with each strength of guidance."""
    found, composer = found[name], {"chorale": "Bach", "piano": "composers"}[name]
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
            yield make(command + TEST * (split == "test"), "guidance", claim, kept, **cell)


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
        yield make(PLAY, "met", f"held-out pieces, continued by the defaults: {claim}", [figure])
    title = "What a person meets: three continuations of 30 s of each held-out piece"
    for (name, keys), (seeds, figure) in product(MET.items(), found.items()):
        for key in keys:
            figure = figure[key]
        yield make(PLAY, "met", f"{seeds}, {name}", [figure], table=title, line=seeds, column=name)
    again = "motifs of the seed that return in 30 s, piano model as it is used, composers 1, chance 0"
    for seeds, kept in ((seeds, each["retention"]) for seeds, each in found.items() if seeds != "all"):
        for figure in kept:  # none where the composers' own music does not follow the seed
            yield make(PLAY, "guidance", f"{again}: {seeds}", figure)


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


def speeds(found: Any, make: Make, command: str, **cell: Any) -> Iterator[Row]:
    """Of every contestant on one processor, the median and the extremes of its turns."""
    place = re.sub(r", torch .*", "", found["where"])
    bench = command.split("/")[1].partition(".")[0]
    for each in found["rows"]:
        if seconds := each["seconds"]:
            rates = [each["tokens"] / x for x in (statistics.median(seconds), max(seconds), min(seconds))]
            claim = f"{bench}, {place}: {each['name']}"
            yield make(lesser(found) + command, "speed", claim, rates, "tokens/s", **cell)
        if first_s := each.get("first_s"):
            claim = f"{bench}, {place}, the first token: {each['name']}"
            yield make(command, "speed", claim, [statistics.median(first_s), min(first_s), max(first_s)], "s", **cell)


def lesser(found: Any) -> str:
    """The variables by which the processor of a raw file did less than it could, as they come before a command."""
    said = re.search(r"ONEDNN_MAX_CPU_ISA=\S+ ATEN_CPU_CAPABILITY=\S+", found["where"])
    return f"{said[0]} " if said else ""


SAMPLE = partial(speeds, command="musictx benchmarks/sampling.py")
SAMPLE_BEFORE = partial(
    speeds, command="musictx benchmarks/sampling.py threads=1 length=128 repeats=3 batches=[16]", older=True
)
SMALL = "threads=2 length=512 batch=1 repeats=3 warm_up=1 loader_steps=1 workers=[0] positions=[relative]"
TRAIN = partial(speeds, command=f"musictx benchmarks/training.py {SMALL}")


def beside(found: Any, make: Make) -> Iterator[Row]:
    """How much longer whole commands take beside busy processes than a fair share of the cores would let them."""
    place = found["where"].partition(", 2 cores")[0]
    command = f"{lesser(found)}musictx benchmarks/beside.py"
    title = (
        "Beside one and four busy processes on two cores: the time that each command takes, where what a fair share "
    )
    title += f"of the cores would let it take is 1, median of {found['config']['repeats']} runs"
    for each in (row for row in found["rows"] if row["busy"]):
        name, column = each["command"].split()[1].strip(","), f"{place}, beside {each['busy']}"
        cell = {"table": title, "line": name, "column": column}
        yield make(command, "speed", f"{name}, {column}", [each["lost"]], "times as long", **cell)


TAKEN = {
    "seconds": ("seconds", "s"),
    "peak of the program": ("parent_mib", "MiB"),
    "peak of its readers": ("readers_mib", "MiB"),
    "MIDI files": ("midi_mib", "MiB"),
    "store": ("store_mib", "MiB"),
}


def prepared(found: Any, make: Make) -> Iterator[Row]:
    """What `musictx prepare` takes for so many files."""
    place, words = re.sub(r", torch .*", "", found["where"]), found["config"]
    command = f"{lesser(found)}musictx benchmarks/prepare.py files={json.dumps(words['files']).replace(' ', '')}"
    title = f"musictx prepare, small files, {words['workers']} readers, MiB but for seconds, one run beside other "
    title += f"programs: {place}"
    for each, (column, (key, unit)) in product(found["rows"], TAKEN.items()):
        line = f"files: {each['files']:,}"
        claim = f"prepare, {place}, {line}, {column}"
        yield make(command, "speed", claim, [each[key]], unit, table=title, line=line, column=column)


def round_trips(found: Any, make: Make) -> Iterator[Row]:
    """What scores keep when they are written and read again."""
    archives = {name: each for name, each in found.items() if isinstance(each, dict)}
    command = f"studies/notation.py --archives {' '.join(f'{name}.zip' for name in archives)} --every {found['every']}"
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


SIZES = dict.fromkeys(("continuations", "fills", "hands"), " --seeds 48") | {"tune": " --scored 64"}
SIZES["touch"] = " --files 24"
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


def scored(found: Any, make: Make) -> Iterator[Row]:
    command = "musictx evaluate score data.path=outputs/score_music/store data.segment=1024"
    yield make(
        command,
        "likelihood",
        "score model, free scores, inputs of 1,024: validation",
        found["per_token"],
        "nats a token",
    )


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

RAW: dict[str, Callable[[Any, Make], Iterator[Row]]] = {
    "piano-test.json": lambda found, make: likelihood(found, make, "test", "token"),
    "piano-validation.json": lambda found, make: likelihood(found, make, "validation", "token", "note", "second"),
    "guidance/piano.json": partial(guided, name="piano", command=GUIDE_ALONE, older=True),
    "guidance/three.json": partial(guided, name="piano", command=GUIDE, label="piano model, held to its seed"),
    "guidance/chosen.json": partial(guided, name="chorale", command=GUIDE_CHORALE),
    "alive.json": met,
    "kinds.json": like_composers,
    "kinds-as-before.json": partial(
        like_composers,
        words=f" --forms 'last 4 bars'{AS_BEFORE}",
        how="without grid, guard and bar lines, guidance 0.5",
    ),
    **{f"training-{kind}.json": TRAIN for kind in ("avx512", "avx2")},
    **{f"neighbours-{kind}.json": beside for kind in ("avx512", "avx2")},
    "prepare.json": prepared,
    "notation.json": round_trips,
    "humanize.json": played,
    "score-validation.json": scored,
    "score-measures.json": in_bars,
    "sampling.json": SAMPLE,
    **{f"sampling-{kind}.json": SAMPLE_BEFORE for kind in ("avx512", "avx2")},
}


def collected() -> list[Row]:
    """The rows of the raw files."""
    rows: list[Row] = []
    for path, rows_of in ((RESULTS / name, rows_of) for name, rows_of in RAW.items()):
        if path.exists():
            rows += rows_of(json.loads(path.read_text(encoding="utf-8")), partial(row, path))
    return rows


def all_rows() -> list[Row]:
    rows: list[Row] = json.loads(ROWS.read_text(encoding="utf-8"))
    return rows


def commit_of(source: str) -> str:
    """The commit of a raw file. Exits the script if it is not committed."""
    git = ["git", "-C", str(ROOT)]
    if subprocess.run([*git, "status", "--porcelain", source], capture_output=True, check=True).stdout:
        raise SystemExit(f"{source} is not committed: commit it, then write the page")
    log = [*git, "log", "-1", "--abbrev=7", "--format=%h", "--", source]
    return subprocess.run(log, capture_output=True, check=True).stdout.decode().strip()


def refreshed() -> list[Row]:
    """All rows; those of raw files as these are now, each with the commit of its file. No row goes."""
    new = {(each["source"], each["claim"], each["unit"]): each for each in collected()}
    commits = {source: commit_of(source) for source in {source for source, *_ in new}}
    rows = []
    for each in all_rows():
        by_hand = {name: each[name] for name in WRITTEN if name in each}
        rows.append(new.pop((each["source"], each["claim"], each["unit"]), each) | by_hand)
    return [each | {"commit": commits.get(each["source"], each["commit"])} for each in [*rows, *new.values()]]


def main() -> None:
    options(__doc__).parse_args()
    rows = refreshed()
    pages = pages_of(rows)  # first, so that a link to no row leaves all files alone
    with replacing(ROWS) as written:
        lines = ",\n".join(f" {json.dumps(each, ensure_ascii=False)}" for each in rows)
        written.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    changed = {path: text for path, text in pages.items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in changed.items():
        path.parent.mkdir(exist_ok=True)
        with replacing(path) as written:
            written.write_text(text, encoding="utf-8")
    names = ", ".join(path.relative_to(ROOT).as_posix() for path in changed)
    say(f"{len(rows)} rows; changed: {names or 'no page'}")


if __name__ == "__main__":
    with in_one_line():
        main()
