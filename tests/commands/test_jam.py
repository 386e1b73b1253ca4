"""musictx jam: files as the player, ports that are none, and what is said when something is missing."""

import _thread
import re
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import mido
import numpy as np
import pytest
from conftest import ok
from mido.ports import BaseInput, BaseOutput
from strategies import slowing

from musictx.commands.jam import JamConfig, check, check_files, jam
from musictx.config import app
from musictx.errors import ConfigError, UserError
from musictx.music.grid import grid_to_score
from musictx.music.midi_file import read_events
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers.rules import Rules


def phrase(path, start_s=0.0):
    """Eight notes, the last one ending after 2.4 s."""
    onset = start_s + 0.3 * np.arange(8)
    write_midi(Score(onset, onset + 0.3, np.arange(60, 68), np.full(8, 80), 0.6), path)
    return path


def whole_of(path):
    return read_events(path.read_bytes()).tracks


def command(world, cwd, *args, bundle=None, **changes):
    settings = {"bundle": bundle or world.bundle, "input": "phrase.mid", "output": "session.mid"} | changes
    return ["musictx", "jam", *(f"{k}={v}" for k, v in settings.items()), *args]


def tracks(path):
    """Each track's messages with their seconds, by its name."""
    midi = mido.MidiFile(path)
    tempo = next((m.tempo for m in midi.tracks[0] if m.type == "set_tempo"), 500_000)
    out = {}
    for track in midi.tracks:
        ticks = np.cumsum([m.time for m in track])
        seconds = [mido.tick2second(int(t), midi.ticks_per_beat, tempo) for t in ticks]
        out[track.name] = [(s, m) for s, m in zip(seconds, track, strict=True) if not m.is_meta]
    return out


def begins(timed):
    return [s for s, m in timed if m.type == "note_on" and m.velocity]


def all_let_go(timed):
    on: set[int] = set()
    for _, m in timed:
        if m.type in ("note_on", "note_off"):
            (on.add if m.type == "note_on" and m.velocity else on.discard)(m.note)
    return not on


@pytest.mark.parametrize("encoding", ["performance", "chorale"])
def test_a_file_is_answered_after_its_pause(world, tmp_path, encoding):
    bundle = world.bundle if encoding == "performance" else world.hymn_bundle
    phrase(tmp_path / "phrase.mid", 1.0)
    args = ["reply_seconds=3", "channel=3", "output=deep/session.mid"]
    said = ok(command(world, tmp_path, *args, bundle=bundle), tmp_path).stdout
    assert re.search(r"replies: 1; .*median \d+ ms, worst \d+ ms", said)
    assert re.search(r"session.mid: \d+.\d+ s, 8 notes .*, \d+ of", said)
    both = tracks(tmp_path / "deep/session.mid")
    assert list(both) == ["", "musictx"]
    assert whole_of(tmp_path / "deep/session.mid")[:-1] == whole_of(tmp_path / "phrase.mid")
    assert begins(both[""]) == pytest.approx(1 + 0.3 * np.arange(8), abs=0.002)
    at_s = np.array(begins(both["musictx"]))
    assert at_s[0] == pytest.approx(3.4 + 0.6, abs=0.004)
    assert both["musictx"][-1][0] <= 4.0 + 3.0 + 0.002
    assert all_let_go(both["musictx"])
    assert {m.channel for _, m in both["musictx"]} == {2}
    if encoding == "chorale":
        on_sixteenths(at_s, 0.15)  # of the file


def on_sixteenths(at_s, step_s):
    steps = (at_s - at_s[0]) / step_s
    assert steps == pytest.approx(np.rint(steps), abs=0.02)


def test_the_foot_is_recorded_and_heard(world, tmp_path):
    messages = [
        mido.Message("control_change", control=64, value=127),
        mido.Message("note_on", note=60, velocity=90, time=240),
        mido.Message("note_off", note=60, time=240),
        mido.Message("control_change", control=64, value=0, time=192),
    ]
    midi = mido.MidiFile(tracks=[mido.MidiTrack(messages)])  # 480 ticks are half a second
    midi.save(tmp_path / "phrase.mid")
    ok(command(world, tmp_path), tmp_path)
    both = tracks(tmp_path / "session.mid")
    assert [m.value for _, m in both[""] if m.type == "control_change"] == [127, 0]
    assert begins(both["musictx"])[0] == pytest.approx(0.5 + 0.6, abs=0.004)  # after the hand, not the foot
    own = read_midi(tmp_path / "session.mid")
    assert own.offset_s[0] - own.onset_s[0] == pytest.approx(0.45, abs=0.004)


def test_the_tempo_of_the_grid_is_what_is_asked(world, tmp_path):
    phrase(tmp_path / "phrase.mid")
    ok(command(world, tmp_path, "bpm=60", bundle=world.hymn_bundle), tmp_path)
    on_sixteenths(np.array(begins(tracks(tmp_path / "session.mid")["musictx"])), 0.25)


def play(callback, sent):
    """Plays a phrase at a port, and stops the program when the reply has begun to sound."""
    callback(mido.Message("clock"))
    for pitch in (60, 64, 67):
        callback(mido.Message("note_on", note=pitch, velocity=70))
        time.sleep(0.05)
        callback(mido.Message("note_off", note=pitch))
    until = time.monotonic() + 60
    while len(sent) < 3 and time.monotonic() < until:
        time.sleep(0.01)
    _thread.interrupt_main()


def test_ports_and_ctrl_c(world, tmp_path, monkeypatch, capsys):
    sent: list[mido.Message] = []
    opened: dict[str, Mock] = {}

    def open_input(name, callback):
        threading.Thread(target=play, args=(callback, sent), daemon=True).start()
        return opened.setdefault(name, Mock())

    def open_output(name):
        return opened.setdefault(name, Mock(send=sent.append))

    monkeypatch.setattr(mido, "get_input_names", lambda: ["Grand Piano 24:0", "Synth 28:0"])
    monkeypatch.setattr(mido, "get_output_names", lambda: ["Synth 28:0"])
    monkeypatch.setattr(mido, "open_input", open_input)
    monkeypatch.setattr(mido, "open_output", open_output)
    record = tmp_path / "mine.mid"
    config = JamConfig(str(world.bundle), "grand piano", "Synth 28:0", str(record))
    jam(replace(config, pause_s=0.1, reply_seconds=600.0))
    said = capsys.readouterr().out
    assert "stopped" in said
    assert re.search(r"replies: 1; .*median \d+ ms", said)
    assert re.search(r"at most \d+\.\d ms after", said)
    assert re.search(r"mine.mid: \d+.\d+ s, 3 notes .*, \d+ of", said)
    assert list(opened) == ["Synth 28:0", "Grand Piano 24:0"]
    assert all(port.close.called for port in opened.values())
    assert all_let_go([(0, message) for message in sent])
    assert len(begins(tracks(record)["player"])) == 3
    replies = [m for _, m in tracks(record)["musictx"] if m.type in ("note_on", "note_off")]
    assert len(replies) == len(sent)
    assert {m.channel for m in replies} == {1}  # not the player's own, with the player's pedal


@pytest.fixture
def backend(tmp_path, monkeypatch):
    """Asks mido to ask this function for its ports."""
    monkeypatch.chdir(tmp_path)
    phrase(tmp_path / "phrase.mid")

    def choose(get_devices):
        ports = SimpleNamespace(Input=BaseInput, Output=BaseOutput, get_devices=get_devices)
        monkeypatch.setitem(sys.modules, "ports_of_a_test", ports)
        mido.set_backend("ports_of_a_test")

    yield choose
    mido.set_backend()


def wrong(world, cwd, **changes):
    """What is wrong with the words of a command, said in this process."""
    with pytest.raises(ConfigError) as error:
        jam(app.settings(*command(world, cwd, **changes)[1:]))
    line = str(error.value)
    assert "\n" not in line
    assert not (cwd / "session.mid").exists()
    return line


def test_ports_that_are_not_there_and_those_that_are(world, tmp_path, backend):
    names = ("Grand Piano 24:0", "Synth 28:0")
    backend(lambda **_: [{"name": name, "is_input": True, "is_output": True} for name in names])
    line = wrong(world, tmp_path, input="Organ (big), 2")
    assert "input='Organ (big), 2': " in line
    line = wrong(world, tmp_path, output="0")  # more than one has it in its name
    assert "output=0: no such " in line
    backend(lambda **_: [{"name": name, "is_input": False, "is_output": False} for name in names])
    line = wrong(world, tmp_path, output="Synth")
    assert "output=Synth: " in line

    def silent(**_):
        raise OSError("no sequencer here.")

    backend(silent)
    assert "output=Piano: " in wrong(world, tmp_path, output="Piano")


def test_without_the_package_for_ports(world, tmp_path, backend, monkeypatch):
    mido.set_backend()
    monkeypatch.delitem(sys.modules, "mido.backends.rtmidi", raising=False)
    monkeypatch.setitem(sys.modules, "rtmidi", None)  # as if not installed
    for changes in ({"input": "Piano"}, {"output": "Piano"}):
        line = wrong(world, tmp_path, **changes)
        assert line.startswith(f"{next(iter(changes))}=Piano: ")
        assert "pip install 'musictx[jam]'" in line


def test_a_file_that_slows_down_is_judged_as_it_sounds_since_so_it_is_heard(tmp_path, monkeypatch, capsys):
    def stop(path, **_):
        raise UserError(path.stem)

    monkeypatch.setattr("musictx.commands.jam.open_playing", stop)
    chords = np.array([[72, 67, 64, 48], [71, 67, 62, 43], [72, 67, 64, 48]], np.int16)
    path = slowing(grid_to_score(np.repeat(chords, 4, axis=0)), tmp_path / "slow.mid")
    with pytest.raises(UserError, match="^piano$"):
        jam(JamConfig(input=str(path), output=str(tmp_path / "o.mid")))
    assert re.search(r"slow\.mid is not .*: 3 of 10 notes ", capsys.readouterr().out)


def test_players_without_music(world, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_midi(Score.empty(), tmp_path / "phrase.mid")
    for name, said in (("phrase.mid", "no notes"), ("none.mid", "no such")):
        with pytest.raises(UserError, match=f"{name}: .*{said}"):
            jam(app.settings(*command(world, tmp_path, input=name)[1:]))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"pause_s": float("nan")}, "pause_s=nan: give 0.05 to 60"),
        ({"channel": 0}, "channel=0: give 1 to 16"),
        ({"rules": Rules(masks=False)}, "masks=false: "),
        ({"rules": Rules(grid="1/16")}, "grid=1/16: a reply keeps to no grid"),
        ({"virtual": True}, "virtual=true: "),
    ],
)
def test_impossible_settings(settings, text):
    with pytest.raises(ConfigError, match=text):
        check(JamConfig(**{"input": "a.mid", "output": "b.mid"} | settings))


def test_files_that_could_not_be_written(tmp_path):
    there = tmp_path / "there.mid"
    there.touch()
    for output, record, text in (
        (str(there), None, "there.mid .*overwrite=true"),
        ("Piano", "mine.wav", "^record=mine.wav: .*[.]mid"),
        ("Piano", "mine.kar", "^record=mine.kar: .*[.]mid"),
        ("session.RMI", None, "^output=session.RMI: .*[.]mid"),
        ("a.mid", None, "input=, output= .*record="),
    ):
        config = JamConfig(input="a.mid", output=output, record=record)
        with pytest.raises(UserError, match=text):
            check_files([tmp_path.cwd() / config.output] if "mid" in config.output else [], config)
    with pytest.raises(UserError, match="^output=.*there.mid: a file is in its way"):
        check_files([there / "below.mid"], JamConfig(input="a.mid", output="b.mid"))
