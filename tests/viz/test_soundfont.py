"""SoundFonts made by hand, so that every number that is read is known."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from musictx.errors import ConfigError
from musictx.music.score import Score
from musictx.viz.sound import GENERAL_MIDI, render
from musictx.viz.soundfont import Envelope, SoundFont

RATE = 22_050
TONE = np.rint(20_000 * np.sin(2 * np.pi * np.arange(2205) * 440 / RATE)).astype("<i2")  # 44 periods of A4
KEYS, VELOCITIES, PAN, ATTENUATION, FINE, SAMPLE, MODE, ROOT, INSTRUMENT = 43, 44, 17, 48, 52, 53, 54, 58, 41


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def font_bytes(zones, preset_zones=({INSTRUMENT: 0},), program=0, bank=0, samples=TONE):
    """One preset, one instrument, one sample recorded at key 69; `zones` are dicts of generators."""

    def bags(zones):
        starts = np.cumsum([0, *(len(z) for z in zones)])
        return b"".join(struct.pack("<HH", start, 0) for start in starts)

    def generators(zones):
        return b"".join(struct.pack("<Hh", *pair) for zone in zones for pair in zone.items())

    tables = {
        b"phdr": struct.pack("<20sHHHIII", b"P", program, bank, 0, 0, 0, 0)
        + struct.pack("<20sHHHIII", b"EOP", 0, 0, len(preset_zones), 0, 0, 0),
        b"pbag": bags(preset_zones),
        b"pmod": b"",
        b"pgen": generators(preset_zones),
        b"inst": struct.pack("<20sH20sH", b"I", 0, b"EOI", len(zones)),
        b"ibag": bags(zones),
        b"imod": b"",
        b"igen": generators(zones),
        b"shdr": struct.pack("<20sIIIIIBbHH", b"A4", 0, len(samples), 0, len(samples), RATE, 69, 0, 0, 1)
        + struct.pack("<20sIIIIIBbHH", b"EOS", 0, 0, 0, 0, 0, 0, 0, 0, 0),
    }
    pdta = b"pdta" + b"".join(chunk(name, data) for name, data in tables.items())
    body = b"sfbk" + chunk(b"LIST", b"sdta" + chunk(b"smpl", samples.tobytes())) + chunk(b"LIST", pdta)
    return chunk(b"RIFF", body)


def font(tmp_path, *zones, **settings):
    path = tmp_path / "own.sf2"
    path.write_bytes(font_bytes(zones, **settings))
    return SoundFont(path)


def note(key=69, velocity=127, program=0, seconds=1.0):
    return Score([0.0], [seconds], [key], [velocity], program=[program])


def strongest_hz(audio, rate=44_100):
    spectrum = np.abs(np.fft.rfft(audio[:rate].sum(1)))
    return int(spectrum.argmax()) * rate / len(audio[:rate])


def test_every_number_of_a_region(tmp_path):
    zone = {KEYS: 72 << 8 | 60, PAN: -250, ATTENUATION: 200, FINE: 50, MODE: 1, 8: 6900, 11: 1200, 9: 30, 57: 3}
    zone |= {33: 0, 34: 1200, 35: -1200, 36: 0, 37: 400, 38: -2400, SAMPLE: 0}
    (region,) = font(tmp_path, zone).regions(0, False, 69, 100)
    assert region.rate_hz == pytest.approx(RATE * 2 ** (0.5 / 12))
    assert (region.pan, region.gain, region.loop, region.choke) == (-0.25, 0.1, (0, 2205), 3)
    assert (region.cutoff_cents, region.sweep_cents, region.resonance_db) == (6900, 1200, 3.0)
    assert region.loudness == Envelope(delay_s=1.0, attack_s=2.0, hold_s=0.5, decay_s=1.0, drop=0.4, release_s=0.25)
    assert font(tmp_path, zone).regions(0, False, 59, 100) == []


def test_the_preset_adds_and_a_zone_without_a_sample_gives_defaults(tmp_path):
    shared, layers = {ATTENUATION: 100, PAN: 100}, [{PAN: -100, SAMPLE: 0}, {VELOCITIES: 63 << 8, SAMPLE: 0}]
    sound = font(tmp_path, shared, *layers, preset_zones=({ATTENUATION: 100}, {INSTRUMENT: 0}))
    loud, soft = sound.regions(0, False, 69, 100), sound.regions(0, False, 69, 40)
    assert [(r.gain, r.pan) for r in loud] == [(0.1, -0.1)]
    assert [(r.gain, r.pan) for r in soft] == [(0.1, -0.1), (0.1, 0.1)]


def test_a_missing_program_is_the_next_lower_one(tmp_path):
    sound = font(tmp_path, {SAMPLE: 0}, program=40)
    assert len(sound.regions(41, False, 60, 64)) == len(sound.regions(3, False, 60, 64)) == 1
    assert len(sound.regions(0, True, 60, 64)) == 1
    assert sound.regions(3, False, 60, 1)[0] is sound.regions(3, False, 60, 100)[0]  # the same object for the same key


@pytest.mark.parametrize(("key", "hz"), [(57, 220), (76, 659)])
def test_a_looped_sample_continues_at_its_pitch(tmp_path, key, hz):
    audio = render(note(key), font(tmp_path, {MODE: 1, SAMPLE: 0}))
    assert abs(strongest_hz(audio) - hz) <= 1
    assert np.abs(audio[40_000:44_000]).max() > 0.4


def test_a_sample_that_does_not_loop_ends(tmp_path):
    audio = render(note(), font(tmp_path, {SAMPLE: 0}))
    assert np.abs(audio[:4410]).max() > 0.4
    assert np.abs(audio[4420:]).max(initial=0) == 0


def test_pan_and_the_keyboard_of_a_piano(tmp_path):
    left, right = np.abs(render(note(program=40), font(tmp_path, {PAN: -500, SAMPLE: 0}, program=40))).max(0)
    assert (left > 0.5, right) == (True, 0.0)
    sound = font(tmp_path, {SAMPLE: 0})
    low, high = (np.abs(render(note(key), sound)).max(0) for key in (40, 90))
    assert low[0] > low[1]
    assert high[0] < high[1]


def test_a_release_fades_by_what_the_envelope_says(tmp_path):
    release_s = 1.0  # by 100 dB
    audio = render(note(seconds=0.5), font(tmp_path, {MODE: 1, 38: 0, SAMPLE: 0}))
    before, after = (np.abs(audio[at : at + 441]).max() for at in (21_600, 22_050 + 13_230))
    assert 20 * np.log10(after / before) == pytest.approx(-100 * 0.3 / release_s, abs=1.5)
    assert len(audio) == round((0.5 + 0.8) * 44_100)


def test_the_filter_takes_what_lies_above_it(tmp_path):
    def level(cutoff):  # cents above 8.176 Hz; A4 lies at 6900
        return np.abs(render(note(), font(tmp_path, {MODE: 1, 8: cutoff, SAMPLE: 0})))[10_000:40_000].max()

    assert 20 * np.log10(level(6900) / level(13_500)) == pytest.approx(-3.0, abs=0.1)
    assert 20 * np.log10(level(5700) / level(13_500)) == pytest.approx(-12.3, abs=0.2)  # an octave above: 1 / sqrt(17)


def test_a_closed_hi_hat_ends_an_open_one(tmp_path):
    sound = font(tmp_path, {MODE: 1, 38: -12000, 57: 1, SAMPLE: 0})
    alone = render(note(seconds=2.0), sound)
    both = render(Score([0.0, 0.5], [2.0, 0.6], [69, 69], [127, 1]), sound)
    assert np.abs(alone[30_000:60_000]).max() > 0.4
    assert np.abs(both[30_000:60_000]).max(initial=0) < 0.01


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"MThd", "b'MThd'"),
        (font_bytes([{SAMPLE: 0}])[:40], "no ibag"),
        (font_bytes([{SAMPLE: 7}]), "list index"),
        (font_bytes([{SAMPLE: 0, 0: 9000}]), "9000 to 2205 of 2205, at 22050 Hz"),
    ],
)
def test_a_damaged_font_is_said_in_one_line(tmp_path, data, text):
    path = tmp_path / "bad.sf2"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=text) as refused:
        SoundFont(path)
    assert (refused.value.field, refused.value.got) == ("soundfont", path)


WHOLE = font_bytes([{SAMPLE: 0, MODE: 1}], samples=TONE[:100])


@given(st.integers(0, len(WHOLE) - 1), st.binary(min_size=1, max_size=4))
def test_no_damage_is_anything_but_a_user_error(tmp_path_factory, at, noise):
    for data in (WHOLE[:at], WHOLE[:at] + noise + WHOLE[at + len(noise) :]):
        path = tmp_path_factory.getbasetemp() / "odd.sf2"
        path.write_bytes(data)
        try:
            sound = SoundFont(path)
        except ConfigError:
            continue
        sound.regions(0, False, 60, 64)


def test_the_general_midi_font_has_every_program():
    sound = SoundFont(GENERAL_MIDI)
    assert all(sound.regions(program, False, 60, 80) for program in range(128))
    assert sum(bool(sound.regions(0, True, key, 80)) for key in range(35, 82)) == 47
