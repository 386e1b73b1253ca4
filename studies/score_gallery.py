"""Twenty held-out scores with new bars by the score model, engraved, for a person to look at.

    python studies/score_gallery.py --store outputs/score_music/works --out outputs/gallery

Five kinds, four works of each: songs and hymns go on after eight bars, a gap of two bars of music in three quarters is
filled, tunes get two hands, right hands a left one. `choose` takes the works of the validation split before anything is
drawn, evenly by corpus and name. One draw each, by the random seed 0: none is picked. New bars are brown. POP909 is
left out, since nobody can clear its songs. The folder `shown` has the first two of each kind, whatever they are, in few
colours: docs/img/gallery has these.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from PIL import Image
from score_drawn import ScoreModel
from score_works import SEED, Work, choose, goes_on, works_of
from shared import options

from musictx.config.mistakes import in_one_line
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.files import replacing
from musictx.generate.requests import Accompany, Continue, Fill, Length, Request
from musictx.generate.score_music import ScoreMusic
from musictx.model.packaged import bundle_path
from musictx.terminal import say
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import LEFT, RIGHT, TUNE
from musictx.viz.engraving import picture_of
from musictx.waiting import estimated
from musictx.web.engraved import engrave

MOST_BARS, EACH, SHOWN, GAP = 12, 4, 2, 2
WIDTH, COLOURS = 900, 16  # pixels


class Kind(NamedTuple):
    """What is done with works that fit."""

    name: str
    fits: Callable[[Work], bool]
    given: Callable[[Work], Work]
    request: Callable[[Work], Request]


def first_bars(work: Work) -> Work:
    return work.cut(0, work.upbeat + MOST_BARS)


def is_waltz(work: Work) -> bool:
    """Whether two hands alone play in three quarters, before and after the gap."""
    bars = work.notation.bars
    return goes_on(work) and work.slots == (RIGHT, LEFT) and tuple(bars[work.upbeat][1:]) == (3, 4)


def has_tune(work: Work) -> bool:
    """Whether it is a traditional tune, since others are not free in all countries, or has that of a Lied."""
    is_free = work.is_tune and "[Traditional]" in work.name
    return (is_free or (work.is_song and work.corpus == "lieder")) and goes_on(work.only(TUNE))


KINDS = (
    Kind(
        "song",
        lambda work: work.is_song and goes_on(work),
        lambda work: work.cut(0, work.upbeat + SEED),
        lambda work: Continue(length=Length(bars=SEED)),
    ),
    Kind(
        "hymn",
        lambda work: work.corpus == "open-hymnal" and goes_on(work),
        lambda work: work.cut(0, work.upbeat + SEED),
        lambda work: Continue(length=Length(bars=SEED)),
    ),
    Kind("waltz", is_waltz, first_bars, lambda work: Fill(from_bar=6, to_bar=5 + GAP)),
    Kind("tune", has_tune, lambda work: first_bars(work.only(TUNE)), lambda work: Accompany()),
    Kind(
        "left-hand",
        lambda work: work.slots == (RIGHT, LEFT) and goes_on(work) and not is_waltz(work),
        lambda work: first_bars(work.only(RIGHT)),
        lambda work: Accompany(),
    ),
)


def new_places(music: ScoreMusic) -> frozenset[tuple[int, int]]:
    """The staves and bars that are new, from 0."""
    slots = zip(music.notation.given_staves, music.template.slots, strict=True)
    return frozenset((n, bar) for n, slot in slots for drawn, bar in music.template.free if slot == drawn)


def draw(kind: Kind, work: Work, model: ScoreModel, folder: Path) -> dict[str, str]:
    """Writes the picture and the score; what a reader should know of them."""
    file = kind.given(work).write(folder / "given" / work.file_name)
    music = model.draw(model.task(file, kind.request(work)))
    stem = folder / f"{kind.name}-{Path(work.file_name).stem}"
    music.write(stem.with_suffix(".musicxml"))
    engraved = engrave(music.notation, "", new_places(music))
    if not engraved.svg:
        raise UserError(f"{work.name}: {engraved.remark}")
    with replacing(stem.with_suffix(".png")) as partial:
        partial.write_bytes(picture_of(engraved.svg, WIDTH))
    return {"kind": kind.name, "work": work.name, "picture": stem.with_suffix(".png").name}


def main() -> None:
    parser = options(__doc__, "store", "out", out=Path("outputs/gallery"))
    parser.add_argument("--bundle", default="score")
    args = parser.parse_args()
    store, model = Store(args.store, ScoreTokenizer.name), ScoreModel.open(bundle_path(args.bundle))
    works = [work for work in works_of(store.split("validation")) if work.corpus != "POP909"]
    chosen = [(kind, work) for kind in KINDS for work in choose(works, EACH, kind.fits)]
    rows = [draw(kind, work, model, args.out) for kind, work in estimated(chosen, f"drawing {len(chosen)} scores")]
    with replacing(args.out / "gallery.json") as partial:
        partial.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    (shown := args.out / "shown").mkdir(exist_ok=True)
    for kind in KINDS:
        for n, row in enumerate([row for row in rows if row["kind"] == kind.name][:SHOWN], 1):
            small = Image.open(args.out / row["picture"]).convert("RGB").quantize(COLOURS)
            small.save(shown / f"{kind.name}-{n}.png", optimize=True)
    say(f"{args.out}: {len(rows)} scores")


if __name__ == "__main__":
    with in_one_line():
        main()
