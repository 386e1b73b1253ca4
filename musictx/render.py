"""musictx render: a MIDI file as a picture, a film or a sound; the suffix of out= says which."""

from pathlib import Path

import numpy as np

from musictx.app import hydra_app
from musictx.config.look import RenderConfig
from musictx.errors import ConfigError
from musictx.model.shipped import seed_path
from musictx.notes.read import read_bytes, read_tracks
from musictx.viz import animate, figure, sound
from musictx.viz.animate import film
from musictx.viz.piano_roll import piano_roll
from musictx.viz.sound import write_wav


def render(config: RenderConfig) -> None:
    source, out = seed_path(config.midi), Path(config.out)
    suffix, known = out.suffix.lower(), (*figure.FORMATS, *animate.FORMATS, *sound.FORMATS)
    if suffix not in known:
        raise ConfigError(f"out={out}: give a name that ends in one of {', '.join(known)}")
    if out.exists() and not config.overwrite:
        raise ConfigError(f"{out} exists already: give another out= or overwrite=true")
    for name, value in (("new_from", config.new_from), ("row_seconds", config.row_seconds)):
        if value is not None and not (value >= 0 if name == "new_from" else value > 0):
            raise ConfigError(f"{name}={value}: give seconds above 0, or null")
    tracks = read_tracks(read_bytes(source), source)
    score = tracks.merge(drums=suffix in sound.FORMATS or config.drums)
    bars_s = tracks.meter().bars_s(score.duration_s) if config.bars else None
    new_from_s = np.inf if config.new_from is None else config.new_from
    out.parent.mkdir(parents=True, exist_ok=True)
    if suffix in sound.FORMATS:
        write_wav(score, out, soundfont=Path(config.soundfont) if config.soundfont else None)
    elif suffix in animate.FORMATS:
        film(source.stem, score, new_from_s, out, bars_s)
    else:
        piano_roll([(source.stem, score, new_from_s)], out, bars_s=bars_s, row_s=config.row_seconds)
    print(f"{out}: {len(score)} notes, {score.duration_s:.2f} s")


main = hydra_app("render", render)

if __name__ == "__main__":
    main()
