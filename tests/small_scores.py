"""A song in a score, its file, and a model of scores that knows nothing."""

from collections import Counter

import numpy as np
from stubs import Said

from musictx.generate.requests import Sampling
from musictx.generate.score_tasks import task_of
from musictx.music.midi_file import EventFile, EventTrack, notes_of, read_events, write_events
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part, Tempo
from musictx.tokenizers import with_added
from musictx.tokenizers.gap import ADDED
from musictx.tokenizers.score import ScoreTokenizer

SCORE, FILLS = ScoreTokenizer(), with_added(ScoreTokenizer(), ADDED)
PLAIN = Sampling(guard=False, seed_guidance=None)
TUNE_NOTES = (Note(0, 24, 67), Note(24, 48, 72), Note(72, 24, 71), Note(96, 72, 67))
SONG = Notation(
    (
        Part("Voice", 52, TUNE_NOTES),
        Part("Piano", 0, (Note(24, 24, 64), Note(24, 24, 67), Note(24, 72, 60), Note(96, 72, 64))),
        Part("Piano", 0, (Note(24, 72, 48), Note(48, 8, 43), Note(96, 72, 48))),
    ),
    (Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4)),  # an upbeat
    168,
    tempi=(Tempo(0, 60.0),),
)


def player(window=None, tokenizer=SCORE):
    liked = np.where(np.arange(tokenizer.vocab.size) < tokenizer.at0, 3.0, 0.0)
    liked[tokenizer.bar] = 3.0

    def say(length, rows):
        noise = np.random.default_rng(length).normal(size=tokenizer.vocab.size)
        return np.tile((1.5 * noise + liked).astype(np.float32), (rows, 1))

    said = Said(say)
    said.window = window
    return said


def in_file(notation, folder, division=480):
    path, file = folder / "seed.mid", read_events(to_midi(notation))
    tracks = [
        EventTrack([e._replace(tick=e.tick * division // 480) for e in events], end * division // 480)
        for events, end in file.tracks
    ]
    path.write_bytes(write_events(EventFile(division.to_bytes(2), tracks)))
    return path


def drawn(path, request, tokenizer=SCORE, window=None):
    return task_of(path, tokenizer, request).draw(player(window, tokenizer), tokenizer)


def sounds(data):
    """Each note of each track."""
    tracks = enumerate(read_events(data).tracks)
    return Counter((t, n.on, n.off, n.channel, n.pitch, n.velocity) for t, track in tracks for n in notes_of(track))


def keeps(music, template):
    """Whether the given notes come back, and the new ones are where they may be."""
    whole = template.notation
    for part, was, slot in zip(music.notation.parts, whole.parts, template.slots, strict=True):
        new = Counter(part.notes) - Counter(was.notes)
        assert not Counter(was.notes) - Counter(part.notes)
        for note in new:
            bar = next(n for n, (bar, end) in enumerate(whole.spans) if bar.onset <= note.onset < end)
            assert (slot, bar) in template.free
    return True
