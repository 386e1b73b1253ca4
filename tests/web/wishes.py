"""What tests ask the studio for, without a page."""

from typing import Any

from musictx.generate.primer import Part
from musictx.generate.requests import Continue, Fill, Length
from musictx.web.draw import for_hands, request_settings, voices_request
from musictx.web.session import Session, Step

HYMN = "Old Hundredth, in four voices"


USUAL = {"seed_guidance": "auto", "temperature": 1.0, "variations": 2, "chords": "", "key": ""}
MORE: dict[str, Any] = USUAL | {"top_p": "auto", "guard": True, "density": 0, "lowest": 0, "highest": 127}
VOICES: dict[str, Any] = USUAL | {"voices": "S"}


def more(from_s=2.4, length_s=4.0, **moved):
    """A continuation, with sliders that a person has moved."""
    return Continue(part=Part(until_s=from_s), length=Length(length_s), **request_settings(**MORE | moved))


def region(from_s, to_s, **moved):
    """The same of a region to fill."""
    return Fill(from_s=from_s, to_s=to_s, **request_settings(**MORE | moved))


def voices(**moved):
    """The same of voices around a melody."""
    return voices_request(**VOICES | moved)


def hands(**moved):
    """The same of hands below a tune."""
    return for_hands(voices(**moved))


def now(session: Session) -> Step:
    """What the person hears and sees; there is something."""
    assert session.now is not None
    return session.now


def quiet(*said):
    """Hears how far it has come, and reports to no one."""
