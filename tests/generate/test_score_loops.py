"""One bar of a score does not come again and again: a model that says each bar again must go on with another note."""

from dataclasses import replace
from itertools import groupby

import numpy as np
import pytest
from small_scores import PLAIN, SCORE, in_file
from stubs import Said, Saying

from musictx.generate.requests import Continue, Fill, Length
from musictx.generate.score_loops import FEWEST, Loop
from musictx.generate.score_tasks import task_of
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part

GUARDED = replace(PLAIN, guard=True, temperature=0)


class Again(Said):
    """Says the id that came a bar ago: after the longest end of ids that came before, the one that followed there."""

    window = None

    def __init__(self):
        super().__init__(None)

    def begin(self, room, rolling=False):
        return Copying([])

    def join(self, parts, of_row):
        return Copying([[*parts[k].rows[0]] for k in of_row])


class Copying(Saying):
    def __init__(self, rows):
        self.rows = rows

    def prefill(self, ids):
        if not self.rows:
            self.rows = [[] for _ in ids]
        for row, new in zip(self.rows, ids.tolist(), strict=True):
            row += new
        return np.stack([self.next(row) for row in self.rows])

    def next(self, row):
        logits = np.zeros(SCORE.vocab.size, np.float32)
        starts = [n + 1 for n, i in enumerate(row) if i == SCORE.bar]
        if len(starts) > 1:
            last, within = row[starts[-2] : starts[-1]], len(row) - starts[-1]
            logits[last[min(within, len(last) - 1)]] = 9.0
        return logits


def dance(runs):
    """Bars of a tune and a bass, each bar so many times."""
    tune, bass, at = list[Note](), list[Note](), 0
    for k, run in enumerate(runs):
        for _ in range(run):
            tune += [Note(at, 24, 60 + k), Note(at + 24, 24, 64 + k)]
            bass.append(Note(at, 48, 40 + k))
            at += 48
    bars = tuple(Bar(n, 2, 4) for n in range(0, at, 48))
    return Notation((Part("Tune", 73, tuple(tune)), Part("Bass", 42, tuple(bass))), bars, at)


def longest(notation):
    """The most equal bars in a row."""
    notes = [(n, *note) for n, part in enumerate(notation.parts) for note in part.notes]
    bars = [
        {(n, at - bar.onset, *rest) for n, at, *rest in notes if bar.onset <= at < end} for bar, end in notation.spans
    ]
    return max(len([*run]) for _, run in groupby(bars))


@pytest.mark.parametrize(("runs", "most"), [((1, 1, 1), 3), ((1, 3, 1), 3), ((2, 1), 3), ((5, 1), 5)])
def test_a_model_that_says_each_bar_again_goes_on(tmp_path, runs, most):
    path = in_file(dance(runs), tmp_path)
    kept, free = (
        task_of(path, SCORE, Continue(replace(GUARDED, guard=guard), Length(bars=16))).draw(Again(), SCORE)[0]
        for guard in (True, False)
    )
    assert not kept.stopped
    assert longest(free.notation) > 12
    assert longest(kept.notation) <= most + 1  # the tune is a bar ahead


def test_bars_where_one_part_changes_are_no_loop(tmp_path):
    song = dance((1,) * 6)
    still = replace(
        song, parts=(song.parts[0], replace(song.parts[1], notes=tuple(Note(48 * k, 48, 40) for k in range(6))))
    )
    path = in_file(still, tmp_path)
    script = [i for group in SCORE.sections(still, (0, 3), 0) for section in group for i in section.ids]
    assert Loop.after(script, [], SCORE).longest == 1
    (music,) = task_of(path, SCORE, Fill(GUARDED, from_bar=2, to_bar=5, only="Bass")).draw(Again(), SCORE)
    assert not music.stopped


def test_silence_is_no_loop_and_the_music_after_a_gap_counts():
    bar = [SCORE.part0, SCORE.bar]
    assert Loop.after(bar * 9, [], SCORE).most == FEWEST
    note = [SCORE.part0, SCORE.at0, SCORE.length0, SCORE.pitch0 + 60, SCORE.bar]
    assert Loop.after(bar, note * 5, SCORE).most == 6
    loop = Loop.after(note * 3, note * 2, SCORE)
    assert loop.most == 4
    for i in (*note, *note[:3]):
        assert loop.pitch is None
        loop.take(i)
    assert loop.pitch == note[3]
    loop.take(SCORE.pitch0 + 61)
    assert loop.pitch is None
