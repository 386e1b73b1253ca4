"""What tests ask the studio for, without a page."""

from musictx.web.session import Session, Step

HYMN = "Old Hundredth, in four voices"


def now(session: Session) -> Step:
    """What the person hears and sees; there is something."""
    assert session.now is not None
    return session.now


def quiet(*said):
    """Hears how far it has come, and reports to no one."""
