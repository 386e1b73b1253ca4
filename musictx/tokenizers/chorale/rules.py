"""The rules of the chorale grid: legal pitches or a rest of the next voice, for a whole batch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.music.grid import REST, STEPS_PER_QUARTER
from musictx.tokenizers.chorale.tokens import ChoraleTokenizer
from musictx.tokenizers.rules import GRID_NOTE, VOICE_RANGES, Rules, parallel

CEILING = 128  # above all pitches
MOVING = ("last", "before", "note_steps", "silence_steps", "still_steps", "has_onset", "ceiling")  # from step to step


class GridRules:
    """A `Grammar` after prompts of whole steps. Raises ConfigError when no voice could ever sing."""

    def __init__(
        self,
        tokenizer: ChoraleTokenizer,
        rules: Rules,
        prompts: Sequence[NDArray[np.integer]],
        quarter_s: Sequence[float],
    ) -> None:
        lo, hi, self.voices = tokenizer.lo, tokenizer.hi, tokenizer.voices
        self.pitch, self.size = tokenizer.pitch, tokenizer.vocab.size  # (V,) REST for silence and for ids without music
        self.pitches = np.arange(lo, hi + 1)  # (P,)
        self.order, self.no_parallels = bool(rules.voice_order), bool(rules.no_parallels)
        self.most = rules.max_polyphony or self.voices
        allowed_pitches = np.tile(rules.pitches(), (self.voices, 1))  # (4, 128)
        if rules.voice_ranges:
            at = np.arange(128)
            allowed_pitches &= np.array([(at >= low) & (at <= high) for low, high in VOICE_RANGES])
        self.allowed_pitches = allowed_pitches[:, lo : hi + 1]  # (4, P)
        if not self.allowed_pitches.any():
            raise ConfigError("rules", why=f"no voice has a pitch left from {lo} to {hi}", hint="give wider limits")
        per_step = np.array(quarter_s)[:, None] / STEPS_PER_QUARTER  # (B, 1) seconds
        # (steps, 4) pitches each, without an incomplete last step
        grids = [tokenizer.pitch[prompt[: len(prompt) // self.voices * self.voices]] for prompt in prompts]
        grids = [pitch.reshape(-1, self.voices) for pitch in grids]
        lengths_s = [_lengths(grid) * float(step) for grid, step in zip(grids, per_step[:, 0], strict=True)]
        note_s = np.array([rules.note_s(each, GRID_NOTE) for each in lengths_s])
        still_s = [rules.still_s(_stays(grid) * float(step)) for grid, step in zip(grids, per_step[:, 0], strict=True)]
        self.max_silence, self.max_note, self.max_still = (
            # a hair more, so that 0.3 s are two steps of 0.15 s in floating point too
            np.maximum(np.array(limit) / per_step + 1e-6, 1).astype(np.int64)
            for limit in (rules.max_silence_s, note_s[:, None], np.array(still_s)[:, None])
        )
        last = [grid[-1] if len(grid) else np.full(self.voices, REST) for grid in grids]
        self.last = np.array(last)  # (B, 4) pitches
        self.before = self.last  # (B, 4) pitches of the step before the current one
        # (B, 4) steps
        self.note_steps = np.array([_run(grid != row) for grid, row in zip(grids, last, strict=True)])
        # (B, 1) steps of all voices
        self.silence_steps = np.array([_run((grid != REST).any(1, keepdims=True)) for grid in grids])
        # (B, 1) steps since a voice began a note
        self.still_steps = np.array([_run(_moves(grid)[:, None]) + bool(len(grid)) for grid in grids])
        self.has_onset = np.zeros_like(self.silence_steps, bool)  # (B, 1) whether one has in this step
        self.voice = 0
        self.ceiling = np.full_like(self.silence_steps, CEILING)  # (B, 1) the lowest pitch sung in this step

    def legal(self) -> NDArray[np.bool_]:
        v, is_last = self.voice, self.voice == self.voices - 1
        last, note_steps = self.last[:, v, None], self.note_steps[:, v, None]  # (B, 1)
        must_end = note_steps >= self.max_note
        if is_last:
            must_move = ~self.has_onset & (self.still_steps >= self.max_still)  # (B, 1) it has to move
            must_end |= must_move
        legal = np.zeros((len(last), self.size), bool)  # PAD, BOS, EOS and added ids never are
        pitch_legal, rest_legal = legal[:, : len(self.pitches)], legal[:, len(self.pitches), None]  # (B, P), (B, 1)
        pitch_legal[:] = self.allowed_pitches[v] & ((self.pitches != last) | ~must_end)
        if v >= self.most:
            pitch_legal &= (self.last[:, :v] != REST).sum(1, keepdims=True) < self.most
        if self.order:
            pitch_legal &= self.pitches <= self.ceiling
        if self.no_parallels and v:
            above, before = self.last[:, :v, None], self.before[:, :v, None]  # (B, v, 1)
            pitch_legal &= ~parallel(above, self.pitches, before, last[:, None]).any(1)
        # a rest is legal unless a time becomes too long, and always where no pitch is
        rest_legal[:] = True
        if is_last:
            rest_legal[:] = ~must_move & ((self.ceiling < CEILING) | (self.silence_steps < self.max_silence))
            rest_legal |= ~pitch_legal.any(1, keepdims=True)
        return legal

    def update(self, ids: NDArray[np.int64]) -> None:
        v, pitch = self.voice, self.pitch[ids]  # (B,)
        if v == 0:
            self.before = self.last.copy()
        is_new = pitch != self.last[:, v]
        self.note_steps[:, v] = np.where(is_new, 1, self.note_steps[:, v] + 1)
        sounds = pitch != REST
        self.has_onset |= (is_new & sounds)[:, None]
        self.last[:, v] = pitch
        self.ceiling = np.minimum(self.ceiling, np.where(sounds, pitch, CEILING)[:, None])
        self.voice = (v + 1) % self.voices
        if self.voice == 0:
            self.silence_steps = np.where(self.ceiling == CEILING, self.silence_steps + 1, 0)
            self.ceiling = np.full_like(self.ceiling, CEILING)
            self.still_steps = np.where(self.has_onset, 1, self.still_steps + 1)
            self.has_onset = np.zeros_like(self.has_onset)

    def move(self, rows: NDArray[np.int64]) -> None:
        for name in MOVING:
            setattr(self, name, getattr(self, name)[rows])


def _moves(grid: NDArray[np.integer]) -> NDArray[np.bool_]:
    """(T - 1,) whether a voice begins a note at each later step of a grid (T, voices)."""
    moves: NDArray[np.bool_] = ((grid[1:] != grid[:-1]) & (grid[1:] != REST)).any(axis=1)
    return moves


def _stays(grid: NDArray[np.integer]) -> NDArray[np.int64]:
    """The steps of a grid (T, voices) between onsets of any voice."""
    return np.diff(np.flatnonzero(_moves(grid)) + 1, prepend=0)


def _lengths(grid: NDArray[np.integer]) -> NDArray[np.int64]:
    """The steps of each note of each voice of a grid (T, voices)."""
    borders = np.vstack([np.ones((1, grid.shape[1]), bool), grid[1:] != grid[:-1], np.ones((1, grid.shape[1]), bool)])
    columns = [np.flatnonzero(column) for column in borders[: len(grid) + 1].T] if len(grid) else []
    notes = [np.diff(at)[grid[at[:-1], voice] != REST] for voice, at in enumerate(columns)]
    return np.concatenate([np.zeros(0, np.int64), *notes])


def _run(ends: NDArray[np.bool_]) -> NDArray[np.int64]:
    """(columns,) how many rows of `ends` (rows, columns) follow the last True."""
    rows = np.arange(len(ends))[:, None]
    last: NDArray[np.int64] = np.where(ends, rows, -1).max(axis=0, initial=-1)
    return len(ends) - 1 - last
