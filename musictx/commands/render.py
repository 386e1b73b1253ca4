"""musictx render: make a MIDI file a piano roll (.png .svg .pdf), film (.gif .mp4) or sound (.wav .flac)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import MISSING

from musictx.commands import check_new, check_suffix
from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import only_new
from musictx.model.packaged import seed_path
from musictx.music.read import read_bytes, read_tracks
from musictx.setting import setting
from musictx.viz import sound
from musictx.viz.by_suffix import FORMATS, write_as


@dataclass
class RenderConfig:
    """musictx render: turn a MIDI file into a picture, a film or a sound, by the suffix of `out`."""

    midi: str = setting(MISSING, "a MIDI file; or elise, gymnopedie, chorale")
    out: str = setting(MISSING, ".png .svg .pdf: a piano roll; .gif .mp4: a moving one; .wav .flac: sound")
    new_from: float | None = setting(None, "second at which a continuation begins; draws it in its own colour")
    bars: bool = setting(False, "count bars instead of seconds")
    row_seconds: float | None = setting(
        None, "length of a row; longer music continues in a row below; null: about a minute"
    )
    drums: bool = setting(False, "draw the drums too; they always sound")
    soundfont: str | None = setting(None, "a .sf2 file; null: the installed General MIDI one")
    overwrite: bool = setting(False, "replace an existing file")


def render(config: RenderConfig) -> None:
    source, out = seed_path(config.midi), Path(config.out)
    suffix = out.suffix.lower()
    check_suffix("out", config.out, FORMATS)
    check_new(config.overwrite, out)
    for name, value in (("new_from", config.new_from), ("row_seconds", config.row_seconds)):
        if value is not None and not (value >= 0 if name == "new_from" else value > 0):
            allowed = "seconds from 0 on, or null" if name == "new_from" else "seconds above 0, or null"
            raise ConfigError(name, got=value, allowed=allowed)
    tracks = read_tracks(read_bytes(source), source)
    drums = suffix in sound.FORMATS or config.drums
    score = tracks.merge(drums)
    if said := tracks.remark(drums):
        print(f"{source}: {said}")
    bars_s = tracks.meter().bars_s(score.duration_s) if config.bars else None
    new_from_s = np.inf if config.new_from is None else config.new_from
    font = Path(config.soundfont) if config.soundfont else None
    write_as(score, out, source.stem, new_from_s, bars_s=bars_s, row_s=config.row_seconds, soundfont=font)
    print(f"{out}: {len(score)} notes, {score.duration_s:.2f} s")


COMMAND = Command("render", only_new(render), RenderConfig)
