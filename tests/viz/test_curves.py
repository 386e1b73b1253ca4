import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from musictx.viz.curves import COLOURS, plot_curves

X = np.arange(5.0)
CURVE = (X, X / 4, X / 4 - 0.2, X / 4 + 0.2)
FLAT = (X, X * 0 + 0.5, X * 0 + 0.4, X * 0 + 0.6)


def share(image, colour):
    return int((np.abs(image[:, :, :3] - to_rgb(colour)).max(-1) < 0.02).sum())


def test_a_gap_is_drawn_as_one(tmp_path):
    gap = (X, np.where(X < 2, np.nan, 0.5), np.where(X < 2, np.nan, 0.4), np.where(X < 2, np.nan, 0.6))
    for name, curve in (("full", FLAT), ("gap", gap)):
        plot_curves({name: curve}, tmp_path / f"{name}.png", "x", "y")
    full, part = (share(imread(tmp_path / f"{name}.png"), COLOURS[0]) for name in ("full", "gap"))
    assert 0 < part < full


def test_an_svg_has_its_names_and_is_the_same_every_time(tmp_path):
    texts = []
    for k in range(2):
        path = tmp_path / f"{k}.svg"
        plot_curves({"relative": CURVE}, path, "seconds", "share", "A title", [(0, "shuffled"), (1, "true")])
        texts.append(path.read_text())
    assert texts[0] == texts[1]
    for word in ("relative", "seconds", "A title", "shuffled", "true"):
        assert f">{word}<" in texts[0]
