"""A film of a piano roll: a line moves over the page, notes to come are pale, then the page turns."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image

from musictx.errors import UserError
from musictx.files import replacing
from musictx.music.score import Bars, Score
from musictx.viz.figure import INK, any_script, new_figure
from musictx.viz.piano_roll import (
    KEY_IN,
    LEAST_IN,
    NEW_COLOUR,
    SEED_COLOUR,
    STRIKE_SHADE,
    New,
    key_range,
    new_notes,
    plot_keys,
    plot_legend,
    plot_notes,
    plot_time,
)
from musictx.viz.sound import write_wav
from musictx.waiting import Waiting

FORMATS = (".gif", ".mp4")
WIDTH_IN, DPI = 9.0, 100
PAGE_S = 15.0
FRAME_S = {".gif": 0.08, ".mp4": 0.04}  # a GIF counts hundredths of a second
PALE = 0.3  # share of its colour that a note to come has
MOST_S = 900.0

Picture = NDArray[np.uint8]  # (height, width, 3)


def film(title: str, score: Score, new: New, path: Path, bars: Bars | None = None) -> None:
    """Writes a GIF, or an MP4 with sound, by the suffix. Raises UserError beyond a quarter of an hour, and without
    imageio-ffmpeg for MP4."""
    suffix = path.suffix.lower()
    if score.duration_s > MOST_S:
        raise UserError(f"a film of {score.duration_s:.0f} s, at most {MOST_S:.0f} s can be made", "cut the piece")
    write = _write_gif if suffix == ".gif" else _write_mp4
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        write(frames(title, score, new, FRAME_S[suffix], bars), score, partial)


def frames(title: str, score: Score, new: New, frame_s: float, bars: Bars | None = None) -> Iterator[Picture]:
    """A picture every `frame_s` of the music, all of one even size, as codecs need it."""
    low, high = key_range([score])
    waiting = Waiting("drawing the film", max(score.duration_s, frame_s))
    for start_s in np.arange(0, max(score.duration_s, frame_s), PAGE_S):
        figure = new_figure(WIDTH_IN, max(1.2 * KEY_IN * (high - low), LEAST_IN) + 0.9, DPI)
        axes = figure.subplots()
        span_s = start_s, start_s + PAGE_S
        plot_keys(axes, low, high, title)
        plot_notes(axes, score, new, span_s)
        plot_time(axes, span_s, score.duration_s, bars, label=True)
        if 0 < new_notes(score, new).sum() < len(score):
            plot_legend(axes, new)
        canvas = FigureCanvasAgg(figure)
        with any_script():
            canvas.draw()  # type: ignore[no-untyped-call]
        picture = np.asarray(canvas.buffer_rgba())[:, :, :3]  # type: ignore[no-untyped-call]
        box = axes.get_window_extent()
        rows = slice(len(picture) - int(box.y1), len(picture) - int(box.y0))
        pale_picture = picture.copy()
        pale_picture[rows, int(box.x0) :] = 255 - PALE * (255.0 - picture[rows, int(box.x0) :])
        end_s = min(span_s[1], max(score.duration_s, frame_s))
        for now_s in np.arange(np.ceil(start_s / frame_s - 1e-6), end_s / frame_s - 1e-6) * frame_s:
            waiting.reach(now_s)
            x = int(axes.transData.transform((now_s, 0))[0])
            shot = picture.copy()
            shot[:, x:] = pale_picture[:, x:]
            shot[rows, x : x + 2] = np.array(to_rgb(INK)) * 255
            yield shot[: len(shot) // 2 * 2, : shot.shape[1] // 2 * 2]


def _write_gif(shots: Iterator[Picture], score: Score, path: Path) -> None:
    """All frames with one palette, so the file has only their changes."""
    shade = np.linspace(0, 1, 51)[:, None]
    tint = shade[3:]  # no nearly white tints, only white: Pillow does not always take the nearest colour
    ramps = [1 - tint * (1 - np.array(to_rgb(colour))) for colour in (SEED_COLOUR, NEW_COLOUR)]
    ramps += [STRIKE_SHADE * ramp for ramp in ramps] + [np.delete(shade, -2, 0).repeat(3, 1)]
    palette = Image.new("P", (1, 1))
    palette.putpalette((np.concatenate(ramps) * 255).astype(np.uint8).tobytes())
    pictures = (Image.fromarray(shot).quantize(palette=palette, dither=Image.Dither.NONE) for shot in shots)
    duration_ms = round(1000 * FRAME_S[".gif"])
    next(pictures).save(path, save_all=True, append_images=pictures, duration=duration_ms, loop=0, optimize=False)


def _write_mp4(shots: Iterator[Picture], score: Score, path: Path) -> None:
    try:
        import imageio_ffmpeg
    except ImportError:
        what = "MP4 needs the package imageio-ffmpeg, which is not installed"
        raise UserError(what, "pip install 'musictx[film]', or choose .gif") from None
    first = next(shots)
    with TemporaryDirectory() as folder:
        sound = Path(folder, "sound.wav")
        write_wav(score, sound)
        writer = imageio_ffmpeg.write_frames(
            str(path),
            (first.shape[1], first.shape[0]),
            fps=1 / FRAME_S[".mp4"],
            macro_block_size=2,
            audio_path=str(sound),
            ffmpeg_log_level="error",
        )
        writer.send(None)
        for shot in chain([first], shots):
            writer.send(np.ascontiguousarray(shot))
        writer.close()
