"""What a browser sends as a phrase that was played."""

import pytest

from musictx.errors import UserError
from musictx.web.session import read_phrase


def test_time_begins_with_the_first_note():
    music = read_phrase([[103.5, 103.6, 64, 90], [103.0, 103.5, 60, 80.4], [104, 104, 300, 0]])
    assert music.score.onset_s.tolist() == [0, 0.5, 1]
    assert music.score.pitch.tolist() == [60, 64, 127]
    assert music.score.velocity.tolist() == [80, 90, 1]
    assert music.score.duration_s == pytest.approx(1.03)


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        ([], "nothing was played"),
        ([[0, 1, 60]], "not music"),
        ([[0, 1, "60", 80]], "not music"),
        ([[0, float("nan"), 60, 80]], "not music"),
        ([[0, 10**400, 60, 80]], "not music"),
        ({"0": 1}, "nothing was played"),
        ([[0, 1, 60, 80]] * 2001, "2001 notes were played"),
        ([[0, 500, 60, 80]], "500 s were played: play at most 120 s"),
    ],
)
def test_anything_else_is_refused(notes, reason):
    with pytest.raises(UserError, match=reason):
        read_phrase(notes)
