"""musictx render: music as a piano roll or a score (.png .svg .pdf), MusicXML, MIDI, a film (.gif .mp4) or sound."""

from dataclasses import dataclass
from math import inf
from pathlib import Path

from omegaconf import MISSING

from musictx.commands import check_within
from musictx.config.command import Command
from musictx.errors import ConfigError, counted
from musictx.files import check_new, check_suffix, only_new, replacing
from musictx.model.packaged import seed_path
from musictx.music.beat_grid import bars_of
from musictx.music.notation.kept import as_it_is
from musictx.music.notation.notation import SCORES
from musictx.music.read import kind_of_notation, read_bytes, read_tracks, score_of, whole
from musictx.music.repairs import say_repairs
from musictx.music.score import Meter, Score
from musictx.music.write import MIDI
from musictx.setting import setting
from musictx.terminal import say
from musictx.viz import engraving, sound
from musictx.viz.formats import FORMATS, write_as


@dataclass
class RenderConfig:
    """musictx render: turn music into a picture, a score, MIDI, a film or a sound, by the suffix of `out`."""

    midi: str = setting(MISSING, "a MIDI file or a score; or elise, gymnopedie, chorale", path=True)
    out: str = setting(
        MISSING,
        ".png .svg .pdf: a piano roll; .gif .mp4: a moving one; .wav .flac: sound; .musicxml .mxl .mid",
        path=True,
    )
    score: bool = setting(False, "the picture is a page of score; of music on a grid, not of a performance")
    new_from: float | None = setting(None, "second at which a continuation begins; draws it in its own colour")
    bars: bool = setting(False, "draw the bar lines even where the notes keep to none")
    drums: bool = setting(False, "draw the drums too; they always sound")
    soundfont: str | None = setting(None, "a .sf2 file; null: the installed General MIDI one", path=True)
    overwrite: bool = setting(False, "replace an existing file")


def render(config: RenderConfig) -> None:
    source, out = seed_path(config.midi), Path(config.out)
    suffix = out.suffix.lower()
    check_suffix("out", config.out, (*(engraving.FORMATS if config.score else (*FORMATS, *MIDI)), *SCORES))
    check_new(config.overwrite, out)
    check_within(config, "new_from", 0)
    check_used(config, suffix)
    data = read_bytes(source)
    if config.score or suffix in SCORES:
        render_score(data, source, out)
        return
    tracks = read_tracks(data, source)
    drums = suffix in (*sound.FORMATS, *MIDI) or config.drums
    score = tracks.merge(drums)
    if (new_from := config.new_from) is not None and new_from > score.duration_s:
        why, allowed = f"{source} ends before", f"0 to {score.duration_s:.2f} s"
        raise ConfigError("new_from", got=new_from, why=why, allowed=allowed)
    if remark := tracks.remark(drums):
        say(f"{source}: {remark}")
    if suffix in MIDI:
        out.parent.mkdir(parents=True, exist_ok=True)
        with replacing(out) as partial:
            partial.write_bytes(whole(data, source))
    else:
        draw(score, tracks.meter(), config)
    say(f"{out}: {counted(len(score), 'note')}, {score.duration_s:.2f} s")


def check_used(config: RenderConfig, suffix: str) -> None:
    """Raises ConfigError for an option that changes nothing in such a file."""
    is_score, is_sound = config.score or suffix in SCORES, suffix in sound.FORMATS
    is_drawn = not (is_score or is_sound or suffix in MIDI)
    for name, counts, files in (
        ("new_from", is_drawn, "piano rolls and films"),
        ("bars", is_drawn, "piano rolls and films"),
        ("drums", is_drawn, "piano rolls and films"),
        ("soundfont", is_sound, " and ".join(sound.FORMATS)),
    ):
        if not counts and (value := getattr(config, name)) not in (None, False):
            raise ConfigError(name, got=value, why=f"it changes only {files}", hint="leave it out")


def draw(score: Score, meter: Meter, config: RenderConfig) -> None:
    """Writes a picture, a film or a sound."""
    end_s = score.duration_s
    bars = meter.numbered(end_s) if config.bars else bars_of(score, meter, end_s)
    new_from_s = inf if config.new_from is None else config.new_from
    font = Path(config.soundfont) if config.soundfont else None
    write_as(score, Path(config.out), seed_path(config.midi).stem, new_from_s, bars=bars, soundfont=font)


def render_score(data: bytes, source: Path, out: Path) -> None:
    """Writes a score as notation; prints the repairs of a MIDI file, and the losses of the score."""
    notation, losses = score_of(data, source, chart=True)  # a page needs no pitches
    if notation.source is not None:  # MusicXML stays as it is
        engraving.write_score(as_it_is(notation.source), out)
        say(f"{out}: {notation.size}")
        return
    if not kind_of_notation(data, source) and (repairs := say_repairs(read_tracks(data, source).repairs)):
        say(f"{source}: {'; '.join(repairs)}")
    notation = notation.on_two_staves()
    losses = losses + engraving.write_notation(notation, out, source.stem)
    say("; ".join([f"{out}: {notation.size}", *say_repairs(losses)]))


COMMAND = Command("render", only_new(render), RenderConfig, main="midi")
