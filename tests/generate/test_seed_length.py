"""A part of a seed that is longer than the seed is said, whichever model hears it."""

import pytest
from small_scores import PLAIN, SCORE, in_file

from musictx.generate.continuing import read_beginning
from musictx.generate.primer import Part as Region
from musictx.generate.requests import Continue, Length
from musictx.generate.score_tasks import task_of
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part, Tempo
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.performance import PerformanceTokenizer

EIGHT = Notation(  # after two bars of silence; at 60 quarters a minute
    (Part("Tune", 0, tuple(Note(24 * k, 24, 60 + k % 7) for k in range(8, 40))),),
    tuple(Bar(96 * k, 4, 4) for k in range(10)),
    960,
    tempi=(Tempo(0, 60.0),),
)


def remarks(path, tokenizer, part):
    request = Continue(PLAIN, Length(bars=1), part=part)
    if tokenizer is SCORE:
        return task_of(path, SCORE, request).remarks
    return read_beginning(path, tokenizer, request).remarks


@pytest.mark.parametrize("tokenizer", [SCORE, PerformanceTokenizer(), ChoraleTokenizer()], ids=lambda each: each.name)
def test_a_part_beyond_the_seed_is_said(tokenizer, tmp_path):
    path = in_file(EIGHT, tmp_path)
    usual = remarks(path, tokenizer, Region(bars=8))
    assert len(usual) < 2
    for part, said in ((Region(bars=9), "8 bars"), (Region(bars=99), "8 bars"), (Region(seconds=41), "40.00 s")):
        (more,) = set(remarks(path, tokenizer, part)) - set(usual)
        assert str(path) in more
        assert said in more
    for part in (Region(bars=2), Region(seconds=40), Region(until_s=40), Region()):
        assert set(remarks(path, tokenizer, part)) <= set(usual)
