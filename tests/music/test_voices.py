from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from musictx.music.grid import score_to_grid, snap_to_grid, thin_to_voices
from musictx.music.score import Score

# a sixteenth is 0.15 s
ANY = st.builds(
    lambda notes: replace(Score(*np.array(notes, dtype=float).reshape(-1, 4).T), quarter_s=0.6),
    st.lists(st.tuples(st.floats(0, 3), st.floats(3, 4), st.integers(40, 90), st.just(90.0)), max_size=14),
)


def test_the_oldest_inside_end():
    score = Score([0, 0, 0, 0, 0.6], [1.2] * 5, [48, 55, 64, 72, 67], [90] * 5, 0.6, np.array(40))
    thin, lost = thin_to_voices(score)
    notes = sorted(zip(thin.pitch.tolist(), thin.onset_s.tolist(), thin.offset_s.round(6).tolist(), strict=True))
    assert notes == [(48, 0, 1.2), (55, 0, 0.6), (64, 0, 1.2), (67, 0.6, 1.2), (72, 0, 1.2)]
    assert lost == 1
    assert thin.program.tolist() == [40] * 5
    thin, lost = thin_to_voices(Score([0] * 6, [0.6] * 6, [40, 47, 52, 56, 59, 64], [90] * 6, 0.6))
    assert (len(thin), lost) == (4, 2)
    assert {40, 64} <= set(thin.pitch.tolist())


@given(ANY)
def test_any_music_fits_the_grid_and_what_fits_already_is_only_snapped(score):
    thin, lost = thin_to_voices(score)
    score_to_grid(thin)
    if not lost:
        assert thin == snap_to_grid(score)
