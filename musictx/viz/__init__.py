"""Turns Scores into pictures, films and sound files."""

from collections.abc import Sequence
from pathlib import Path

from musictx.errors import UserError


def check_suffix(path: Path, formats: Sequence[str]) -> None:
    """Raises UserError for a name with another suffix."""
    if path.suffix.lower() not in formats:
        raise UserError(str(path), f"give a name that ends in {' or '.join(formats)}")
