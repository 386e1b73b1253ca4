"""What a person meets: whole pieces, their ends and their beginnings, continued by the defaults of `musictx generate`.

    python data_prep/maestro.py path=maestro-v3.0.0-midi.zip out=outputs/stores/maestro
    python data_prep/pop909.py path=pop909.zip out=outputs/stores/pop
    python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop
    python studies/alive.py --stores outputs/stores/maestro --ways all                     # each remedy alone
    python studies/alive.py --stores outputs/stores/maestro --bundles piano new.safetensors    # two models
    python studies/alive.py --bundles new.safetensors --write sampler.top_p=null sampler.min_p=0.01

Each cell takes held-out pieces in one of four forms. It counts continuations without a new note for more than 3 and
5 s, notes over 8 s, the pace beside that of the seed, notes in the seed's scale, motifs that return, and the longest
copies of the seed and of training music. Beside each figure is that of true music: the composer's continuation, or,
where the seed reaches the end of a piece, its last music before the ending. The net is what `rules.` forbid: how often
a wait or a note reached their limit.

The rule of choice (`better`): fewer continuations that stand still where neither seed nor true music does. If equal,
fewer notes over 8 s. If equal, more continuations between half and twice the pace of their seed. `--bundles` and
`--ways` are compared by it over all cells together. `--write` draws nothing: it writes filters into a bundle's header.
Each cell is kept in a file: the same command resumes, and processes with one store each can share the work.
"""

import argparse
import contextlib
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from musictx.analysis.motif import held_in, retention
from musictx.analysis.repeats import CorpusIndex
from musictx.commands.generate import GenerateConfig
from musictx.commands.generate import asked as asked_by
from musictx.config.app import parse_options, settings
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
from musictx.viz.piano_roll import piano_roll

STILL_S, VERY_STILL_S, LONG_S = 3.0, 5.0, 8.0
SHOWN_S = 15.0  # of a seed, on a roll
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


class Figures(NamedTuple):
    """The figures of one continuation, or of the true music."""

    wait_s: float  # the longest time without a new note
    notes: int
    long: int  # notes over 8 s
    pace: float  # notes a second, as a share of the seed's
    in_scale: float
    copied: int  # notes of the longest run that the seed has too
    learned: int  # … that a training piece has; 0 if it was not asked
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
    own_pace = len(seed) / max(seed.duration_s, 1e-9)
    copied = CorpusIndex([seed]).longest_copy(music).notes if len(seed) > 1 else 0
    return Figures(
        float(wait_s.max()),
        len(music),
        int((held_s > LONG_S).sum()),
        len(music) / length_s / own_pace,
        in_scale(seed, music),
        copied,
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

    name: str
    drawn: list[list[Figures]]  # piece by piece
    true: list[Figures]
    seed_wait_s: list[float]
    retention: list[float] | None  # of beginnings: mean, low, high

    def stuck(self) -> int:
        """Continuations that stand still where neither the seed nor the true music does."""
        return sum(
            row.still and not true.still and wait_s <= STILL_S
            for rows, true, wait_s in zip(self.drawn, self.true, self.seed_wait_s, strict=True)
            for row in rows
        )


def cell(
    name: str, form: str, pieces: Sequence[Score], opened: Opened, request: Continue, known: CorpusIndex | None
) -> tuple[Cell, list[tuple[str, Score, float]]]:
    """Draws and measures a cell; and the first rolls of it."""
    length_s = request.length.seconds or 30.0
    with contextlib.redirect_stdout(io.StringIO()):  # what each seed's line says is the same for all
        beginnings = [begin_with(piece, opened.tokenizer, request) for piece in pieces]
    made = continue_all(beginnings, opened.model, opened.tokenizer, request, own=opened.header.sampling)
    drawn, true, seed_waits, first = [], [], [], []
    panels: list[tuple[str, Score, float]] = []
    for piece, beginning, musics in zip(pieces, beginnings, made, strict=True):
        assert beginning.primer is not None
        seed = beginning.primer.score
        own = waits_s(seed, seed.duration_s)[1:-1]
        limits = request.rules.still_s(own), request.rules.note_s(seed.offset_s - seed.onset_s)
        new = [music.score.clip(music.new_from_s, music.new_from_s + length_s) for music in musics]
        drawn.append([measure(seed, each, length_s, limits, known) for each in new])
        before, after = true_music(piece, form, seed, beginning.primer.end_s, length_s)
        true.append(measure(before, after, length_s, (np.inf, np.inf), known))
        seed_waits.append(float(own.max(initial=0.0)))
        first.append((seed, new[0], after))
        end_s = beginning.primer.end_s
        shown = musics[0].score.clip(max(end_s - SHOWN_S, 0.0), np.inf)
        panels.append((f"{name} {len(panels) + 1}", shown, min(end_s, SHOWN_S)))
    kept = None
    if form.startswith("first"):
        seeds, generated, real = zip(*first, strict=True)
        with contextlib.suppress(UserError):  # too few pieces for a scale
            curve = retention(seeds, generated, real, held_in(False), length_s, length_s)
            kept = [float(x[0]) for x in (curve.mean, curve.low, curve.high)]
    return Cell(name, drawn, true, seed_waits, kept), panels


def summary(cells: Sequence[Cell]) -> dict[str, Any]:
    """The figures of several cells together."""
    rows, true = [r for c in cells for rows in c.drawn for r in rows], [r for c in cells for r in c.true]
    found: dict[str, Any] = {"continuations": len(rows), "stuck": sum(c.stuck() for c in cells)}
    for who, each in (("drawn", rows), ("true", true)):
        found[who] = {
            "still 3 s": sum(r.still for r in each),
            "still 5 s": sum(r.wait_s > VERY_STILL_S for r in each),
            "notes": sum(r.notes for r in each),
            "over 8 s": sum(r.long for r in each),
            "half to twice the pace": round(float(np.mean([0.5 <= r.pace <= 2 for r in each])), 3),
            "in scale": round(float(np.mean([r.in_scale for r in each])), 3),
            "copied of the seed": float(np.median([r.copied for r in each])),
            "copied of training": float(np.median([r.learned for r in each])),
            "most copied of training": max(r.learned for r in each),
        }
    touched = {"net, waits": sum(r.net_waits for r in rows), "net, notes": sum(r.net_notes for r in rows)}
    return found | touched | {"retention": [c.retention for c in cells if c.retention]}


def better(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """The rule of choice: whether the first summary is better than the second."""

    def key(found: dict[str, Any]) -> tuple[float, ...]:
        drawn = found["drawn"]
        return found["stuck"], drawn["over 8 s"] / max(drawn["notes"], 1), -drawn["half to twice the pace"]

    return key(one) < key(other)


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
    ways = WAYS if args.ways == "all" else {"default": []}
    facts: dict[str, Any] = {"split": args.split, "seconds": args.seconds, "draws": args.draws, "random_seed": 0}
    best: tuple[str, dict[str, Any]] | None = None
    for bundle in args.bundles:
        opened = open_bundle(bundle_path(bundle))
        stores = [Store(path, opened.header.tokenizer) for path in args.stores]
        own, model = (
            GenerateConfig(out="x", bundle=bundle),
            f"{tensors_hash(bundle_path(bundle))} {opened.header.sampling}",
        )
        opened = opened._replace(model=for_steps(opened.model, choose_weights(own.weights, opened.model)))
        for way, way_words in ways.items():
            cells, name = [], f"{Path(bundle).name}, {way}"
            for store, path in zip(stores, args.stores, strict=True):
                known = None
                pieces = choose_pieces(store, args.split, args.pieces, args.seconds + 20)
                for form, form_words in FORMS.items():
                    own_words = [word for word in way_words if word not in KEPT or not form.startswith("first")]
                    asked = [*form_words, *own_words, f"length_seconds={args.seconds}", f"variations={args.draws}"]
                    request = asked_by(settings("generate", "seed_midi=null", "out=x", *asked, *words))
                    folder = args.out.with_suffix("") / name.replace(", ", "-").replace(" ", "-")
                    at = folder / f"{path.name}-{form.replace(' ', '-')}"
                    key = f"{model} {store.manifest.splits[args.split].sha256} {args.pieces} {args.copies} {request}"
                    found = read_cell(at.with_suffix(".json"), key)
                    if found is None:
                        if args.copies and known is None:
                            known = CorpusIndex(
                                [store.tokenizer.decode(np.asarray(ids)) for ids in store.split("train")]
                            )
                        found, panels = cell(f"{path.name}, {form}", form, pieces, opened, request, known)
                        piano_roll(panels[:10], at.with_suffix(".png"), row_s=SHOWN_S + args.seconds)
                        for title, score, _ in panels[:10]:
                            write_midi(score, folder / f"{title.replace(', ', '-').replace(' ', '-')}.mid")
                        write_json(at.with_suffix(".json"), {"of": key, **found._asdict()})
                    cells.append(found)
                    facts.setdefault(name, {})[found.name] = summary([found])
                    print(f"{name}, {found.name}: {summary([found])}", flush=True)
            whole = summary(cells)
            facts[name]["all"] = whole | {"tensors_sha256": tensors_hash(bundle_path(bundle))}
            print(f"{name}, all cells: {whole}", flush=True)
            write_json(args.out, facts)
            if best is None or better(whole, best[1]):
                best = name, whole
    assert best is not None
    write_json(args.out, facts | {"chosen": best[0]})
    print(f"{args.out}: all figures; the rule of choice takes {best[0]}")


def read_cell(path: Path, key: str) -> Cell | None:
    """The cell that `keep` wrote there, if it was drawn for the same key."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if kept.pop("of", None) != key:
        return None
    drawn = [[Figures(*row) for row in rows] for rows in kept["drawn"]]
    return Cell(**kept | {"drawn": drawn, "true": [Figures(*row) for row in kept["true"]]})


def write(bundle: Path, sampling: Sampling) -> None:
    """Writes the filters into the bundle's header. Raises ConfigError if they are left to the bundle."""
    if sampling.top_p == AUTO:
        raise UserError("--write: give the filters, as in sampler.top_p=null sampler.min_p=0.02")
    filters = {name: getattr(sampling, name) for name in OWN_FILTERS}
    add_notes(bundle, sampler=filters)
    print(f"{bundle}: {', '.join(f'{name}={value}' for name, value in filters.items())}")


def run() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", type=Path, nargs="+", default=[Path("outputs/stores/maestro")])
    parser.add_argument("--bundles", nargs="+", default=["piano"])
    parser.add_argument("--ways", choices=("default", "all"), default="default", help="all: each remedy alone, too")
    parser.add_argument("--split", default="validation")
    parser.add_argument("--pieces", type=int, default=40, help="of each store")
    parser.add_argument("--draws", type=int, default=3, help="continuations of each seed")
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each continuation")
    parser.add_argument("--copies", action="store_true", help="look for copies of all training pieces")
    parser.add_argument("--write", action="store_true", help="write these filters into the bundles' headers")
    parser.add_argument("--out", type=Path, default=Path("outputs/alive.json"))
    args, words = parse_options(parser, sys.argv[1:])
    if args.write:
        for bundle in args.bundles:
            write(bundle_path(bundle), settings("generate", "seed_midi=null", "out=x", *words).sampler)
    else:
        study(args, words)


if __name__ == "__main__":
    with in_one_line():
        run()
