"""Actions under way, so that the end of the server can wait for them: they write files, and are in threads."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Condition

from musictx.errors import UserError

ENDS = "the server ends just now"


class Work:
    """Counts actions. `ending` tells long ones to come to an end."""

    def __init__(self) -> None:
        self.ending = False
        self._under_way, self._changed = 0, Condition()

    @contextmanager
    def action(self) -> Iterator[None]:
        """The time of one action. Raises UserError when the end has come."""
        with self._changed:
            if self.ending:
                raise UserError(ENDS)
            self._under_way += 1
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Returns when nothing is under way any more."""
        self.ending = True
        with self._changed:
            self._changed.wait_for(lambda: not self._under_way)
