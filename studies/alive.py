"""What a person meets: whole pieces, their ends and their beginnings, continued by the defaults of `musictx generate`.

    python data_prep/maestro.py path=maestro-v3.0.0-midi.zip out=outputs/stores/maestro
    python data_prep/pop909.py path=pop909.zip out=outputs/stores/pop
    python studies/alive.py --stores outputs/stores/maestro outputs/stores/pop
    python studies/alive.py --stores outputs/stores/maestro --bundles piano new.safetensors    # two models
    python studies/alive.py --midi outputs/quantised      # files as people have them: quantised.py makes a set
    python studies/alive.py --midi outputs/quantised --stores outputs/stores/maestro outputs/stores/pop    # and these
    python studies/alive.py --bundles new.safetensors --write sampler.top_p=null sampler.min_p=0.01

Each cell takes validation pieces in one of four forms. Counted are continuations without a new note for more than 3 s,
notes over 8 s, and notes in the seed's scale. Measured are the pace beside the seed's, and the longest copies of
training music. Beside each figure is that of the composer's continuation, or, where the seed reaches a piece's end, of
its last music before the ending. The net is what `rules.` forbid: how often a wait or a note reached their limit.

The rule of choice (`rank`): fewer continuations that stand still where neither seed nor true music does. If equal,
fewer notes over 8 s. If equal, more continuations between half and twice the pace of their seed. `--bundles` are
compared by it over all cells together. `--write` draws nothing: it writes a copy of a bundle with filters in its
header. Each cell is kept in a file: the same command resumes. Beside it are ten continuations to hear.

`--midi` takes files, and pieces of `--stores` as files: `alive_midi.py` says what is measured there. The rule does
not count them.
"""

import contextlib
import io
from collections.abc import Sequence
from functools import lru_cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import alive_midi
import numpy as np
import timed
from bundles import with_notes
from shared import asked, options

from musictx.analysis.repeats import CorpusIndex
from musictx.commands.generate_settings import continue_request
from musictx.config.app import settings
from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import write_json
from musictx.generate.continuing import begin_with, continue_all
from musictx.generate.open_player import Playing, open_playing
from musictx.generate.primer import Primer
from musictx.generate.requests import Continue, Sampling
from musictx.model.header import OWN_FILTERS
from musictx.model.packaged import bundle_path
from musictx.model.tensors import tensors_hash
from musictx.music.ending import ending_s
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.terminal import say
from musictx.tokenizers.rules import AUTO

OWN = ("seed_midi", "seed_seconds", "seed_from", "length_seconds", "variations", "out", "bundle")  # by form, or options
STILL_S, LONG_S, LENGTH_S = 3.0, 8.0, 30.0
FORMS = {  # of a seed: the settings that a person gives
    "whole": [],
    "last 15 s": ["seed_seconds=15", "seed_from=end"],
    "first 15 s": ["seed_seconds=15"],
    "first 5 s": ["seed_seconds=5"],
}
AT_ONCE_S = 4.0  # a piece whose first notes come later has no beginning of 5 s
SCALE = 7  # pitch classes of a seed's scale: those that sound longest
HEARD = 10  # continuations of a cell that are kept as MIDI


def waits_s(music: Score, length_s: float) -> np.ndarray:
    """The times without a new note, from time 0 to the end of the length."""
    return np.diff(np.concatenate([[0.0], np.unique(music.onset_s), [length_s]]))


def in_scale(seed: Score, music: Score) -> float:
    """The share of notes in the pitch classes that sound longest in the seed."""
    heard = np.bincount(seed.pitch % 12, weights=seed.offset_s - seed.onset_s, minlength=12)
    scale = [k for k in np.argsort(-heard, kind="stable")[:SCALE] if heard[k]]
    return float(np.isin(music.pitch % 12, scale).mean()) if len(music) else 0.0


def measure(seed: Score, music: Score, limits_s: tuple[float, float], known: CorpusIndex | None) -> dict[str, Any]:
    """The figures of `LENGTH_S` of music (from time 0) after a seed. `limits_s`: the net's, on waits and on notes."""
    wait_s, held_s = waits_s(music, LENGTH_S), music.offset_s - music.onset_s
    return {
        "wait_s": float(wait_s.max()),  # the longest
        "notes": len(music),
        "long": int((held_s > LONG_S).sum()),
        "pace": len(music) / LENGTH_S / (len(seed) / max(seed.duration_s, 1e-9)),  # as a share of the seed's
        "in scale": in_scale(seed, music),
        "copied": known.longest_copy(music).notes if known else 0,  # notes of a run that a training piece has too
        "net, waits": int((wait_s[:-1] > limits_s[0] - 0.02).sum()),  # that reached their limit
        "net, notes": int((held_s > limits_s[1] - 0.02).sum()),
    }


def true_music(piece: Score, form: str, seed: Score, seed_s: float) -> tuple[Score, Score]:
    """What was heard before the composer's music, and that music: a beginning and what follows, or all up to the last
    music before a piece's ending, and that. Each begins at time 0."""
    begin_s = seed_s if form.startswith("first") else max((ending_s(piece) or piece.duration_s) - LENGTH_S, 0.0)
    before = seed if form.startswith("first") else piece.clip(0.0, begin_s)
    return before, piece.clip(begin_s, begin_s + LENGTH_S)


def cell(
    form: str, pieces: Sequence[Score], opened: Playing, request: Continue, corpus: Path | None, folder: Path
) -> list[dict[str, Any]]:
    """One store and one form of seeds, seed by seed: what was drawn, the true music, and the longest wait of the seed.
    Copies are looked for in the training music of `corpus`. The first continuations lie in the folder."""
    known = training_of(corpus, opened.header.tokenizer) if corpus else None
    with contextlib.redirect_stdout(io.StringIO()):  # what each seed's line says is the same for all
        beginnings = [begin_with(piece, opened.tokenizer, request) for piece in pieces]
    made = continue_all(beginnings, opened.player, opened.tokenizer, request, own=opened.header.sampling)
    found = []
    for k, (piece, beginning, musics) in enumerate(zip(pieces, beginnings, made, strict=True)):
        assert isinstance(beginning.primer, Primer)
        seed, end_s = beginning.primer.score, beginning.primer.end_s
        own = waits_s(seed, seed.duration_s)[1:-1]
        limits_s = request.rules.still_s(own), request.rules.note_s(seed.offset_s - seed.onset_s)
        new = [music.score.clip(music.new_from_s, music.new_from_s + LENGTH_S) for music in musics]
        drawn = [measure(seed, each, limits_s, known) for each in new]
        true = measure(*true_music(piece, form, seed, end_s), (np.inf, np.inf), known)
        found.append({"drawn": drawn, "true": true, "seed_wait_s": float(own.max(initial=0.0))})
        if k < HEARD:
            write_midi(musics[0].score, folder / f"{k + 1}.mid")
    return found


@lru_cache(1)
def training_of(path: Path, tokenizer: str) -> CorpusIndex:
    store = Store(path, tokenizer)
    return CorpusIndex([store.tokenizer.decode(np.asarray(ids)) for ids in store.split("train")])


def summary(seeds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of all seeds together. Stuck are continuations that wait where neither seed nor true music does."""
    rows = [row for seed in seeds for row in seed["drawn"]]
    quiet_s = [max(seed["true"]["wait_s"], seed["seed_wait_s"]) for seed in seeds for _ in seed["drawn"]]
    stuck = sum(row["wait_s"] > STILL_S >= wait_s for row, wait_s in zip(rows, quiet_s, strict=True))
    found: dict[str, Any] = {"continuations": len(rows), "stuck": stuck}
    for who, each in (("drawn", rows), ("true", [seed["true"] for seed in seeds])):
        found[who] = {
            "still 3 s": sum(row["wait_s"] > STILL_S for row in each),
            "notes": sum(row["notes"] for row in each),
            "over 8 s": sum(row["long"] for row in each),
            "half to twice the pace": round(float(np.mean([0.5 <= row["pace"] <= 2 for row in each])), 3),
            "in scale": round(float(np.mean([row["in scale"] for row in each])), 3),
            "copied of training": float(np.median([row["copied"] for row in each])),
            "most copied of training": max(row["copied"] for row in each),
        }
    return found | {net: sum(row[net] for row in rows) for net in ("net, waits", "net, notes")}


def rank(found: dict[str, Any]) -> tuple[float, ...]:
    """The rule of choice: of two summaries the lower rank is better."""
    drawn = found["drawn"]
    return found["stuck"], drawn["over 8 s"] / max(drawn["notes"], 1), -drawn["half to twice the pace"]


def choose_pieces(store: Store, pieces: int, apart: bool = False) -> list[Score]:
    """Validation pieces that are long enough and begin at once, spread over the split; apart from these, others. Raises
    UserError for fewer than two."""
    scores = [store.tokenizer.decode(np.asarray(ids)) for ids in store.split("validation") if len(ids)]
    longer_s = LENGTH_S + 20
    long = [score for score in scores if score.duration_s > longer_s and len(score.clip(0.0, AT_ONCE_S)) > 1]
    if len(long) < 2:
        raise UserError(f"{store.path}: {len(long)} validation pieces are longer than {longer_s:g} s: give more music")
    chosen = spread(len(long), pieces)
    if apart:
        others = np.setdiff1d(np.arange(len(long)), chosen)
        chosen = others[spread(len(others), pieces)]
    return [long[i] for i in chosen]


def spread(length: int, most: int) -> np.ndarray:
    """So many places of a list, from its first to its last."""
    return np.unique(np.linspace(0, length - 1, min(most, length)).round().astype(int))


def as_files(path: Path, opened: Playing, args: Any) -> Path:
    """A folder with pieces of a store, which are a kind of files."""
    folder: Path = args.out / "pieces" / f"{path.name}-{args.pieces}{'-apart' if args.apart else ''}"
    for k, piece in enumerate(choose_pieces(Store(path, opened.header.tokenizer), args.pieces, args.apart), 1):
        if not (file := folder / f"{path.name}-{k:02}.mid").exists():
            write_midi(piece, file)
    return folder


def study(args: Any, words: list[str]) -> None:
    """Draws all cells of each model, and names the best."""
    facts: dict[str, Any] = {"split": "validation", "seconds": LENGTH_S, "draws": args.draws, "random_seed": 0}
    best: dict[str, tuple[float, ...]] = {}
    extra, words = words, [f"length_seconds={LENGTH_S}", f"variations={args.draws}", *words]
    for given in args.bundles:
        bundle = bundle_path(given)
        opened, tensors, of = open_playing(bundle), tensors_hash(bundle), given.replace("/", "-")
        name, seeds = f"{given}, default", list[dict[str, Any]]()  # all settings that are not given
        facts[name] = {}
        if args.midi:
            folders = [args.midi, *(as_files(path, opened, args) for path in args.stores or [])]
            facts[name][args.midi.name] = alive_midi.study_files(folders, opened, tensors, args.out / of, args, extra)
            write_json(args.out / "alive.json", facts)
        for path, (form, form_words) in product(stores_of(args), FORMS.items()):
            store = Store(path, opened.header.tokenizer)
            request = continue_request(settings("generate", "seed_midi=null", "out=x", *form_words, *words))
            at = args.out / of / f"{path.name}-{form.replace(' ', '-')}"
            how = store.manifest.splits["validation"].sha256, args.pieces, args.copies, opened.header.sampling, request
            corpus = path if args.copies else None
            draw = partial(cell, form, choose_pieces(store, args.pieces), opened, request, corpus, at)
            kept = timed.Runs(at.with_suffix(".json")).get(f"{tensors} {how}", draw)
            seeds += kept
            facts[name][f"{path.name}, {form}"] = summary(kept)
            say(f"{name}, {path.name}, {form}: {summary(kept)}", flush=True)
        if not seeds:
            continue
        facts[name]["all"] = summary(seeds) | {"tensors_sha256": tensors}
        best[name] = rank(facts[name]["all"])
        facts["chosen"] = min(best, key=lambda name: best[name])
        write_json(args.out / "alive.json", facts)
    chosen = f"; the rule of choice takes {facts['chosen']}" if best else ""
    say(f"{args.out / 'alive.json'}: all figures{chosen}")


def stores_of(args: Any) -> list[Path]:
    """Those that are given, or MAESTRO's; none where they are kinds of files."""
    return [] if args.midi else args.stores or [Path("outputs/stores/maestro")]


def write(args: Any, words: list[str]) -> None:
    """Copies each bundle, with the filters in its header. Raises UserError if they are left to the bundle, and for
    settings that no header has."""
    if other := [word for word in words if word.partition("=")[0] not in [f"sampler.{name}" for name in OWN_FILTERS]]:
        raise UserError(f"--write: a header has no {other[0]}", "give sampler.top_p= and sampler.min_p= alone")
    sampling: Sampling = settings("generate", "seed_midi=null", "out=x", *words).sampler
    if sampling.top_p == AUTO:
        raise UserError("--write: give the filters, as in sampler.top_p=null sampler.min_p=0.02")
    for path in map(bundle_path, args.bundles):
        with_notes(path, args.out / path.name, sampler={name: getattr(sampling, name) for name in OWN_FILTERS})


def main() -> None:
    parser = options(__doc__, "out", out=Path("outputs/alive"))
    parser.add_argument("--stores", type=Path, nargs="+", help="default without --midi: outputs/stores/maestro")
    parser.add_argument("--midi", type=Path, help="a folder of MIDI files")
    parser.add_argument("--forms", nargs="+", choices=[*alive_midi.FORMS], help="of the seeds of files; default: all")
    parser.add_argument("--length", type=float, default=15.0, help="seconds of new music after seeds of files")
    parser.add_argument("--bundles", nargs="+", default=["piano"])
    parser.add_argument(
        "--apart", action="store_true", help="with --midi: pieces of stores that no run takes without it"
    )
    parser.add_argument("--pieces", type=int, default=40, help="of each store, and of each kind of files")
    parser.add_argument("--draws", type=int, default=3, help="continuations of each seed")
    either = parser.add_mutually_exclusive_group()
    either.add_argument("--copies", action="store_true", help="look for copies of all training pieces")
    either.add_argument("--write", action="store_true", help="copy the bundles, with these filters in their headers")
    args, words = asked(parser, *OWN)
    (write if args.write else study)(args, words)


if __name__ == "__main__":
    with in_one_line():
        main()
