"""What a person meets: whole pieces, their ends and their beginnings, continued by the defaults of `musictx generate`.

    python data_prep/maestro.py path=maestro-v3.0.0-midi.zip out=outputs/stores/maestro
    python data_prep/pop909.py path=pop909.zip out=outputs/stores/pop
    python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop
    python studies/alive.py --stores outputs/stores/maestro --ways all                     # each remedy alone
    python studies/alive.py --stores outputs/stores/maestro --bundles piano new.safetensors    # two models
    python studies/alive.py --bundles new.safetensors --write sampler.top_p=null sampler.min_p=0.01

Each cell takes held-out pieces in one of four forms. Counted are continuations without a new note for more than 3 s,
notes over 8 s, and notes in the seed's scale. Measured are the pace beside the seed's, and the longest copies of
training music. Beside each figure is that of the composer's continuation, or, where the seed reaches a piece's end, of
its last music before the ending. The net is what `rules.` forbid: how often a wait or a note reached their limit.

The rule of choice (`rank`): fewer continuations that stand still where neither seed nor true music does. If equal,
fewer notes over 8 s. If equal, more continuations between half and twice the pace of their seed. `--bundles` and
`--ways` are compared by it over all cells together. `--write` draws nothing: it writes filters into a bundle's header.
Each cell is kept in a file: the same command resumes, and processes with one store each can share the work. Beside it
are ten continuations to hear.
"""

import argparse
import contextlib
import io
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timed
from shared import asked, options

from musictx.analysis.repeats import CorpusIndex
from musictx.commands.generate import GenerateConfig
from musictx.commands.generate import asked as asked_by
from musictx.config.app import settings
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import write_json
from musictx.generate.continuing import begin_with, continue_all
from musictx.generate.open_bundle import Opened, open_bundle
from musictx.generate.requests import Continue, Sampling
from musictx.model.bundle import OWN_FILTERS, add_notes, tensors_hash
from musictx.model.packaged import bundle_path
from musictx.model.weights import choose_weights, for_steps
from musictx.music.ending import ending_s
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers.rules import AUTO

STILL_S, LONG_S = 3.0, 8.0
FORMS = {  # of a seed: the settings that a person gives
    "whole": [],
    "last 15 s": ["seed_seconds=15", "seed_from=end"],
    "first 15 s": ["seed_seconds=15"],
    "first 5 s": ["seed_seconds=5"],
}
NO_NET = ["rules.max_still_s=null", "rules.max_note_s=20"]
KEPT = ["from_s=86400"]  # a finished piece is continued after its ending; beginnings have none
WAYS = {"default": [], "neither": [*NO_NET, *KEPT], "no net": NO_NET, "endings kept": KEPT}
AT_ONCE_S = 4.0  # a piece whose first notes come later has no beginning of 5 s
SCALE = 7  # pitch classes of a seed's scale: those that sound longest
HEARD = 10  # continuations of a cell that are kept as MIDI


class Figures(NamedTuple):
    """The figures of one continuation, or of the true music."""

    wait_s: float  # the longest time without a new note
    notes: int
    long: int  # notes over 8 s
    pace: float  # notes a second, as a share of the seed's
    in_scale: float
    learned: int  # notes of the longest run that a training piece has too; 0 if it was not asked
    net_waits: int  # waits that reached their limit
    net_notes: int  # notes that reached theirs

    @property
    def still(self) -> bool:
        return self.wait_s > STILL_S


def waits_s(music: Score, length_s: float) -> np.ndarray:
    """The times without a new note, from time 0 to the end of the length."""
    return np.diff(np.concatenate([[0.0], np.unique(music.onset_s), [length_s]]))


def in_scale(seed: Score, music: Score) -> float:
    """The share of notes in the pitch classes that sound longest in the seed."""
    heard = np.bincount(seed.pitch % 12, weights=seed.offset_s - seed.onset_s, minlength=12)
    scale = [k for k in np.argsort(-heard, kind="stable")[:SCALE] if heard[k]]
    return float(np.isin(music.pitch % 12, scale).mean()) if len(music) else 0.0


def measure(
    seed: Score, music: Score, length_s: float, limits_s: tuple[float, float], known: CorpusIndex | None
) -> Figures:
    """The figures of the music (from time 0) after a seed. `limits_s`: the net's, on waits and on notes."""
    wait_s, held_s = waits_s(music, length_s), music.offset_s - music.onset_s
    return Figures(
        float(wait_s.max()),
        len(music),
        int((held_s > LONG_S).sum()),
        len(music) / length_s / (len(seed) / max(seed.duration_s, 1e-9)),
        in_scale(seed, music),
        known.longest_copy(music).notes if known is not None else 0,
        int((wait_s[:-1] > limits_s[0] - 0.02).sum()),
        int((held_s > limits_s[1] - 0.02).sum()),
    )


def true_music(piece: Score, form: str, seed: Score, seed_s: float, length_s: float) -> tuple[Score, Score]:
    """The composer's music and what was heard before it: a beginning and what follows, or the last music before a
    piece's ending. Each begins at time 0."""
    begin_s = seed_s if form.startswith("first") else max((ending_s(piece) or piece.duration_s) - length_s, 0.0)
    before = seed if form.startswith("first") else piece.clip(0.0, begin_s)
    return before, piece.clip(begin_s, begin_s + length_s)


class Cell(NamedTuple):
    """One corpus and one form of seeds: what was drawn from each piece, and the true music."""

    drawn: list[list[Figures]]  # piece by piece
    true: list[Figures]
    seed_wait_s: list[float]

    def stuck(self) -> int:
        """Continuations that wait where neither the seed nor the true music does."""
        return sum(
            row.still and not true.still and wait_s <= STILL_S
            for rows, true, wait_s in zip(self.drawn, self.true, self.seed_wait_s, strict=True)
            for row in rows
        )


def cell(
    form: str, pieces: Sequence[Score], opened: Opened, request: Continue, corpus: Path | None, folder: Path
) -> dict[str, Any]:
    """Draws and measures a cell, with copies of the corpus if there is one; the first continuations lie in the
    folder."""
    known = learned(corpus, opened.header.tokenizer) if corpus else None
    length_s = request.length.seconds or 30.0
    with contextlib.redirect_stdout(io.StringIO()):  # what each seed's line says is the same for all
        beginnings = [begin_with(piece, opened.tokenizer, request) for piece in pieces]
    made = continue_all(beginnings, opened.model, opened.tokenizer, request, own=opened.header.sampling)
    found = Cell([], [], [])
    for k, (piece, beginning, musics) in enumerate(zip(pieces, beginnings, made, strict=True)):
        assert beginning.primer is not None
        seed, end_s = beginning.primer.score, beginning.primer.end_s
        own = waits_s(seed, seed.duration_s)[1:-1]
        limits = request.rules.still_s(own), request.rules.note_s(seed.offset_s - seed.onset_s)
        new = [music.score.clip(music.new_from_s, music.new_from_s + length_s) for music in musics]
        found.drawn.append([measure(seed, each, length_s, limits, known) for each in new])
        before, after = true_music(piece, form, seed, end_s, length_s)
        found.true.append(measure(before, after, length_s, (np.inf, np.inf), known))
        found.seed_wait_s.append(float(own.max(initial=0.0)))
        if k < HEARD:
            write_midi(musics[0].score, folder / f"{k + 1}.mid")
    return found._asdict()


@lru_cache(1)
def learned(path: Path, tokenizer: str) -> CorpusIndex:
    """All training pieces of a store."""
    store = Store(path, tokenizer)
    return CorpusIndex([store.tokenizer.decode(np.asarray(ids)) for ids in store.split("train")])


def summary(cells: Sequence[Cell]) -> dict[str, Any]:
    """The figures of several cells together."""
    rows, true = [r for c in cells for rows in c.drawn for r in rows], [r for c in cells for r in c.true]
    found: dict[str, Any] = {"continuations": len(rows), "stuck": sum(c.stuck() for c in cells)}
    for who, each in (("drawn", rows), ("true", true)):
        found[who] = {
            "still 3 s": sum(r.still for r in each),
            "notes": sum(r.notes for r in each),
            "over 8 s": sum(r.long for r in each),
            "half to twice the pace": round(float(np.mean([0.5 <= r.pace <= 2 for r in each])), 3),
            "in scale": round(float(np.mean([r.in_scale for r in each])), 3),
            "copied of training": float(np.median([r.learned for r in each])),
            "most copied of training": max(r.learned for r in each),
        }
    return found | {"net, waits": sum(r.net_waits for r in rows), "net, notes": sum(r.net_notes for r in rows)}


def rank(found: dict[str, Any]) -> tuple[float, ...]:
    """The rule of choice: of two summaries the lower rank is better."""
    drawn = found["drawn"]
    return found["stuck"], drawn["over 8 s"] / max(drawn["notes"], 1), -drawn["half to twice the pace"]


def choose_pieces(store: Store, split: str, pieces: int, longer_s: float) -> list[Score]:
    """Pieces that are long enough and begin at once, spread over the split. Raises UserError for fewer than two."""
    found = store.split(split)
    scores = [store.tokenizer.decode(np.asarray(found[i])) for i in range(len(found)) if len(found[i])]
    long = [score for score in scores if score.duration_s > longer_s and len(score.clip(0.0, AT_ONCE_S)) > 1]
    if len(long) < 2:
        raise UserError(
            f"{len(long)} pieces of the {split} split are longer than {longer_s:g} s: give a shorter --seconds"
        )
    return [long[i] for i in np.unique(np.linspace(0, len(long) - 1, min(pieces, len(long))).round().astype(int))]


def study(args: argparse.Namespace, words: list[str]) -> None:
    """Draws all cells of each model and way, and names the best. Raises UserError."""
    facts: dict[str, Any] = {"split": args.split, "seconds": args.seconds, "draws": args.draws, "random_seed": 0}
    best: dict[str, tuple[float, ...]] = {}
    for bundle, (way, way_words) in product(args.bundles, list(WAYS.items())[: None if args.ways == "all" else 1]):
        opened, tensors = open_bundle(bundle_path(bundle)), tensors_hash(bundle_path(bundle))
        weights = choose_weights(GenerateConfig(out="x", bundle=bundle).weights, opened.model)
        opened = opened._replace(model=for_steps(opened.model, weights))
        name = f"{Path(bundle).name}, {way}"
        folder = args.out.with_suffix("") / name.replace(", ", "-").replace(" ", "-")
        cells, facts[name] = [], {}
        for path, (form, form_words) in product(args.stores, FORMS.items()):
            store = Store(path, opened.header.tokenizer)
            pieces = choose_pieces(store, args.split, args.pieces, args.seconds + 20)
            own = [word for word in way_words if word not in KEPT or not form.startswith("first")]
            own += [f"length_seconds={args.seconds}", f"variations={args.draws}"]
            request = asked_by(settings("generate", "seed_midi=null", "out=x", *form_words, *own, *words))
            at = folder / f"{path.name}-{form.replace(' ', '-')}"
            of = store.manifest.splits[args.split].sha256, args.pieces, args.copies, Figures._fields
            key = f"{tensors} {opened.header.sampling} {of} {request}"
            draw = partial(cell, form, pieces, opened, request, path if args.copies else None, at)
            kept = timed.Runs(at.with_suffix(".json")).get(key, draw)
            drawn = [[Figures(*row) for row in rows] for rows in kept["drawn"]]
            cells.append(Cell(drawn, [Figures(*row) for row in kept["true"]], kept["seed_wait_s"]))
            facts[name][f"{path.name}, {form}"] = summary(cells[-1:])
            print(f"{name}, {path.name}, {form}: {summary(cells[-1:])}", flush=True)
        facts[name]["all"] = summary(cells) | {"tensors_sha256": tensors}
        print(f"{name}, all cells: {facts[name]['all']}", flush=True)
        best[name] = rank(facts[name]["all"])
        write_json(args.out, facts)
    chosen = min(best, key=lambda name: best[name])
    write_json(args.out, facts | {"chosen": chosen})
    print(f"{args.out}: all figures; the rule of choice takes {chosen}")


def write(bundle: Path, sampling: Sampling) -> None:
    """Writes the filters into the bundle's header. Raises UserError if they are left to the bundle."""
    if sampling.top_p == AUTO:
        raise UserError("--write: give the filters, as in sampler.top_p=null sampler.min_p=0.02")
    filters = {name: getattr(sampling, name) for name in OWN_FILTERS}
    add_notes(bundle, sampler=filters)
    print(f"{bundle}: {', '.join(f'{name}={value}' for name, value in filters.items())}")


def run() -> None:
    parser = options(__doc__, "split", "out", out=Path("outputs/alive.json"))
    parser.add_argument("--stores", type=Path, nargs="+", default=[Path("outputs/stores/maestro")])
    parser.add_argument("--bundles", nargs="+", default=["piano"])
    parser.add_argument("--ways", choices=("default", "all"), default="default", help="all: each remedy alone, too")
    parser.add_argument("--pieces", type=int, default=40, help="of each store")
    parser.add_argument("--draws", type=int, default=3, help="continuations of each seed")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each continuation")
    parser.add_argument("--copies", action="store_true", help="look for copies of all training pieces")
    parser.add_argument("--write", action="store_true", help="write these filters into the bundles' headers")
    args, words = asked(parser)
    if args.write:
        for bundle in args.bundles:
            write(bundle_path(bundle), settings("generate", "seed_midi=null", "out=x", *words).sampler)
    else:
        study(args, words)


if __name__ == "__main__":
    with in_one_line():
        run()
