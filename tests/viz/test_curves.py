import numpy as np

from musictx.viz.curves import plot_curves

X = np.arange(5.0)


def test_an_svg_has_its_names_and_a_gap_where_there_is_no_number(tmp_path):
    for gap in (False, True):
        y = np.where(X[:, None] < 2 * gap, np.nan, [0.5, 0.4, 0.6]).T
        plot_curves({"relative": (X, *y)}, tmp_path / f"{gap}.svg", "seconds", "share", "A title", [(1, "true")])
    full, part = ((tmp_path / f"{gap}.svg").read_text() for gap in (False, True))
    for word in ("relative", "seconds", "A title", "true"):
        assert f">{word}<" in full
    assert len(part) < len(full)  # fewer points
