"""The score of a step as a picture and as MusicXML, made in a reader process within limits."""

import re
from collections.abc import Collection
from contextlib import suppress
from typing import Any, NamedTuple, cast

from musictx.config.web import Limits
from musictx.data.parallel.sandbox import FileLimits
from musictx.errors import UserError
from musictx.music.notation.kept import with_kept
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.write import to_musicxml
from musictx.viz.engraving import pages_of
from musictx.web.advice import page_clauses
from musictx.web.session import Step
from musictx.web.uploads import AT_ONCE, READERS

ENGRAVING_S = 30.0  # at most, the import of its libraries too
NARROW = 1250  # tenths of a millimetre: notes can be read beside a roll, and on a phone
IN_COLOUR = ' color="#b3541e" fill="#b3541e"'  # a darker one of the rolls' colours
MEASURE, GROUP = re.compile(r'<g [^>]*class="measure"'), re.compile(r'<g [^>]*class="(measure|staff)"')
Place = tuple[int, int]  # a staff from the top, and a bar, both from 0
TOP = re.compile(r'<path d="M\d+ (\d+)')  # the highest line of a staff
HEIGHT = re.compile(r'viewBox="0 0 \d+ ([1-9]\d*)"')
RESTS = re.compile(rb"(?s)<multiple-rest\b.*?</multiple-rest>")  # many bars as one


class Engraved(NamedTuple):
    """A score for the page; without `svg` or `musicxml` the remark says why."""

    musicxml: bytes = b""
    svg: str = ""
    remark: str = ""
    new_at: float = 0.0  # how far down its height new bars begin


def engrave_step(step: Step, limits: Limits) -> Engraved | None:
    """The score of a step, its new bars in colour; None if it has no score."""
    if step.notation is None:
        return None
    with AT_ONCE:
        engraved = engrave_apart(step.notation, step.name, step.new_places, limits)
    if isinstance(engraved, str):
        return Engraved(remark=f"The score is not shown: it {page_clauses(engraved)}.")
    return engraved


def engrave_apart(notation: Notation, title: str, new: Collection[Place], limits: Limits) -> Engraved | str:
    """The score, or why there is none. Raises UserError where no reader starts."""
    of_reader = FileLimits(ENGRAVING_S, limits.memory_mb)
    return cast(Engraved | str, READERS.read(cast(Any, engrave), of_reader, notation, title, new))


def warm_up(limits: Limits) -> None:
    """Starts a reader, whose libraries take seconds to import, so that the first score need not wait."""
    with suppress(UserError):  # a person's own score will say it
        engrave_apart(Notation((Part("", 0, (Note(0, 24, 60),)),), (Bar(0, 1, 4),), 24), "", (), limits)


def engrave(notation: Notation, title: str, new: Collection[Place]) -> Engraved:
    """The score with the new places in colour; runs in a reader."""
    musicxml = b""
    try:
        notation = notation.on_given_staves()
        musicxml = with_kept(to_musicxml(notation, title)[0], notation)
        (svg,) = pages_of(RESTS.sub(b"", musicxml), is_long=True, width=NARROW, titled=False)
    except UserError as error:
        return Engraved(musicxml, remark=f"The score is not shown: {error}.")
    return Engraved(musicxml, coloured(svg, new), new_at=where(svg, min((bar for _, bar in new), default=0)))


def where(svg: str, bar: int) -> float:
    """How far down the picture a bar is, as a share of its height."""
    begins, heights = [each.start() for each in MEASURE.finditer(svg)], HEIGHT.findall(svg)
    top = TOP.search(svg, begins[bar]) if bar < len(begins) else None
    return min(int(top[1]) / int(heights[-1]), 1.0) if top and heights else 0.0


def coloured(svg: str, new: Collection[Place]) -> str:
    """The picture with staves of its bars in colour."""
    bar = staff = -1

    def begin(group: re.Match[str]) -> str:
        nonlocal bar, staff
        bar, staff = (bar + 1, -1) if group[1] == "measure" else (bar, staff + 1)
        return group[0] + IN_COLOUR * (group[1] == "staff" and (staff, bar) in new)

    return GROUP.sub(begin, svg)
