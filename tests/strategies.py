"""Music for hypothesis, and where the real music lies."""

import os
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mido
import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from musictx.data.store import Split
from musictx.music.notation.chord_symbols import KINDS, ChordSymbol
from musictx.music.notation.lyrics import Syllable
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Key, Note, Part, Tempo
from musictx.music.score import Score
from musictx.tokenizers.vocab import Ids, Vocab

# real corpora are too large for the repository: tests that want them are skipped where they are not
SHARED_DATA = Path(os.environ.get("MUSICTX_DATA", Path(__file__).parents[2] / "shared" / "data"))


def part_of(archive: Path, path: Path, every: int) -> Path:
    """One of so many files of a corpus, in their order, and its tables without the others."""
    with zipfile.ZipFile(archive) as whole, zipfile.ZipFile(path, "w") as part:
        names = whole.namelist()
        for name in (kept := names[::every]):
            part.writestr(name, whole.read(name))
        for table in {name for name in names if name.endswith(".csv")}.difference(kept):
            head, *rows = whole.read(table).decode().splitlines()
            rows = [row for row in rows if any(name.partition("/")[2] in row for name in kept)]
            part.writestr(table, "\n".join([head, *rows]))
    return path


@st.composite
def scores(draw: st.DrawFn, max_notes: int = 40, max_onset_s: float = 30.0) -> Score:
    """Any score: zero-length notes, notes of one pitch on top of each other, long silences."""
    n = draw(st.integers(0, max_notes))
    times = st.lists(st.floats(0, max_onset_s, allow_nan=False), min_size=n, max_size=n)
    pitches = draw(st.sampled_from([(60, 61), (0, 127), (50, 70)]))
    onset = np.array(draw(times), dtype=np.float64)
    length = np.array(draw(times), dtype=np.float64) * draw(st.sampled_from([0.0, 0.02, 1.0]))
    pitch = draw(st.lists(st.integers(*pitches), min_size=n, max_size=n))
    velocity = draw(st.lists(st.integers(1, 127), min_size=n, max_size=n))
    return Score(onset, onset + length, np.array(pitch, np.uint8), np.array(velocity, np.uint8))


@st.composite
def notations(draw: st.DrawFn) -> Notation:
    """One to three staves of notes at any place, none of them twice at a time, in bars of any meter."""
    bars: list[Bar] = []
    at = 0
    for _ in range(draw(st.integers(1, 4))):
        meter = draw(st.sampled_from([(4, 4), (3, 4), (6, 8), (2, 2), (5, 8), (7, 16)]))
        stays = draw(st.booleans())
        meter = bars[-1][1:] if bars and stays else meter
        bars.append(Bar(at, *meter))
        full = bars[-1].full
        at += 3 * draw(st.integers(1, full // 3)) if draw(st.integers(0, 3)) == 0 else full
    end = at
    staves = []
    for n in range(draw(st.integers(1, 3))):
        placed = set()
        for _ in range(draw(st.integers(1, 12))):
            onset = (
                draw(st.integers(0, (end - 1) // 3)) * 3
                if draw(st.booleans())
                else draw(st.integers(0, (end - 1) // 8)) * 8
            )
            length = draw(st.sampled_from([1, 3, 4, 6, 8, 12, 16, 18, 24, 30, 40, 48, 72, 100]))
            placed.add(Note(onset, min(length, end - onset), draw(st.integers(30, 96))))
        apart: list[Note] = []
        for note in sorted(placed):
            if all(note.pitch != other.pitch or note.onset >= other.offset for other in apart):
                apart.append(note)
        program, sung = draw(st.sampled_from([0, 21, 40, 52, 56, 60, 65, 71, 73, 127])), draw(lyrics(apart))
        staves.append(Part(f"Staff {n}", program, tuple(apart), sung))
    places = sorted(draw(st.sets(st.integers(0, (end - 1) // 3), max_size=3)) | {0})
    keys = tuple(Key(bar.onset, (n + draw(st.integers(0, 5))) % 7 - n % 2 * 7) for n, bar in enumerate(bars))
    tempi = tuple(Tempo(3 * at, 96.0 + n) for n, at in enumerate(places))
    symbols = {
        each._replace(onset=3 * draw(st.integers(0, (end - 1) // 3)), staff=draw(st.integers(0, len(staves) - 1)))
        for each in draw(chord_symbols())
    }
    alone = {each.onset: each for each in sorted(symbols)}  # of one place they would share a note
    return Notation(tuple(staves), tuple(bars), end, keys, tempi, tuple(alone.values()))


@st.composite
def lyrics(draw: st.DrawFn, notes: list[Note]) -> tuple[Syllable, ...]:
    """Up to two verses below some of the notes."""
    found, onsets = list[Syllable](), sorted({note.onset for note in notes})
    for verse in range(1, 1 + draw(st.integers(0, 2))):
        begins = True
        for onset in draw(st.lists(st.sampled_from(onsets), unique=True, max_size=4).map(sorted)):
            text, ends = draw(st.sampled_from(["la", "Ky", "é & <b>", "\u4e00", "to_e", "1."])), draw(st.booleans())
            found.append(Syllable(onset, verse, text, begins, ends))
            begins = ends
    return tuple(sorted(found))


@st.composite
def chord_symbols(draw: st.DrawFn) -> list[ChordSymbol]:
    """A few chord symbols of any kind, also one that is not known."""
    kinds = st.sampled_from([*KINDS, "other", "pedal"])
    roots = st.builds(str.__add__, st.sampled_from("ABCDEFG"), st.sampled_from(["", "#", "b", "##", "bb"]))
    degrees = st.tuples(st.integers(2, 13), st.integers(-1, 1), st.sampled_from(["add", "alter", "subtract"]))
    texts, many = st.sampled_from(["", "-7", "M7 & <9>"]), st.lists(degrees, max_size=2).map(tuple)
    named = st.builds(ChordSymbol, st.just(0), roots, kinds, texts, st.one_of(st.just(""), roots), many, st.just(0))
    return draw(st.lists(st.one_of(named, st.just(ChordSymbol(0, "", "none", "N.C."))), max_size=3))


def score_of(*notes: tuple[float, ...], unit_s: float = 1.0, quarter_s: float = 0.5) -> Score:
    """A score of (onset, offset, pitch), or with a velocity, or with a velocity and a program; times in `unit_s`."""
    whole = [(*note, *(80, 0)[len(note) - 3 :]) for note in notes]
    onset, offset, pitch, velocity, program = np.array(whole, dtype=float).reshape(-1, 5).T
    return Score(onset * unit_s, offset * unit_s, pitch, velocity, quarter_s, program)


def rows(score: Score) -> set[tuple[float, ...]]:
    """The notes, as a set."""
    columns = score.onset_s, score.offset_s, score.pitch, score.velocity, score.program
    return set(zip(*(c.tolist() for c in columns), strict=True))


def split_of(*pieces: NDArray[Any], unfinished: Sequence[int] = ()) -> Split:
    """Pieces of ids as a store's split has them."""
    offsets = np.cumsum([0, *map(len, pieces)])
    names = [str(k) for k in range(len(pieces))]
    return Split(np.concatenate(pieces).astype(np.uint16), offsets, names, unfinished)


def ids(vocab: Vocab, max_size: int = 200) -> st.SearchStrategy[Ids]:
    """Any ids of a vocabulary, specials included."""
    return st.lists(st.integers(0, vocab.size - 1), max_size=max_size).map(lambda x: np.array(x, np.uint16))


def slowing(score: Score, path: Path, tempos: Sequence[tuple[int, int]] = ((480, 85), (720, 70), (1080, 47))) -> Path:
    """The music of 100 quarters a minute as MIDI, slower from the second quarter on."""
    events = [(round(t * 800), "note_on", p) for t, p in zip(score.onset_s, score.pitch, strict=True)]
    events += [(round(t * 800), "note_off", p) for t, p in zip(score.offset_s, score.pitch, strict=True)]
    events += [(0, "tempo", 100), *((tick, "tempo", bpm) for tick, bpm in tempos)]
    track, now = mido.MidiTrack(), 0
    for tick, kind, value in sorted(events, key=lambda event: event[:2]):
        time, now = tick - now, tick
        if kind == "tempo":
            track.append(mido.MetaMessage("set_tempo", tempo=mido.bpm2tempo(value), time=time))
        else:
            track.append(mido.Message(kind, note=int(value), velocity=80, time=time))
    mido.MidiFile(tracks=[track], ticks_per_beat=480).save(path)
    return path


def forget_pedal(path: Path) -> Path:
    """Presses the pedal where the last track of a MIDI file begins, and lifts it a minute and a half after its end."""
    midi = mido.MidiFile(path)
    track = midi.tracks[-1]
    channel = next(message.channel for message in track if message.type == "note_on")
    track.insert(0, mido.Message("control_change", channel=channel, control=64, value=127))
    late = round(mido.second2tick(90, midi.ticks_per_beat, 500_000))
    track.insert(len(track) - 1, mido.Message("control_change", channel=channel, control=64, value=0, time=late))
    midi.save(path)
    return path
