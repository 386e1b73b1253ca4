"""The rows of raw files about speed and memory."""

import json
import re
import statistics
from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

from pages import Row
from raw_music import Make


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
