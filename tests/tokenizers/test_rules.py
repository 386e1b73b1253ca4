import numpy as np
import pytest

from musictx.errors import ConfigError
from musictx.tokenizers.rules import Rules, scale_classes


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"max_note_s": float("nan")}, "max_note_s"),
        ({"max_note_s": "long"}, "max_note_s"),
        ({"max_still_s": 0}, "max_still_s"),
        ({"max_silence_s": "auto"}, "max_silence_s"),
        ({"max_note_s": None}, "max_note_s"),
        ({"max_still_s": [1.0]}, "max_still_s"),
        ({"max_polyphony": "two"}, "max_polyphony"),
        ({"max_polyphony": 0}, "max_polyphony"),
        ({"lowest": 61, "highest": 60}, "lowest"),
        ({"highest": 128}, "highest"),
        ({"scale": "H major"}, "scale"),
        ({"scale": "C locrian"}, "scale"),
        ({"scale": "C major", "lowest": 61, "highest": 61}, "scale"),
    ],
)
def test_rules_that_no_music_can_keep_are_refused(settings, field):
    with pytest.raises(ConfigError) as refused:
        Rules(**settings)
    assert refused.value.field == field
    assert refused.value.got is settings[field]
    assert ("auto" in refused.value.allowed) == (field in ("max_note_s", "max_still_s"))


def test_limits_follow_the_seed_within_bounds_unless_a_person_gives_them():
    assert [Rules().still_s(waits_s) for waits_s in ([], [0.2, 0.4], [1.5, 0.1], [30.0])] == [2.0, 1.0, 1.5, 3.0]
    assert [Rules().note_s(notes_s) for notes_s in ([], [0.2], [6.0, 1.0], [108.0])] == [8.0, 4.0, 6.0, 8.0]
    given = Rules(max_still_s=9, max_note_s=0.5)
    assert (given.still_s([0.1]), given.note_s([7.0])) == (9.0, 0.5)
    assert Rules(max_still_s=None).still_s([0.1]) == 3600.0


def test_scales_by_name():
    assert scale_classes("C major") == [0, 2, 4, 5, 7, 9, 11]
    assert scale_classes("F# minor") == [6, 8, 9, 11, 1, 2, 4]
    assert scale_classes("Cb pentatonic") == [11, 1, 3, 6, 8]


def test_the_pitches_where_a_note_may_begin():
    assert np.flatnonzero(Rules(lowest=60, highest=72, scale="C major").pitches()).tolist() == [
        *(60, 62, 64, 65, 67, 69, 71, 72)
    ]
    assert Rules().pitches().sum() == 128
