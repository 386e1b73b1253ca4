"""A bar has one number for all models: that of the page."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_scores import SCORE

from musictx.errors import ConfigError
from musictx.generate.primer import Part as Region
from musictx.generate.primer import borders_s, choose_primer
from musictx.generate.requests import Length
from musictx.generate.score_seeds import read_score, seconds_at
from musictx.generate.score_templates import continued, with_gap
from musictx.music.read import read_tracks

TIME = "<time><beats>4</beats><beat-type>4</beat-type></time>"
REPEAT = '<barline location="{}"><repeat direction="{}"/></barline>'


@st.composite
def pages(draw):
    """Bars of 4/4 as a file has them: (printed number, quarters), of which some are two halves of one bar."""
    first, bars = draw(st.sampled_from([1, 1, 17])), list[tuple[int, int]]()
    if draw(st.booleans()):
        bars.append((first - 1, 1))  # some programs call it X and the next number
    for k in range(draw(st.integers(2, 5))):
        halves = draw(st.sampled_from([(4,), (4,), (3, 1), (2, 2)])) if k else (4,)
        bars += [(first, quarters) for quarters in halves]
        first += draw(st.sampled_from([1, 1, 1, 2]))  # a number left out
    return bars


def written(bars):
    xml = list[str]()
    for k, (number, quarters) in enumerate(bars):
        is_second = k > 0 and bars[k - 1][0] == number
        is_first = quarters == 1 and not k
        name = '"X1" implicit="yes"' if is_second or (is_first and number == 0) else f'"{number}"'
        before = "" if k else f"<attributes><divisions>1</divisions>{TIME}</attributes>"
        before += REPEAT.format("left", "forward") * is_second
        note = f"<note><pitch><step>{'CDEFGAB'[k % 7]}</step><octave>5</octave></pitch><duration>1</duration></note>"
        after = REPEAT.format("right", "backward") * (k + 1 < len(bars) and bars[k + 1][0] == number)
        xml.append(f"<measure number={name}>{before}{note * quarters}{after}</measure>")
    head = '<score-part id="P1"><part-name>Oboe</part-name></score-part>'
    body = f'<part-list>{head}</part-list><part id="P1">{"".join(xml)}</part>'
    return f'<score-partwise version="4.0">{body}</score-partwise>'


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return tmp_path_factory.mktemp("pages") / "page.musicxml"


@given(pages())
@settings(max_examples=25)
def test_all_models_find_the_bar_of_the_page(page, bars):
    page.write_text(written(bars))
    seed, tracks = read_score(page, SCORE), read_tracks(page.read_bytes(), page)
    score, meter = tracks.merge(), tracks.meter()
    begins = np.cumsum([0, *(quarters for _, quarters in bars)]) / 2  # seconds
    for number in {number for number, _ in bars[bars[0][1] == 1 :]}:  # bar 1 follows an upbeat
        mine = [k for k, (each, _) in enumerate(bars) if each == number]
        place = float(begins[mine[0]]), float(begins[mine[-1] + 1])
        assert borders_s(number, number, score, meter, page) == place
        assert tuple(seconds_at(with_gap(seed, number, number).span, seed).tolist()) == place
    there = {number for number, _ in bars[bars[0][1] == 1 :]}
    for number in {*range(min(there), max(there) + 2)} - there:
        for ask in (lambda n: borders_s(n, n, score, meter, page)), (lambda n: with_gap(seed, n, n)):
            with pytest.raises(ConfigError, match=f"bars from {min(there)} to {max(there)}"):
                ask(number)


@given(pages(), st.integers(1, 4))
@settings(max_examples=25)
def test_all_models_count_the_bars_of_a_seed_alike(page, bars, count):
    page.write_text(written(bars))
    tracks, seed = read_tracks(page.read_bytes(), page), read_score(page, SCORE)
    first = bars[bars[0][1] == 1][0]
    mine = sorted({number for number, _ in bars if number >= first})[:count]
    end = sum(quarters for number, quarters in bars if number <= mine[-1]) / 2
    assert choose_primer(tracks.merge(), tracks.meter(), Region(bars=count)).end_s == end
    cut, template = continued(seed, Region(bars=count), Length(bars=2))
    assert seconds_at([cut.notation.end], seed).tolist() == [end]
    assert template.notation.numbers[-2:] == [mine[-1] + 1, mine[-1] + 2]


def test_numbers_far_apart_take_no_time(page):
    page.write_text(written([(1, 4), (2, 4), (40_000, 4)]))
    with pytest.raises(ConfigError, match="no 3, 4, 5, 6, 7, 8, 9, 10, 11$"):
        with_gap(read_score(page, SCORE), 7, 7)
