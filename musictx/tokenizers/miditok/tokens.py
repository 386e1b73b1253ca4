"""MidiTok's REMI, TSD and Structured tokens (Fradet et al. 2021, arXiv 2310.17202), and BPE on top of them."""

from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, TokenError, UserError
from musictx.music.score import DRUMS, Score
from musictx.tokenizers.miditok.merges import BaseIds, Merges, as_text, learn_merges
from musictx.tokenizers.tokenizer import Tokenizer, Trace, notes_by_step
from musictx.tokenizers.vocab import MAX_IDS, SPECIALS, EventRange, Ids, Vocab

KINDS = {"miditok-remi": "REMI", "miditok-tsd": "TSD", "miditok-structured": "Structured"}
STEPS_PER_QUARTER = 12  # sixteenths and triplets both fall on this grid
STEPS_PER_BAR = 4 * STEPS_PER_QUARTER  # 4/4 throughout
MAX_STEPS = 100_000 * STEPS_PER_QUARTER  # 14 hours at 120 quarters a minute; beyond it the tempo is wrong
CONFIG: dict[str, Any] = {
    "beat_res": {(0, 16): STEPS_PER_QUARTER},  # durations and shifts reach 16 quarters
    "pitch_range": (0, 127),
    "drums_pitch_range": (0, 127),
    "use_pitchdrum_tokens": True,  # drums have their own pitch tokens, which are never transposed
    "num_velocities": 32,
    "use_programs": True,
    "one_token_stream_for_programs": True,
    "use_time_signatures": False,
}

Notes = NDArray[np.int64]  # (5, N): program, onset, pitch, length, velocity; times in steps


@cache
def _backend(name: str) -> Any:
    """MidiTok's tokenizer; one per process, so copies of ours stay small."""
    import miditok

    config = miditok.TokenizerConfig(**CONFIG, special_tokens=["PAD"])  # PAD is the least MidiTok accepts
    return getattr(miditok, KINDS[name])(config)


class MidiTokTokenizer(Tokenizer):
    """Several instruments on twelfths of a quarter, at one tempo, in 4/4; notes of 1 to 192 steps. Raises UserError."""

    metrical = True
    programs = True

    def __init__(self, name: str, state: str = "") -> None:
        try:
            import miditok  # noqa: F401
        except ImportError:
            what = f"tokenizer {name} needs the package miditok, which is not installed"
            raise UserError(what, "pip install 'musictx[miditok]'") from None
        words = [word for word in _backend(name).vocab if word != "PAD_None"]
        self.name, self.state, self._words = name, state, words
        self._is_bar = np.array([word == "Bar_None" for word in words])
        steps = [_steps(word) for word in words]
        self._sets_clock = np.array([step is not None for step in steps])
        self._steps = np.array([step or 0 for step in steps])
        self._merges = Merges(len(words), state) if state else None
        n_bpe = len(self._merges.parts) - len(words) if self._merges else 0
        events = [EventRange(word, 0, 0) for word in words] + [EventRange("BPE", 0, n_bpe - 1)] * (n_bpe > 0)
        release = ".".join(version("miditok").split(".")[:2])  # patch releases keep the meaning of tokens
        merges = f" bpe {sha256(state.encode()).hexdigest()[:16]}" if state else ""
        self.vocab = Vocab(f"{name}/1 miditok {release} {CONFIG}{merges}", tuple(events))
        pitch = [int(word[6:]) if word.startswith("Pitch_") else -1 for word in words]  # never a drum's
        self.pitch = np.pad(pitch, (0, self.vocab.size - len(words)), constant_values=-1)

    def encode(self, score: Score) -> Ids:
        """(T,) ids. Raises TokenError for more than 100,000 quarters."""
        backend, notes = _backend(self.name), _to_grid(score)
        import symusic  # it comes with MidiTok

        music: Any = symusic.Score(backend.time_division)  # MidiTok's own grid, so that nothing is rounded twice
        for program in np.unique(notes[0]):
            _, onset, pitch, length, velocity = notes[:, notes[0] == program]
            track: Any = symusic.Track(program=int(program) % DRUMS, is_drum=bool(program == DRUMS))
            track.notes = symusic.Note.from_numpy(
                onset.astype(np.int32), length.astype(np.int32), pitch.astype(np.int8), velocity.astype(np.int8)
            )
            music.tracks.append(track)
        ids = backend.encode(music, encode_ids=False).ids if len(score) else []
        return self._apply(np.array(ids, dtype=np.int64) - 1)  # PAD is MidiTok's first

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> Score:
        """The score, without incomplete notes. Raises TokenError."""
        import miditok

        words = miditok.TokSequence(tokens=[self._words[i] for i in self._expand(ids).tolist()])
        blocks = [np.zeros((5, 0), dtype=np.int64)]
        for track in _backend(self.name).decode(words).tracks:
            note = track.notes.numpy()
            program = np.full(len(track.notes), DRUMS if track.is_drum else track.program)
            blocks.append(np.array([program, note["time"], note["pitch"], note["duration"], note["velocity"]]))
        program, onset, pitch, length, velocity = _merge_copies(np.concatenate(blocks, axis=1))
        step_s = quarter_s / STEPS_PER_QUARTER
        return Score(onset * step_s, (onset + length) * step_s, pitch, velocity, quarter_s, program)

    def apply_bpe(self, ids: NDArray[np.integer]) -> Ids:
        """Base ids in as few ids as the merges allow. Raises TokenError for PAD, BOS and EOS."""
        return self._apply(self.events(ids))

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> float:
        """The clock after a stream of ids; its last notes may sound beyond."""
        base = self._expand(ids)
        time = base[self._sets_clock[base]]
        if self.name != "miditok-remi":
            steps = int(self._steps[time].sum())
        else:  # a Position before any Bar has its own first bar
            bar = np.cumsum(self._is_bar[time]) - self._is_bar[time[:1]].sum()
            steps = int((bar * STEPS_PER_BAR + self._steps[time]).max(initial=0))
        return steps * quarter_s / STEPS_PER_QUARTER

    def pitch_range(self, ids: NDArray[np.integer]) -> tuple[int, int] | None:
        return super().pitch_range(self._expand(ids))

    def transpose(self, ids: Ids, semitones: int) -> Ids:
        """Every pitch moved, except drums; BPE may change the number of ids. Raises TokenError."""
        base = self.events(ids)
        return self._apply(np.where(self.pitch[base] >= 0, base + semitones, base))

    def trace(self, ids: Ids, quarter_s: float) -> Trace:
        if self._merges is not None:
            what = f"a token of {self.name} with BPE is several notes, and attention cannot separate them"
            raise UserError(what, "give a bundle without BPE")
        words = [row.type.split("_") for row in self.vocab.table]
        score, step_s = self.decode(ids, quarter_s), quarter_s / STEPS_PER_QUARTER
        notes, time_s = notes_by_step(score, step_s), np.zeros(len(ids))
        note, first = np.full(len(ids), -1), np.zeros(len(score), np.int64)
        now_s, n, program = 0.0, -1, 0
        for t, i in enumerate(ids.tolist()):
            kind, value = words[i][0], words[i][-1]
            if kind in ("Bar", "Position", "TimeShift"):
                now_s, n = self.seconds(ids[: t + 1], quarter_s), -1
            elif kind == "Program":
                program, n = int(value) % (DRUMS + 1), -1  # -1 is drums
            elif kind in ("Pitch", "PitchDrum"):
                n = notes[program, int(value), round(now_s / step_s)].pop(0)
                first[n] = t
                note[t - 1] = n  # its Program
            time_s[t], note[t] = now_s, n
        return Trace(score, time_s, note, first)

    def _expand(self, ids: NDArray[np.integer]) -> BaseIds:
        """Any ids up to the first EOS as base ids. Raises TokenError."""
        music = self.vocab.music(ids)
        return self._merges.expand(music) if self._merges else music.astype(np.int64)

    def events(self, ids: NDArray[np.integer]) -> BaseIds:
        if (ids >= self.vocab.n_events).any():
            raise TokenError("PAD, BOS and EOS have no pitch and no merges", "give a window of events only")
        return self._expand(ids)

    def _apply(self, base: BaseIds) -> Ids:
        return base.astype(np.uint16) if self._merges is None else self._merges.apply(self.units(base))

    def units(self, base: BaseIds) -> list[str]:
        """Base ids as text, cut at every token that sets the clock."""
        # no merge spans two onsets, so the ids of a piece's beginning do not depend on the rest
        text = as_text(base)
        cuts = np.flatnonzero(self._sets_clock[base]).tolist()
        return [text[a:b] for a, b in pairwise([0, *cuts, len(text)]) if a < b]


def check_size(name: str, vocab_size: int) -> MidiTokTokenizer:
    """The tokenizer without merges. Raises ConfigError for a size below its vocabulary or above 65,535."""
    tokenizer = MidiTokTokenizer(name)
    if not tokenizer.vocab.size <= vocab_size <= MAX_IDS:
        allowed = f"{tokenizer.vocab.size}, the size of {name}, to {MAX_IDS}"
        raise ConfigError("bpe_vocab", got=vocab_size, allowed=allowed)
    return tokenizer


def train_bpe(name: str, pieces: Iterable[NDArray[np.integer]], vocab_size: int) -> MidiTokTokenizer:
    """The tokenizer with merges from pieces of base ids. Raises ConfigError as `check_size`."""
    tokenizer = check_size(name, vocab_size)
    corpus = (tokenizer.units(tokenizer.events(ids)) for ids in pieces)
    return MidiTokTokenizer(name, learn_merges(corpus, tokenizer.vocab.n_events, vocab_size - len(SPECIALS)))


def _to_grid(score: Score) -> Notes:
    """Moves onsets and ends to the nearest step; every note is at least one step long."""
    if not score.duration_s / score.quarter_s * STEPS_PER_QUARTER <= MAX_STEPS:
        lasts = f"{score.duration_s:.6g} seconds at {score.quarter_s:.3g} seconds a quarter"
        most = MAX_STEPS // STEPS_PER_QUARTER
        raise TokenError(f"{lasts} are more than {most} quarters", "mend the tempo, or cut the piece")
    onset, end = (np.rint(t / score.quarter_s * STEPS_PER_QUARTER) for t in (score.onset_s, score.offset_s))
    rows = (score.program, onset, score.pitch, np.maximum(end - onset, 1), score.velocity)
    return _merge_copies(np.array(rows).astype(np.int64))


def _merge_copies(notes: Notes) -> Notes:
    """Sorted notes; of one instrument, onset and pitch only the longest and loudest."""
    notes = notes[:, np.lexsort(notes[2::-1])]
    first = np.flatnonzero(np.diff(notes[:3], prepend=-1).any(axis=0))
    return np.maximum.reduceat(notes, first, axis=1) if len(first) else notes


def _steps(word: str) -> int | None:
    """A Position's place in its bar, or a TimeShift's length; None for others."""
    kind, value = word.split("_")
    if kind == "TimeShift" and value != "0.0.1":  # Structured's word for no wait
        quarters, part, parts = map(int, value.split("."))
        return (quarters * parts + part) * STEPS_PER_QUARTER // parts
    if kind == "Position":
        return int(value)
    return 0 if kind == "Bar" else None
