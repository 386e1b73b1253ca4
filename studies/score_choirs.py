"""Which model goes on with four voices: that of scores, or that of chorales?

    OMP_NUM_THREADS=1 python studies/score_choirs.py --store outputs/score_music/store --jsb Jsb16thSeparated.json

Works are held-out ones of the score model's store that `musictx generate` takes for a choir in four voices, and as many
chorales of Bach, of the validation split that the chorale model did not see either. Each model continues eight bars by
eight with three random seeds; its file is measured, beside the composer's own next bars.

The rule: scores are for the score model, so it has four voices too, unless the chorale model is nearer. Nearer in a
figure of `NEAR` is a model whose mean difference from the composers is less, with an interval by work without 0. The
chorale model goes on with four voices if it is nearer in more figures than the score model.

Three ways in which set-up alone could decide: 1. Bach is the chorale model's home, and hymns the score model's: either
are half of the works, and stand alone too. 2. The chorales have no bars here, so they count from the first note, which
can only cost the score model. 3. One draw is luck: there are three, and a work counts once.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import timed
from alive import spread
from alive_measures import Setting, measure
from alive_midi import between
from score_drawn import ScoreModel
from score_tables import Table, markdown, ratio
from score_works import SCORE, SEED, UNIT_S, Work, goes_on, works_of
from shared import options

from musictx.analysis.part_writing import beats_of, findings
from musictx.config.mistakes import in_one_line
from musictx.data.corpora.jsb import read_table
from musictx.data.store import Store
from musictx.errors import TokenError
from musictx.files import write_json
from musictx.generate.choose_bundle import choose_bundle
from musictx.generate.continuing import continue_all, read_beginning
from musictx.generate.open_player import Playing, open_playing
from musictx.generate.primer import Part
from musictx.generate.requests import Continue, Length
from musictx.model.packaged import CHORALE, bundle_path
from musictx.model.tensors import tensors_hash
from musictx.music.beat_grid import find_grid
from musictx.music.grid import REST, STEPS_PER_QUARTER, quantise, score_to_grid
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note
from musictx.music.notation.parts import Part as Staff
from musictx.music.read import read_tracks
from musictx.music.score import UNITS
from musictx.system import processor
from musictx.terminal import say
from musictx.waiting import estimated

Draws = Mapping[str, Callable[[Path, int, float], Any]]  # of a seed, random seed and seconds
MODELS = ("score", "chorale")
SEEDS = (0, 1, 2)
NEAR = ("density", "in key", "polyphony", "looped", "fifths a beat")
SLOTS = (0, 3, 4, 5)  # of a tune and three more parts


def chorale(name: str, grid: np.ndarray) -> Work:
    """A chorale (T, 4) in common time, from its first note on."""
    unit, steps = UNITS // STEPS_PER_QUARTER, len(grid)
    bars = tuple(Bar(onset, 4, 4) for onset in range(0, steps * unit, 4 * UNITS))
    staves = []
    for label, voice in zip(("soprano", "alto", "tenor", "bass"), grid.T, strict=True):
        begins = np.flatnonzero(np.diff(voice, prepend=REST - 1) != 0)
        spans = zip(begins, [*begins[1:], steps], strict=True)
        notes = (Note(int(a) * unit, int(b - a) * unit, int(voice[a])) for a, b in spans if voice[a] != REST)
        staves.append(Staff(label, 0, tuple(notes)))
    notation = Notation(tuple(staves), bars, bars[-1].onset + 4 * UNITS)
    return Work(name, SCORE.encode_notation(notation), notation, SLOTS)


def four_voices(work: Work, folder: Path) -> bool:
    """Whether the seed's file is for the chorale model by default."""
    if not goes_on(work):
        return False
    file = work.cut(0, work.upbeat + SEED).write(folder / work.file_name)
    tracks = read_tracks(file.read_bytes(), file, one_tempo=True)
    return choose_bundle(tracks.merge(), file.name, [each.score for each in tracks.tracks]).bundle == CHORALE


def bars_of_scores(model: ScoreModel, file: Path, random_seed: int, seconds: float) -> Any:
    return model.draw(model.task(file, Continue(length=Length(bars=SEED), random_seed=random_seed)))


def bars_of_chorales(model: Playing, file: Path, random_seed: int, seconds: float) -> Any:
    length_s = read_tracks(file.read_bytes(), file).merge().duration_s
    part = Part(until_s=length_s, start="bar")  # also where the seed seems to end a piece
    request = Continue(length=Length(seconds=seconds), part=part, random_seed=random_seed)
    beginning = read_beginning(file, model.tokenizer, request)
    return continue_all([beginning], model.player, model.tokenizer, request, own=model.header.sampling)[0][0]


def sung(work: Work, draws: Draws, folder: Path) -> dict[str, Any]:
    """The figures of each model's bars, one dict a random seed, and of the composer's."""
    seed, whole = (work.cut(0, work.upbeat + bars) for bars in (SEED, 2 * SEED))
    from_s, to_s = seed.notation.end * UNIT_S, whole.notation.end * UNIT_S
    file = seed.write(folder / "seeds" / work.file_name)
    files = {"composer": [whole.write(folder / "composer" / work.file_name)]}
    for name, draw in draws.items():
        files[name] = [folder / f"{name}-{n}" / work.file_name for n in SEEDS]
        for n, place in zip(SEEDS, files[name], strict=True):
            draw(file, n, to_s - from_s).write(place)
    tracks = read_tracks(file.read_bytes(), file)
    setting = Setting(tracks.meter(), find_grid(tracks.merge(), tracks.meter()), from_s, to_s)
    return {name: [figures(file, place, setting) for place in places] for name, places in files.items()}


def figures(seed: Path, continued: Path, setting: Setting) -> dict[str, float | None]:
    before, after = (read_tracks(path.read_bytes(), path) for path in (seed, continued))
    new = between(after.merge(), setting.from_s, setting.to_s)
    row = measure(before.merge(), new, setting)
    found = {name: row[name] for name in ("density", "in key", "polyphony", "looped")}
    parts = [between(part.score, setting.from_s, setting.to_s) for part in after.tracks[: len(before.tracks)]]
    found["in the seed's tracks"] = sum(len(part) for part in parts) / len(new) if len(new) else None
    try:
        grid = score_to_grid(quantise(new).score)
    except TokenError:  # more than four at once
        return found | {"four voices": 0.0, "fifths a beat": None}
    voices = (grid != REST).sum(1)  # (steps,)
    voices = voices[voices > 0]
    full = voices == grid.shape[1]
    found["four voices"] = float(full.mean()) if len(full) else 0.0
    found["fifths a beat"] = len(findings(grid)["parallel fifths"]) / beats_of(grid) if beats_of(grid) else None
    return found


def row_of(work: Work, draws: Draws, folder: Path) -> dict[str, Any]:
    about = {"work": work.name, "corpus": work.corpus, "processor": str(processor())}
    return about | {"found": sung(work, draws, folder)}


def apart(rows: Sequence[Any], model: str, name: str) -> dict[str, float]:
    """How far a model is from each work's composer in a figure, mean over its random seeds."""
    each = {}
    for row in rows:
        true, drawn = row["found"]["composer"][0][name], [draw[name] for draw in row["found"][model]]
        if true is not None and None not in drawn:
            each[row["work"]] = float(np.mean([abs(x - true) for x in drawn]))
    return each


def table(rows: Sequence[Any]) -> tuple[Table, Table, dict[str, int]]:
    """The means, how far the models are from the composers, and in how many figures each is nearer."""
    means: dict[str, dict[str, Any]] = {}
    for name in (*NEAR, "four voices", "in the seed's tracks"):
        means[name] = {"works": len(rows)}
        for model in ("composer", *MODELS):
            drawn = [[x for draw in row["found"][model] if (x := draw[name]) is not None] for row in rows]
            means[name][model] = ratio([float(np.mean(each)) for each in drawn if each])
    wins, lines = dict.fromkeys(MODELS, 0), dict[str, dict[str, Any]]()
    for name in NEAR:
        each = {model: apart(rows, model, name) for model in MODELS}
        both = [work for work in each["score"] if work in each["chorale"]]
        columns = {model: [of[work] for work in both] for model, of in each.items()}
        less = ratio([a - b for a, b in zip(columns["chorale"], columns["score"], strict=True)])
        lines[name] = {"works": len(both), **{model: ratio(of) for model, of in columns.items()}}
        lines[name]["chorale less score"] = less
        wins["score"] += less is not None and less.low > 0
        wins["chorale"] += less is not None and less.high < 0
    return ("eight bars more", means), ("from the composers", lines), wins


def main() -> None:
    parser = options(__doc__, "store", "jsb", "out", out=Path("outputs/score_choirs"))
    parser.set_defaults(store=Path("outputs/score_music/store"))
    args = parser.parse_args()
    score, choir = ScoreModel.open(bundle_path("score")), open_playing(bundle_path("chorale"))
    draws = {"score": partial(bars_of_scores, score), "chorale": partial(bars_of_chorales, choir)}
    trial = args.out / "trial"
    works = [work for work in works_of(Store(args.store, SCORE.name).split("validation")) if four_voices(work, trial)]
    bach = [chorale(f"bach/{n:02}.mid", grid) for n, grid in enumerate(read_table(args.jsb)["valid"])]
    bach = [work for work in bach if four_voices(work, trial)]
    works += [bach[n] for n in spread(len(bach), len(works))]
    hashes = {name: tensors_hash(bundle_path(name)) for name in MODELS}
    runs, rows = timed.Runs(args.out / "rows.json"), list[Any]()
    for work in estimated(works, f"{len(works)} works"):
        key = " ".join([work.name, *(each[:16] for each in hashes.values())])
        rows.append(runs.get(key, partial(row_of, work, draws, args.out)))
    groups = {"all": rows, "Bach": [row for row in rows if row["corpus"] == "bach"]}
    groups["others"] = [row for row in rows if row["corpus"] != "bach"]
    facts: dict[str, Any] = {"tensors_sha256": hashes, "processors": sorted({row["processor"] for row in rows})}
    for name, some in groups.items():
        *tables, wins = table(some)
        facts[name] = {"tables": dict(tables), "nearer in": wins}
        say("\n\n".join([f"## {name}", *map(markdown, tables), f"nearer in: {wins}"]))
    facts["chosen"] = (
        "chorale" if facts["all"]["nearer in"]["chorale"] > facts["all"]["nearer in"]["score"] else "score"
    )
    write_json(args.out / "choirs.json", facts)
    say(f"chosen: {facts['chosen']}")


if __name__ == "__main__":
    with in_one_line():
        main()
