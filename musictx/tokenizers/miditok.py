"""MidiTok's REMI, TSD and Structured tokens (Fradet et al. 2021, arXiv 2310.17202), and BPE on top of them.

The package `miditok` is an optional extra: nothing here imports it before such a tokenizer is built.
"""

import json
from collections.abc import Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import symusic
from numpy.typing import NDArray

from musictx.errors import ConfigError, TokenError
from musictx.notes.score import DRUMS, Score
from musictx.tokenizers.vocab import SPECIALS, EventRange, Ids, Vocab

KINDS = {"miditok-remi": "REMI", "miditok-tsd": "TSD", "miditok-structured": "Structured"}
STEPS_PER_QUARTER = 12  # sixteenths and triplets both fall on this grid
STEPS_PER_BAR = 4 * STEPS_PER_QUARTER  # 4/4 throughout
MAX_STEPS = 100_000 * STEPS_PER_QUARTER  # 14 hours at 120 a minute; beyond it the tempo is wrong
CONFIG: dict[str, Any] = {
    "beat_res": {(0, 16): STEPS_PER_QUARTER},  # durations and shifts reach 16 quarters
    "pitch_range": (0, 127),
    "drums_pitch_range": (0, 127),
    "use_pitchdrum_tokens": True,  # drums have pitch tokens of their own, which are never transposed
    "num_velocities": 32,
    "use_programs": True,
    "one_token_stream_for_programs": True,
    "use_time_signatures": False,
}
MAX_IDS = 2**16 - 1  # stores hold uint16
MAX_PART = 256  # base tokens in one BPE token
FIRST_CHAR = 0x4E00  # BPE works on text: a base id is a Chinese character, of which none is a space

Notes = NDArray[np.int64]  # (5, N): program, onset, pitch, length, velocity; times in steps
BaseIds = NDArray[np.int64]  # (T,) ids of MidiTok's own tokens alone: no BPE, no PAD, BOS, EOS


@cache
def _backend(name: str) -> Any:
    """MidiTok's tokenizer; one a process, so that ours stay small to copy."""
    import miditok

    config = miditok.TokenizerConfig(**CONFIG, special_tokens=["PAD"])  # PAD is the least MidiTok accepts
    return getattr(miditok, KINDS[name])(config)


class MidiTokTokenizer:
    """Music of several instruments on a grid of twelfths of a quarter, at one tempo, in 4/4.

    Raises ConfigError when MidiTok is not installed or `state` holds no merges of this vocabulary.
    """

    group = 1
    voices = 0
    metrical = True
    programs = True
    grammar = None
    lo, hi = CONFIG["pitch_range"]
    pace: NDArray[Any] | None = None

    def __init__(self, name: str, state: str = "") -> None:
        try:
            import miditok  # noqa: F401
        except ImportError:
            raise ConfigError(
                f"tokenizer {name} needs the package miditok, which is not installed: pip install 'musictx[miditok]'"
            ) from None
        words = [word for word in _backend(name).vocab if word != "PAD_None"]
        self.name, self.state, self._words = name, state, words
        self._pitch = np.array([int(word[6:]) if word.startswith("Pitch_") else -1 for word in words])
        self._is_bar = np.array([word == "Bar_None" for word in words])
        steps = [_steps(word) for word in words]
        self._sets_clock = np.array([step is not None for step in steps])
        self._steps = np.array([step or 0 for step in steps])
        self._merges = Merges(len(words), state) if state else None
        n_bpe = len(self._merges.parts) - len(words) if self._merges else 0
        events = [EventRange(word, 0, 0) for word in words] + [EventRange("BPE", 0, n_bpe - 1)] * (n_bpe > 0)
        release = ".".join(version("miditok").split(".")[:2])  # patch releases keep the meaning of tokens
        learnt = f" bpe {sha256(state.encode()).hexdigest()[:16]}" if state else ""
        self.vocab = Vocab(f"{name}/1 miditok {release} {CONFIG}{learnt}", tuple(events))
        if self.vocab.size > MAX_IDS:
            raise ConfigError(
                f"tokenizer {name} has {self.vocab.size} tokens: {MAX_IDS} is the most ids can tell apart"
            )

    def normalise(self, score: Score) -> Score:
        """The score as these tokens say it: on the grid, 32 velocities, notes of 1 to 192 steps, and notes of one
        instrument, pitch and step made one, the longest and loudest. Structured also shortens every wait between
        two notes to 16 quarters."""
        return self._decode(self._encode(score), score.quarter_s)

    def encode(self, score: Score) -> Ids:
        """(T,) ids of the whole score, without BOS and EOS. Raises TokenError for more than 100,000 quarters."""
        return self._apply(self._encode(score))

    def decode(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> Score:
        """Any ids up to the first EOS as a Score at the given tempo: what is no whole note is left out.
        Raises TokenError for ids outside the vocabulary."""
        return self._decode(self._expand(ids), quarter_s)

    def apply_bpe(self, ids: NDArray[np.integer]) -> Ids:
        """The same music in as few ids as the merges allow. Takes base ids, as the tokenizer without `state`
        encodes them. Raises TokenError when PAD, BOS or EOS is among them."""
        return self._apply(self._events(ids))

    def seconds(self, ids: NDArray[np.integer], quarter_s: float = 0.5) -> float:
        """How far a stream of ids has moved the clock; its last notes may sound beyond."""
        base = self._expand(ids)
        time = base[self._sets_clock[base]]
        if self.name != "miditok-remi":
            steps = int(self._steps[time].sum())
        else:  # a Position before any Bar stands in a first bar of its own
            bar = np.cumsum(self._is_bar[time]) - self._is_bar[time[:1]].sum()
            steps = int((bar * STEPS_PER_BAR + self._steps[time]).max(initial=0))
        return steps * quarter_s / STEPS_PER_QUARTER

    def silence(self, seconds: float, quarter_s: float = 0.5) -> Ids:
        """None: here it is the next note that says when it comes."""
        return np.zeros(0, dtype=np.uint16)

    def pitch_range(self, ids: NDArray[np.integer]) -> tuple[int, int] | None:
        """Lowest and highest pitch in a window of ids, drums left aside; None when there is none."""
        pitch = self._pitch[self._expand(ids)]
        pitch = pitch[pitch >= 0]
        return (int(pitch.min()), int(pitch.max())) if pitch.size else None

    def transpose(self, ids: Ids, semitones: int) -> Ids:
        """A window of ids, every pitch but the drums' moved; the caller keeps it within 0 … 127. With BPE the
        merges are applied anew, so the number of ids may change. Raises TokenError when PAD, BOS or EOS is in it."""
        base = self._events(ids)
        return self._apply(np.where(self._pitch[base] >= 0, base + semitones, base))

    def stretch(self, ids: Ids, factor: float) -> Ids:
        """Bars and beats have no clock to stretch: only factor 1 is allowed."""
        if factor != 1.0:
            raise TokenError(f"stretch {factor}: {self.name} counts beats and has no clock; set data.stretch=[1.0]")
        return ids

    def _expand(self, ids: NDArray[np.integer]) -> BaseIds:
        """Any ids up to the first EOS as base ids. Raises TokenError for ids outside the vocabulary."""
        self.vocab.check(ids)
        eos = np.flatnonzero(ids == self.vocab.eos)
        music = (ids[: eos[0]] if eos.size else ids).astype(np.int64)
        music = music[music < self.vocab.n_events]
        return self._merges.expand(music) if self._merges else music

    def _events(self, ids: NDArray[np.integer]) -> BaseIds:
        if (ids >= self.vocab.n_events).any():
            raise TokenError("PAD, BOS and EOS have no pitch and no merges: give a window of events alone")
        return self._expand(ids)

    def _apply(self, base: BaseIds) -> Ids:
        if self._merges is None:
            return base.astype(np.uint16)
        return self._merges.apply(self._units(base))

    def _units(self, base: BaseIds) -> list[str]:
        """Base ids as text, cut wherever the clock is set: no merge reaches from one onset to the next, so that
        the ids of a piece's beginning do not depend on what follows."""
        text = _text(base)
        cuts = np.flatnonzero(self._sets_clock[base]).tolist()
        return [text[a:b] for a, b in pairwise([0, *cuts, len(text)]) if a < b]

    def _encode(self, score: Score) -> BaseIds:
        backend, notes = _backend(self.name), _to_grid(score)
        music: Any = symusic.Score(backend.time_division)  # MidiTok's own grid, so that nothing is rounded twice
        for program in np.unique(notes[0]):
            _, onset, pitch, length, velocity = notes[:, notes[0] == program]
            track: Any = symusic.Track(program=int(program) % DRUMS, is_drum=bool(program == DRUMS))
            track.notes = symusic.Note.from_numpy(
                onset.astype(np.int32), length.astype(np.int32), pitch.astype(np.int8), velocity.astype(np.int8)
            )
            music.tracks.append(track)
        ids = backend.encode(music, encode_ids=False).ids if len(score) else []
        return np.array(ids, dtype=np.int64) - 1  # PAD is MidiTok's first

    def _decode(self, base: BaseIds, quarter_s: float) -> Score:
        import miditok

        words = miditok.TokSequence(tokens=[self._words[i] for i in base.tolist()])
        blocks = [np.zeros((5, 0), dtype=np.int64)]
        for track in _backend(self.name).decode(words).tracks:
            note = track.notes.numpy()
            program = np.full(len(track.notes), DRUMS if track.is_drum else track.program)
            blocks.append(np.array([program, note["time"], note["pitch"], note["duration"], note["velocity"]]))
        program, onset, pitch, length, velocity = _merge_copies(np.concatenate(blocks, axis=1))
        step_s = quarter_s / STEPS_PER_QUARTER
        return Score(onset * step_s, (onset + length) * step_s, pitch, velocity, quarter_s, program)


class Merges:
    """What BPE has learnt: `parts[id]` are the base ids an id stands for.

    `state` lists the pairs of ids that become one, in the order they were learnt. Raises ConfigError otherwise.
    """

    def __init__(self, n_base: int, state: str) -> None:
        from tokenizers import Tokenizer
        from tokenizers.models import BPE

        self.parts = [(i,) for i in range(n_base)]
        known, merges = set(self.parts), []
        try:
            for a, b in json.loads(state):
                whole = self.parts[a] + self.parts[b]
                if min(a, b) < 0 or len(whole) > MAX_PART:  # doubling again and again would fill the memory
                    raise ValueError(whole)
                merges.append((_text(self.parts[a]), _text(self.parts[b])))
                if whole not in known:  # two ways to one word share its id
                    known.add(whole)
                    self.parts.append(whole)
        except (ValueError, TypeError, IndexError, RecursionError):
            raise ConfigError("the tokenizer's BPE merges are damaged: prepare the data again") from None
        self._model = Tokenizer(BPE({_text(part): i for i, part in enumerate(self.parts)}, merges))

    def expand(self, ids: NDArray[np.integer]) -> BaseIds:
        return np.array([base for i in ids.tolist() for base in self.parts[i]], dtype=np.int64)

    def apply(self, units: list[str]) -> Ids:
        return np.array(self._model.encode(units, is_pretokenized=True).ids, dtype=np.uint16)


def check_size(name: str, vocab_size: int) -> MidiTokTokenizer:
    """The tokenizer without merges. Raises ConfigError for a size below its vocabulary or above 65,535."""
    tokenizer = MidiTokTokenizer(name)
    if not tokenizer.vocab.size <= vocab_size <= MAX_IDS:
        raise ConfigError(
            f"a BPE vocabulary of {vocab_size} tokens: give {tokenizer.vocab.size}, the size of {name}, to {MAX_IDS}"
        )
    return tokenizer


def train_bpe(name: str, pieces: Iterable[NDArray[np.integer]], vocab_size: int) -> MidiTokTokenizer:
    """The tokenizer `name` with merges learnt from pieces of its base ids; deterministic. `vocab_size` counts all
    tokens; a small corpus yields fewer. Raises ConfigError for a size below the base vocabulary or above 65,535."""
    tokenizer = check_size(name, vocab_size)
    from tokenizers import Tokenizer
    from tokenizers.models import BPE
    from tokenizers.trainers import BpeTrainer

    n_base = tokenizer.vocab.n_events
    model = Tokenizer(BPE())
    trainer = BpeTrainer(
        vocab_size=vocab_size - len(SPECIALS),
        min_frequency=2,
        show_progress=False,
        initial_alphabet=[_text([i]) for i in range(n_base)],  # every base token, heard or not, in order of id
        max_token_length=MAX_PART,
    )
    model.train_from_iterator((tokenizer._units(tokenizer._events(ids)) for ids in pieces), trainer)
    ids = model.get_vocab()
    merges = [[ids[a], ids[b]] for a, b in json.loads(model.to_str())["model"]["merges"]]
    return MidiTokTokenizer(name, json.dumps(merges, separators=(",", ":")) if merges else "")


def _to_grid(score: Score) -> Notes:
    """Onsets and ends at the nearest step, every note at least one step long."""
    if not score.duration_s / score.quarter_s * STEPS_PER_QUARTER <= MAX_STEPS:
        raise TokenError(
            f"{score.duration_s:.6g} seconds at {score.quarter_s:.3g} seconds a quarter are more than "
            f"{MAX_STEPS // STEPS_PER_QUARTER} quarters: the tempo is wrong, or cut the piece"
        )
    onset, end = (np.rint(t / score.quarter_s * STEPS_PER_QUARTER) for t in (score.onset_s, score.offset_s))
    rows = (score.program, onset, score.pitch, np.maximum(end - onset, 1), score.velocity)
    return _merge_copies(np.array(rows).astype(np.int64))


def _merge_copies(notes: Notes) -> Notes:
    """Notes by instrument, onset and pitch; those alike in all three become one, the longest and loudest."""
    notes = notes[:, np.lexsort(notes[2::-1])]
    first = np.flatnonzero(np.diff(notes[:3], prepend=-1).any(axis=0))
    return np.maximum.reduceat(notes, first, axis=1) if len(first) else notes


def _steps(word: str) -> int | None:
    """Where in its bar a Position is, how long a TimeShift waits; None for tokens that leave the clock alone."""
    kind, value = word.split("_")
    if kind == "TimeShift" and value != "0.0.1":  # Structured's word for no wait at all
        quarters, part, parts = map(int, value.split("."))
        return (quarters * parts + part) * STEPS_PER_QUARTER // parts
    if kind == "Position":
        return int(value)
    return 0 if kind == "Bar" else None


def _text(base: Sequence[int] | BaseIds) -> str:
    return (np.asarray(base, dtype="<u4") + FIRST_CHAR).tobytes().decode("utf-32-le")
