"""A score as a MIDI file, within one tick."""

from pathlib import Path

from musictx.files import replacing
from musictx.music.project import Line, Project
from musictx.music.score import Score

MIDI = (".mid", ".midi")


def write_midi(score: Score, path: str | Path, signature: tuple[int, int] | None = None) -> None:
    """Writes a track a program at the score's tempo, and another for overlaps of one pitch.

    `signature` is (beats, unit of a beat)."""
    data = Project.new(score.quarter_s, signature).beside([Line("", score)])
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_bytes(data)
