"""Sounds of parts, by their names."""

import pytest

from musictx.music.notation.sounds import sound_of


@pytest.mark.parametrize(
    ("name", "sound"),
    [
        ("Violin I", 40),
        ("Corno I in F", 60),
        ("Corno inglese", 69),
        ("Clarinet in Bb", 71),
        ("Bass Clarinet", 71),
        ("Bassoon", 70),
        ("Basso", 53),
        ("BASSVS", 53),
        ("CANTVS.", 53),
        ("Contrabass", 43),
        ("Bass Guitar", 33),
        ("Alto Sax", 65),
        ("Violoncello e Basso", 42),
        ("Basso continuo", None),
        ("Trombone", 57),
        ("Flöte", 73),
        ("[Organo]", 19),
        ("Harpsichord", 6),
        ("Singstimme", 53),
        ("S", 53),
        ("B.", 53),
        ("Keyboard", None),
        ("Staff 1", None),
        ("", None),
    ],
)
def test_a_part_sounds_as_its_name_says(name, sound):
    assert sound_of(name) == sound
