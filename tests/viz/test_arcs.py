import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from musictx.music.score import Score
from musictx.viz.arcs import HEAD_COLOURS, MOTIF_COLOUR, Head, plot_arcs, plot_heads

SCORE = Score(np.arange(8) / 2, np.arange(8) / 2 + 0.5, [60, 64, 67, 72, 60, 64, 67, 72], [80] * 8)


def weight(**at):
    w = np.zeros(8)
    for name, value in at.items():
        w[int(name[1:])] = value
    return w


def pixels(path, colour):
    """(height, width) where a colour, or a paler shade of it, is."""
    image = imread(path)[:, :, :3].astype(float)
    ink, hue = 1 - image, 1 - np.array(to_rgb(colour))
    size = np.linalg.norm(ink, axis=-1)
    return (size > 0.25) & (ink @ hue / np.maximum(size * np.linalg.norm(hue), 1e-9) > 0.995)


def draw(tmp_path, heads, motif=(), name="a.png"):
    plot_arcs("a piece", SCORE, 7, heads, [np.array(m) for m in motif], tmp_path / name)
    return tmp_path / name


def test_each_head_has_its_colour_a_heavier_weight_a_thicker_arc_and_a_motif_its_mark(tmp_path):
    heads = [Head("heavy", weight(n1=0.6)), Head("light", weight(n1=0.05, n2=0.004))]
    image = draw(tmp_path, heads)
    heavy, light, none = (pixels(image, hue)[:, 150:400].sum() for hue in HEAD_COLOURS[:3])
    assert heavy > 2 * light > none == 0
    assert pixels(image, MOTIF_COLOUR).sum() == 0
    text = draw(tmp_path, heads, [[0, 1, 2, 3], [4, 5, 6, 7]], "b.svg").read_text()
    assert "the motif<" in text
    assert "before<" in text
    assert MOTIF_COLOUR.lower() in text.lower()


def test_where_nothing_is_out_it_says_so(tmp_path):
    text = draw(tmp_path, [Head("mean", np.full(8, 0.004))], name="a.svg").read_text()
    assert "no note has 0.5%" in text
    assert "mean, heaviest 0.4%<" in text
    draw(tmp_path, [Head("mean", np.zeros(8))], name="b.svg")


def test_heat_maps_of_all_heads(tmp_path):
    maps = [
        ("seconds back", np.array([[0.5, 12.25], [3.0, 1.0], [0.0, 0.1]]), ".1f"),
        ("on the motif", np.array([[0.5, 0.25], [0.0, 1.0], [np.nan, 0.1]]), ".0%"),
    ]
    plot_heads(maps, tmp_path / "heads.svg")
    text = (tmp_path / "heads.svg").read_text()
    for word in ("seconds back", "12.2", "25%", "100%", "nan%", "head 0", "layer 0"):
        assert f">{word}<" in text
