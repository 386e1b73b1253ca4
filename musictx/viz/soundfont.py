"""Reads SoundFont 2 files (Creative Labs 2006, "SoundFont Technical Specification" 2.04): the samples behind a key.

It ignores LFOs, modulators, chorus and reverb.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError

DRUM_BANK = 128
ROWS = {  # of the tables in the `pdta` list, section 7
    b"phdr": "S20,<u2,<u2,<u2,<u4,<u4,<u4",  # name, program, bank, first bag, …
    b"pbag": "<u2,<u2",  # first generator, first modulator
    b"pgen": "<u2,<i2",  # generator, amount
    b"inst": "S20,<u2",  # name, first bag
    b"ibag": "<u2,<u2",
    b"igen": "<u2,<i2",
    b"shdr": "S20,<u4,<u4,<u4,<u4,<u4,u1,i1,<u2,<u2",  # name, start, end, loop from, loop to, Hz, key, cents, …
}
# Generators, section 8.1.2; a place in the samples has a fine generator and one in steps of 32768
START, END, LOOP, LOOP_END = (0, 4), (1, 12), (2, 45), (3, 50)
CUTOFF, RESONANCE, SWEEP, PAN = 8, 9, 11, 17
SWEEP_ENVELOPE, LOUDNESS_ENVELOPE = 25, 33  # each the first of delay, attack, hold, decay, sustain, release, by key ×2
INSTRUMENT, KEYS, VELOCITIES, FIXED_KEY = 41, 43, 44, 46
ATTENUATION, COARSE_TUNE, FINE_TUNE, SAMPLE, MODE, SCALE, CHOKE, ROOT = 48, 51, 52, 53, 54, 56, 57, 58
DEFAULTS = {CUTOFF: 13500, SCALE: 100, FIXED_KEY: -1, ROOT: -1}
DEFAULTS |= {first + i: -12000 for first in (SWEEP_ENVELOPE, LOUDNESS_ENVELOPE) for i in (0, 1, 2, 3, 5)}
INNER_ONLY = {*START, *END, *LOOP, *LOOP_END, FIXED_KEY, MODE, CHOKE, ROOT}  # all others add up, section 8.5
Zone = dict[int, int]  # generator -> amount


@dataclass(frozen=True)
class Envelope:
    """Rises from 0 to 1, stays, falls towards 1 - `drop`; `decay_s` and `release_s` are the times of a whole fall."""

    delay_s: float
    attack_s: float
    hold_s: float
    decay_s: float
    drop: float  # of 1, at least 0; the caller decides its unit and the scale on which the fall is linear
    release_s: float


@dataclass(frozen=True, eq=False)
class KeyedSample:
    """One sample as one key plays it."""

    samples: NDArray[np.int16]  # (S,)
    loop: tuple[int, int] | None  # from, up to
    rate_hz: float  # samples a second at this key, with tuning
    gain: float
    pan: float  # -0.5 left … 0.5 right
    cutoff_cents: float  # above 8.176 Hz
    sweep_cents: float  # added to the cutoff at the height of its envelope
    resonance_db: float
    loudness: Envelope  # a fall of 1 is 100 dB
    sweep: Envelope
    choke: int  # class: a later note of it ends this one; 0: none does


class SoundFont:
    """An open SoundFont. Raises ConfigError for a file that is missing, damaged or not a SoundFont 2."""

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            allowed = "a .sf2 file, or null for the one built in"
            raise ConfigError("soundfont", got=path, why="no such file", allowed=allowed)
        try:
            chunks = dict(_chunks(path.read_bytes()))
            if missing_chunks := {*ROWS, b"smpl"} - chunks.keys():
                raise ValueError(f"it has no {min(missing_chunks).decode()}")
            self._samples = np.frombuffer(chunks[b"smpl"], dtype="<i2")
            tables = {name: np.frombuffer(chunks[name], dtype=row).tolist() for name, row in ROWS.items()}
            self._headers = tables[b"shdr"][:-1]
            instruments = list(_zones(tables[b"inst"], tables[b"ibag"], tables[b"igen"], SAMPLE))
            presets = list(_zones(tables[b"phdr"], tables[b"pbag"], tables[b"pgen"], INSTRUMENT))
            self._presets = {
                (head[2], head[1]): [(outer, inner) for outer in zones for inner in instruments[outer[INSTRUMENT]]]
                for head, zones in zip(tables[b"phdr"][:-1], presets, strict=True)
            }
            self._regions: dict[tuple[tuple[int, int], int, int], KeyedSample] = {}
            for layers in self._presets.values():  # reports broken references now, not in the middle of a piece
                for zones in layers:
                    self._region(zones, 60)
        except (KeyError, IndexError, ValueError, OverflowError, struct.error) as error:
            reason = " ".join(str(error).split())
            why = f"damaged, or not a SoundFont 2 ({reason})"
            raise ConfigError("soundfont", got=path, why=why, allowed="another .sf2 file") from None
        if not self._presets:
            raise ConfigError("soundfont", got=path, why="no instruments in it", allowed="another .sf2 file")

    def regions(self, program: int, is_drums: bool, key: int, velocity: int) -> list[KeyedSample]:
        """The regions that sound together for one note, of this program or the next lower one."""
        bank = DRUM_BANK if is_drums else 0
        lower = [p for b, p in self._presets if b == bank and p <= program]
        preset = (bank, max(lower)) if lower else min(self._presets)
        regions = []
        for place, zones in enumerate(self._presets[preset]):
            if all(_holds(zone, KEYS, key) and _holds(zone, VELOCITIES, velocity) for zone in zones):
                # the same objects for the same key: the caller renders each once
                if (preset, place, key) not in self._regions:
                    self._regions[preset, place, key] = self._region(zones, key)
                regions.append(self._regions[preset, place, key])
        return regions

    def _region(self, zones: tuple[Zone, Zone], key: int) -> KeyedSample:
        outer, inner = zones

        def get(generator: int) -> int:
            outer_amount = 0 if generator in INNER_ONLY else outer.get(generator, 0)
            return inner.get(generator, DEFAULTS.get(generator, 0)) + outer_amount

        def place(base: int, generators: tuple[int, int]) -> int:
            return int(base) + get(generators[0]) + 32768 * get(generators[1])

        def envelope(first: int, full: float) -> Envelope:
            cents = [get(first + i) for i in (0, 1, 2, 3, 5)]
            cents[2] += (60 - key) * get(first + 6)
            cents[3] += (60 - key) * get(first + 7)
            delay, attack, hold, decay, release = (2 ** (min(max(c, -12000), 8000) / 1200) for c in cents)
            return Envelope(delay, attack, hold, decay, min(max(get(first + 4), 0) / full, 1.0), release)

        _, first, last, loop, loop_end, sample_hz, root, cents, _, _ = self._headers[inner[SAMPLE]]
        first, last, loop, loop_end = (
            place(base, by) for base, by in ((first, START), (last, END), (loop, LOOP), (loop_end, LOOP_END))
        )
        if not 0 <= first < last <= len(self._samples) or not 0 < sample_hz <= 400_000:
            raise ValueError(f"a sample from {first} to {last} of {len(self._samples)}, at {sample_hz} Hz")
        root = get(ROOT) if get(ROOT) >= 0 else root if root < 128 else 60
        played_key = get(FIXED_KEY) if get(FIXED_KEY) >= 0 else key
        semitones = ((played_key - root) * get(SCALE) + 100 * get(COARSE_TUNE) + get(FINE_TUNE) + cents) / 100
        return KeyedSample(
            samples=self._samples[first:last],
            loop=(loop - first, loop_end - first) if get(MODE) & 1 and first <= loop < loop_end - 1 < last else None,
            rate_hz=sample_hz * 2 ** (min(max(semitones, -120), 120) / 12),
            gain=10 ** (-max(get(ATTENUATION), 0) / 200),
            pan=min(max(get(PAN) / 1000, -0.5), 0.5),
            cutoff_cents=get(CUTOFF),
            sweep_cents=get(SWEEP),
            resonance_db=min(max(get(RESONANCE), 0), 960) / 10,
            loudness=envelope(LOUDNESS_ENVELOPE, 1000),
            sweep=envelope(SWEEP_ENVELOPE, 1000),
            choke=get(CHOKE),
        )


def _chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The leaves of a RIFF file, also inside its lists; a chunk ends with the file."""
    if data[:4] != b"RIFF" or data[8:12] != b"sfbk":
        raise ValueError(f"it begins with {data[:4]!r}, SoundFonts begin with b'RIFF'")
    at = 12
    while at + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, at)
        if name == b"LIST":
            at += 12  # its chunks follow like any others
            continue
        yield name, data[at + 8 : at + 8 + size]
        at += 8 + size + size % 2


def _zones(heads: list[Any], bags: list[Any], generators: list[Any], target: int) -> Iterator[list[Zone]]:
    """The zones of every preset or instrument that lead to a `target`; a first other zone gives defaults, section
    7.3."""
    first_bag = 3 if target == INSTRUMENT else 1
    for head, following in pairwise(heads):
        zones, global_zone = [], Zone()
        for bag in range(head[first_bag], following[first_bag]):
            zone = Zone(generators[bags[bag][0] : bags[bag + 1][0]])
            if target in zone:
                zones.append(global_zone | zone | {target: zone[target] & 0xFFFF})
            elif bag == head[first_bag]:
                global_zone = zone
        yield zones


def _holds(zone: Zone, generator: int, value: int) -> bool:
    lowest, highest = divmod(zone.get(generator, 127 << 8) & 0xFFFF, 256)[::-1]
    return lowest <= value <= highest
