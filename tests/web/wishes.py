"""What tests ask the studio for, without a page."""

HYMN = "Old Hundredth, in four voices"


def quiet(*told):
    """Hears how far it has come, and tells nobody."""
