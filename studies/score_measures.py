"""What a model of scores can do, on held-out works: likelihood, continuations, fills, what a tune says, first touch.

    OMP_NUM_THREADS=1 python studies/score_measures.py --store outputs/score_music/store
    OMP_NUM_THREADS=1 python studies/score_measures.py --store outputs/score_music/store --only fills hands --seeds 16
    OMP_NUM_THREADS=1 python studies/score_measures.py --store outputs/score_music/store --only likelihood --test

`score_music.py` makes the store. Works are of its validation split, taken evenly from the corpora. All music is drawn
once, by the defaults of the commands, with one random seed. Each work's row is kept in a file of its part, so the same
command resumes; the files to hear lie beside it. Intervals are by work. These are the rules, each with three ways in
which set-up alone could make its figure:

likelihood: nats a note and a bar of all works; `--test` reads the test split too. 1. Music of the training split would
  be known: a held-out piece that is a near-duplicate of one there is an error. 2. Windows cut off the past: each id has
  at least half a window before it, or all. 3. A wrong unit would flatter: unigrams stand in the same one.
continuations: 8 bars after a seed of 8, by the score model, the piano, the composers, and the seed's own bars again.
  1. The score model's ids have no other places: written files are measured. 2. The piano could lose by another task:
  it hears the same file, and begins at the same bar line, for as long. 3. Any music in the seed's key and texture would
  do well: so would the seed's bars again.
fills: one bar in every other work, two in the others, of all parts; leaps at its borders, and the nats of each part's
  first note in the bar after it. 1. A model likes its own notes: the same model draws these bars without what follows,
  too. 2. Any notes could be better than none: bars of silence are scored, and leaps go across them. 3. What follows may
  be easy after all: the composers' bars come first.
tune: nats of all parts but the tune, which is a bar ahead or left out; the same ids count. 1. A tune takes room in the
  window: the whole excerpt fits in one with it. 2. Without a tune a song is unlike all that was learned: the tune of
  other bars, as many ids, stands beside it. 3. Introductions have none: an excerpt begins with the tune.
hands: hands drawn for 16 bars of a tune. Dissonant is a tune 1, 2, 6, 10 or 11 semitones above the bass, without
  octaves. 1. More notes clash more: only the lowest hand counts. 2. Silence never clashes: only time with both counts.
  3. A shared key is half of it: another song's hands stand beside it, in this key, meter and mode.
touch: whole files, and their first and last 8 bars. Stuck is a wait of over 3 s for a note. 1. Music may rest: the seed
  has no such wait. 2. Composers repeat bars: how often the seed's own come again at once stands beside it. 3. A file
  that is refused or stays silent would do nothing wrong: both are counted. The third of the onsets that makes a bar an
  ending was taken from a quarter, a third and a half, by how often it finds one in whole pieces of this split and not
  in cut ones. 4. Files may go on at their pace without it: each whole file goes on with its ending heard, too.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import score_tables
import timed
from score_drawn import ScoreModel, continued, filled, has_gap, touched
from score_nats import Row, likelihood
from score_tables import Table, markdown
from score_tunes import Song, accompanied, accompaniment
from score_works import SCORE, Work, check_apart, choose, goes_on, works_of
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.data.similar import SAME
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import replacing, write_json
from musictx.generate.open_bundle import open_bundle
from musictx.generate.open_player import open_playing
from musictx.model.packaged import bundle_path
from musictx.model.tensors import tensors_hash
from musictx.system import processor
from musictx.terminal import say
from musictx.waiting import estimated

PARTS = ("likelihood", "continuations", "fills", "tune", "hands", "touch")
SEEDS, FILES = 64, 48  # all parts take about a quarter of an hour of one core
Tables = Callable[[Sequence[Row]], list[Table]]


class Study:
    """The models, the held-out works, and where rows are kept."""

    def __init__(self, args: Any) -> None:
        self.out, self.store = args.out, Store(args.store, SCORE.name)
        self.bundle, self.beside = bundle_path(args.bundle), bundle_path(args.piano)
        self.hashes = {name: tensors_hash(path) for name, path in (("score", self.bundle), ("piano", self.beside))}
        self.score, self.piano = ScoreModel.open(self.bundle), open_playing(self.beside)
        self.model = open_bundle(self.bundle).model  # exact weights, to score
        self.seeds, self.files, self.scored = args.seeds, args.files, args.scored
        self.alike = dict[str, float]()  # of each split that was read, to the nearest training piece
        self.works = self.held_out("validation")

    def held_out(self, split: str) -> list[Work]:
        """Raises StoreError for works that the training split has too."""
        self.alike[split] = check_apart(self.store, split)
        return works_of(self.store.split(split))

    def rows(
        self, name: str, works: Sequence[Work], make: Callable[[Work], Any], split: str = "validation"
    ) -> list[Row]:
        """The row of each work that has one, made or kept."""
        runs, of = timed.Runs(self.out / f"{name}.json"), self.store.manifest.splits[split].sha256[:16]
        tensors = " ".join(each[:16] for each in self.hashes.values())

        def row(work: Work) -> Row:
            began, found = process_time(), make(work)
            about = {"corpus": work.corpus, "processor": str(processor()), "cpu_s": round(process_time() - began, 2)}
            return {"work": work.name, **about, "found": found}

        done = list[Row]()
        for work in estimated(works, f"{name}: {len(works)} works"):
            done.append(runs.get(f"{tensors} {of} {work.name}", partial(row, work)))
        return [each for each in done if each["found"]]

    def likelihood(self, split: str = "validation") -> list[Row]:
        trained = self.store.split("train").ids
        works = self.works if split == "validation" else self.held_out(split)
        works = choose(works, self.scored or len(works), lambda work: True)
        return self.rows(f"likelihood-{split}", works, lambda work: likelihood(self.model, work, trained), split)

    def continuations(self) -> list[Row]:
        works, at = choose(self.works, self.seeds, goes_on), self.out / "continuations"
        return self.rows("continuations", works, lambda work: continued(work, self.score, self.piano, at))

    def fills(self) -> list[Row]:
        works, at = choose(self.works, self.seeds, has_gap), self.out / "fills"
        bars = {work.name: 1 + n % 2 for n, work in enumerate(works)}
        return self.rows("fills", works, lambda work: filled(work, bars[work.name], self.score, self.model, at))

    def tune(self) -> list[Row]:
        songs = choose(self.works, self.scored or len(self.works), lambda work: work.is_song)
        return self.rows("tune", songs, lambda work: accompaniment(self.model, work))

    def hands(self) -> list[Row]:
        songs = {work.name: Song.of(work) for work in self.works if work.is_song or work.is_tune}
        names = list(songs)

        def found(work: Work) -> dict[str, Row]:
            n = names.index(work.name)
            others = [songs[name] for name in (*names[n + 1 :], *names[:n])]
            return accompanied(songs[work.name], others, self.score, self.out / "hands")

        works = choose(self.works, self.seeds, lambda work: work.name in songs and songs[work.name].can_be_asked)
        return self.rows("hands", works, found)

    def touch(self) -> list[Row]:
        works, at = choose(self.works, self.files, goes_on), self.out / "touch"
        return self.rows("touch", works, lambda work: touched(work, self.score, at))


def main() -> None:
    parser = options(__doc__, "store", "out", "test", out=Path("outputs/score_measures"))
    parser.set_defaults(store=Path("outputs/score_music/store"))
    parser.add_argument("--bundle", default="score", help="a model of scores; default: %(default)s")
    parser.add_argument("--piano", default="piano", help="the model beside it; default: %(default)s")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="default: all")
    parser.add_argument("--seeds", type=int, default=SEEDS, help="works to continue, to fill, and songs for hands")
    parser.add_argument("--files", type=int, default=FILES, help="works of the first touch")
    parser.add_argument("--scored", type=int, help="works of the likelihood, and songs of tune; default: all")
    args = parser.parse_args()
    for name in ("seeds", "files", "scored"):
        if (most := getattr(args, name)) is not None and most < 1:
            raise UserError(f"--{name} {most}", "give 1 or more")
    study = Study(args)
    facts: Row = {"bundle": args.bundle, "tensors_sha256": study.hashes, "scored": "float32", "drawn": "as commands do"}
    facts |= {"split_sha256": study.store.manifest.splits["validation"].sha256}
    text = list[str]()
    asked = [(part, part, getattr(study, part)) for part in PARTS if part in args.only]
    if args.test and "likelihood" in args.only:
        asked.append(("likelihood of the test split", "likelihood", partial(study.likelihood, "test")))
    for name, part, rows_of in asked:
        rows = rows_of()
        tables: list[Table] = getattr(score_tables, part)(rows)
        processors = sorted({row["processor"] for row in rows})
        cpu_s = sum(row["cpu_s"] for row in rows)
        facts[name] = {"processors": processors, "cpu_s": round(cpu_s), "tables": dict(tables)}
        text.append(f"## {name}\n\n{'; '.join(processors)}; {cpu_s:.0f} s of one core\n")
        text += [f"{markdown(table)}\n" for table in tables]
    facts["likeness to training pieces, at most"] = study.alike
    hashes = ", ".join(f"{name} {sha256[:16]}" for name, sha256 in study.hashes.items())
    alike = ", ".join(f"{split} {most:.2f} of {SAME}" for split, most in study.alike.items())
    head = f"# Measures of {args.bundle}\n\ntensors: {hashes}; most alike a training piece: {alike}\n"
    page = "\n".join([head, *text])
    with replacing(args.out / "measures.md") as partly:
        partly.write_text(page, encoding="utf-8")
    write_json(args.out / "measures.json", facts)
    say(page)


if __name__ == "__main__":
    with in_one_line():
        main()
