"""New bars in a file whose ticks are no units of a score: its notes stay in time, new ones have exact places."""

from fractions import Fraction

import numpy as np
import pytest
from stubs import Said

from musictx.generate.requests import Accompany, Continue, Fill, Length, Sampling
from musictx.generate.score_tasks import task_of
from musictx.music.midi_file import Event, EventFile, EventTrack, notes_of, read_events, write_events
from musictx.tokenizers.score import ScoreTokenizer

SCORE = ScoreTokenizer()


def player():
    def say(length, rows):
        noise = np.random.default_rng(length).normal(size=SCORE.vocab.size).astype(np.float32)
        return np.tile(noise - 3.0 * (np.arange(SCORE.vocab.size) < SCORE.at0), (rows, 1))

    said = Said(say)
    said.window = None
    return said


def in_quarters(data):
    """(onset, end, pitch) of each note."""
    file = read_events(data)
    per = int.from_bytes(file.division)
    return {(Fraction(n.on, per), Fraction(n.off, per), n.pitch) for track in file.tracks for n in notes_of(track)}


@pytest.mark.parametrize("per_quarter", [1, 5, 8, 100, 480])
@pytest.mark.parametrize("ask", [Continue, Fill, Accompany])
def test_a_file_of_few_ticks_keeps_its_notes_and_gets_exact_ones(per_quarter, ask, tmp_path):
    ticks = range(0, 16 * per_quarter, max(per_quarter // 4, 1))
    ends = [*ticks[1:], 16 * per_quarter]
    events = [each for a, b in zip(ticks, ends, strict=True) for each in ((a, b"\x90\x48\x50"), (b, b"\x80\x48\x40"))]
    track = EventTrack([Event(*each) for each in events], 16 * per_quarter)
    path = tmp_path / "it.mid"
    path.write_bytes(write_events(EventFile(per_quarter.to_bytes(2), [track])))
    plain = Sampling(guard=False, seed_guidance=None)
    requests = (Continue(plain, Length(bars=2)), Fill(plain, from_bar=2, to_bar=2), Accompany(plain))
    request = next(each for each in requests if isinstance(each, ask))
    (music,) = task_of(path, SCORE, request).draw(player(), SCORE)
    before, after = in_quarters(path.read_bytes()), in_quarters(music.midi())
    kept = {note for note in before if not (ask is Fill and 4 <= note[0] < 8)}
    assert kept <= after
    new = [note for notes in music.added.values() for note in notes]
    assert after - kept == {(Fraction(note.onset, 24), Fraction(note.offset, 24), note.pitch) for note in new}
    assert any(note.offset % 24 for note in new)
