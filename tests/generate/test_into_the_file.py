"""What a person gives comes back: new music goes into the person's own file, from commands and from Python."""

import io
import re
from collections import Counter
from dataclasses import replace

import mido
import numpy as np
import pytest
from conftest import ok, refused, run

import musictx
from musictx.music.grid import grid_to_score, in_steps, lines_of_grid, score_to_grid
from musictx.music.midi_file import read_events
from musictx.music.notation.midi import from_midi
from musictx.music.notation.write import to_musicxml
from musictx.music.project import Line, Project
from musictx.music.read import read_bytes, read_tracks, whole
from musictx.music.score import Score
from musictx.tokenizers.rules import Rules

QUARTER = 480


def band(path):
    """A DAW project: a tempo map, violin, cello, drums, bends and a marker; eight bars in 4/4, after an upbeat."""
    midi = mido.MidiFile(type=1, ticks_per_beat=QUARTER)
    conductor = mido.MidiTrack([mido.MetaMessage("time_signature", numerator=1, denominator=4)])
    conductor.append(mido.MetaMessage("time_signature", numerator=4, denominator=4, time=QUARTER))
    conductor.append(mido.MetaMessage("marker", text="verse"))
    conductor += [mido.MetaMessage("set_tempo", tempo=500_000 + 10_000 * k, time=QUARTER) for k in range(20)]
    midi.tracks.append(conductor)
    for name, channel, program, low in (("Violin", 0, 40, 67), ("Cello", 1, 42, 48), ("Drums", 9, None, 36)):
        track = mido.MidiTrack([mido.MetaMessage("track_name", name=name)])
        if program is not None:
            track.append(mido.Message("program_change", channel=channel, program=program))
        for k in range(33):
            pitch = low if program is None else low + (0, 4, 7, 12, 7, 4)[k % 6]
            track.append(mido.Message("note_on", channel=channel, note=pitch, velocity=33 + k))
            if channel == 0:
                track.append(mido.Message("pitchwheel", channel=0, pitch=64 * k, time=100))
            track.append(mido.Message("note_off", channel=channel, note=pitch, time=380 if channel == 0 else 480))
        midi.tracks.append(track)
    midi.save(path)
    return path


def events(path):
    return read_events(whole(read_bytes(path), path)).tracks


@pytest.fixture
def project(tmp_path):
    return band(tmp_path / "band.mid")


def test_a_continuation_keeps_every_event_of_the_seed(world, project, tmp_path):
    words = ["musictx", "generate", project, f"bundle={world.bundle}", "length_seconds=3", "out=o"]
    done = ok([*words, "from_s=20.49"], tmp_path)  # where it ends
    assert re.search(
        r"band-1\.mid: new notes begin \d+ ms from the sixteenths on average, the seed's 0 ms\n", done.stdout
    )
    was, now = events(project), events(tmp_path / "o" / "band-1.mid")
    assert now[:4] == was
    (added,) = now[4:]
    assert added.name == "musictx"
    assert min(event.tick for event in added.events if event.begins) >= max(track.end for track in was[1:])
    (twin,) = musictx.load(world.bundle).continue_midi(project, seconds=3, from_s=20.49)
    assert read_events(twin.midi()).tracks == now
    twin.write(tmp_path / "twin.mid")
    assert events(tmp_path / "twin.mid") == now


def test_a_score_that_cannot_be_written_is_an_error_and_the_music_is_there(world, tmp_path):
    done = run(
        ["musictx", "generate", "elise", f"bundle={world.bundle}", "length_seconds=3", "out=o.musicxml"], tmp_path
    )
    assert (done.returncode, "not written: " in done.stderr) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["o.mid"]


def test_a_seed_that_is_cut_keeps_its_tempo_map_and_its_names(world, project, tmp_path):
    ok(
        [
            "musictx",
            "generate",
            project,
            f"bundle={world.bundle}",
            "from_s=5",
            "start=end",
            "length_seconds=3",
            "out=o",
        ],
        tmp_path,
    )
    was, now = events(project), events(tmp_path / "o" / "band-1.mid")
    assert now[0] == was[0]
    assert [track.name for track in now] == ["", "Violin", "Cello", "Drums", "musictx"]
    join = now[4].events[-1].tick
    for before, after in zip(was[1:], now[1:4], strict=True):
        kept = [event for event in after.events if event in before.events]
        assert [event for event in before.events if event.tick < min(e.tick for e in now[4].events if e.begins)][
            :20
        ] == kept[:20]
        assert after.end <= max(before.end, join)
    seed = read_tracks(project.read_bytes(), "").merge(True)
    back = read_tracks((tmp_path / "o" / "band-1.mid").read_bytes(), "")
    kept = [t.score for t in back.tracks if t.name in ("Violin", "Cello", "Drums")]
    assert sum(map(len, kept)) == int((seed.onset_s < 5 - 1e-3).sum())
    assert max(score.duration_s for score in kept) <= 5.001


def test_only_new_notes_lie_where_they_will_lie_in_the_project(world, project, tmp_path):
    words = ["musictx", "generate", project, f"bundle={world.bundle}", "from_s=5", "length_seconds=3"]
    ok([*words, "out=with"], tmp_path)
    ok([*words, "out=without", "include_seed=false"], tmp_path)
    both, new = (events(tmp_path / name / "band-1.mid") for name in ("with", "without"))
    assert new[-1] == both[-1]
    assert new[0] == both[0]
    assert [event for track in new[:-1] for event in track.events if event.channel is not None] == []
    ok([*words, "out=alone", "include_seed=false", "alone=true"], tmp_path)
    alone = musictx.read_midi(tmp_path / "alone" / "band-1.mid")
    assert alone.onset_s[0] < 3
    assert len(events(tmp_path / "alone" / "band-1.mid")) == 2


def test_a_fill_keeps_all_that_is_not_a_note_in_its_gap(filling, project, tmp_path):
    ok(["musictx", "generate", f"infill={project}", f"bundle={filling}", "from_s=4", "to_s=6", "out=o"], tmp_path)
    was, now = events(project), events(tmp_path / "o" / "band-1.mid")
    assert {track.name for track in now[4:]} <= {"musictx"}  # where a pitch sounds already
    assert (now[0], now[3]) == (was[0], was[3])  # tempo map and drums
    tempo_map = read_tracks(project.read_bytes(), "", one_tempo=True).tempo_map  # the model counts beats
    first, last = (int(tempo_map.ticks(np.array([at_s]))[0]) for at_s in (4.0, 6.0))
    for before, after in zip(was[1:3], now[1:3], strict=True):
        outside = [e for e in before.events if not (e.begins or e.ends) or not first <= e.tick <= last]
        assert [e for e in after.events if e in outside] == outside
    part = [
        "musictx",
        "generate",
        f"infill={project}",
        f"bundle={filling}",
        "from_s=4",
        "to_s=6",
        "part=Cello",
        "out=p",
    ]
    ok(part, tmp_path)
    now = events(tmp_path / "p" / "band-1.mid")
    assert (now[1], now[3]) == (was[1], was[3])
    assert now[2] != was[2]
    assert "part=Flute" in refused([*part[:-2], "part=Flute", "out=q"], tmp_path)


def test_what_goes_between_two_files_keeps_both(filling, world, project, tmp_path):
    words = [f"between={project},{world.hymn}", f"bundle={filling}", "length_bars=1", "out=o"]
    ok(["musictx", "generate", *words], tmp_path)
    one, two, now = events(project), events(world.hymn), events(tmp_path / "o" / f"band-to-{world.hymn.stem}-1.mid")
    new = [track for track in now if track.name == "musictx"]
    assert new
    assert [t.name for t in now] == [t.name for t in (*one, *new, *two)]
    later = next(e.tick for e in now[0].events if e.data[:2] == b"\xff\x51" and e not in one[0].events)
    assert [e for e in now[0].events if e.tick < later] == one[0].events
    assert now[1:4] == one[1:]  # with as many ticks a quarter
    for before, after in zip(two, now[-len(two) :], strict=True):
        begun = [e._replace(tick=e.tick + later) for e in before.events if e.begins]
        assert [e for e in after.events if e.begins] == begun
    (music,) = musictx.load(filling).fill_between(project, world.hymn, bars=1)
    assert read_events(music.midi()).tracks == now
    assert len(read_events(music.midi(alone=True)).tracks) < len(now)


@pytest.mark.parametrize("staves", [("S", "A", "T", "B"), ("SA", "TB"), ("S", "ATB"), ("SATB",)])
def test_each_voice_goes_on_in_its_part(filling, world, tmp_path, staves):
    hymn = read_tracks(world.hymn.read_bytes(), world.hymn)
    lines = dict(zip("SATB", lines_of_grid(score_to_grid(hymn.merge()), hymn.quarter_s), strict=True))
    parts = [(voices, Score.merge([lines[each] for each in voices])) for voices in staves]
    loud = [Line(name, replace(score, velocity=np.full(len(score), 70 + k))) for k, (name, score) in enumerate(parts)]
    (tmp_path / "choir.mid").write_bytes(Project.new(hymn.quarter_s).beside(loud))
    ok(["musictx", "generate", "choir.mid", f"bundle={filling}", "length_bars=2", "out=o"], tmp_path)
    was, now = events(tmp_path / "choir.mid"), events(tmp_path / "o" / "choir-1.mid")
    assert [track.name for track in now] == [track.name for track in was]
    for before, after in zip(was[1:], now[1:], strict=True):  # a unison within a staff is a track of its own
        old, new = ([e for e in track.events if e.begins] for track in (before, after))
        assert new[: len(old)] == old
        assert {(e.channel, e.data[2]) for e in new} == {(old[0].channel, 70 + staves.index(before.name))}
    assert sum(e.begins for track in now for e in track.events) > sum(e.begins for track in was for e in track.events)
    read = read_tracks((tmp_path / "o" / "choir-1.mid").read_bytes(), "").tracks
    for track in read:
        late = track.score.clip(hymn.merge().duration_s, track.score.duration_s)
        sounding = (late.onset_s <= late.onset_s[:, None] + 1e-6) & (late.offset_s > late.onset_s[:, None] + 1e-6)
        assert sounding.sum(1).max(initial=0) <= len(track.name)


@pytest.mark.parametrize("crosses", [False, True])
def test_each_voice_of_a_gap_goes_back_to_its_part(filling, world, tmp_path, crosses):
    hymn = read_tracks(world.hymn.read_bytes(), world.hymn)
    lines = lines_of_grid(score_to_grid(hymn.merge()), hymn.quarter_s)
    if crosses:  # in every other bar the two violins change their places
        odd = [in_steps(line)[0] // 16 % 2 == 1 for line in lines[:2]]
        first, second = (lines[k].select(~odd[k]) for k in (0, 1))
        lines[:2] = [Score.merge([first, lines[1].select(odd[1])]), Score.merge([second, lines[0].select(odd[0])])]
    names = ("Violin I", "Violin II", "Viola", "Cello")
    (tmp_path / "four.mid").write_bytes(Project.new(hymn.quarter_s).beside([*map(Line, names, lines)]))
    (music,) = musictx.load(filling).fill(tmp_path / "four.mid", from_bar=2, to_bar=2)
    now = read_tracks(music.midi(), "").tracks
    assert tuple(track.name for track in now if len(track.score)) == names
    for track in now:
        steps = in_steps(track.score)[0]
        new = track.score.select((steps >= 16) & (steps < 32))
        assert len(new) > 4
        assert (new.offset_s[:-1] <= new.onset_s[1:] + 1e-6).all()


def test_of_voices_in_unison_the_new_note_is_that_of_the_voice_that_begins_it(filling, world, tmp_path):
    hymn = read_tracks(world.hymn.read_bytes(), world.hymn)
    lines = lines_of_grid(score_to_grid(hymn.merge()), hymn.quarter_s)
    (tmp_path / "four.mid").write_bytes(Project.new(hymn.quarter_s).beside([*map(Line, "abcd", lines)]))
    rules = Rules(voice_order=False, voice_ranges=False, no_parallels=False)
    pieces = musictx.load(filling).fill(tmp_path / "four.mid", from_bar=1, to_bar=2, variations=12, rules=rules)
    held = 0
    for music in pieces:
        parts = {track.name: track.score for track in read_tracks(music.midi(), "").tracks if len(track.score)}
        assert [*parts] == [*"abcd"]
        for at, pitch in zip(music.score.onset_s, music.score.pitch, strict=True):
            held += any(
                ((each.pitch == pitch) & (each.onset_s < at - 0.01) & (each.offset_s > at + 0.01)).any()
                for each in parts.values()
            )
    assert held


def test_voices_stay_with_the_organ_beside_bells_of_a_note(filling, tmp_path):
    chords = [[72, 67, 60, 48], [74, 67, 59, 43], [76, 69, 57, 45], [72, 64, 60, 48]]
    hymn = grid_to_score(np.repeat(np.array(chords * 4), 4, axis=0))
    last_s = hymn.onset_s.max()
    bells = [
        Line(f"Bell {k}", hymn.select((hymn.onset_s == last_s) & (hymn.pitch == pitch)))
        for k, pitch in enumerate(hymn.pitch[hymn.onset_s == last_s][:3])
    ]
    (tmp_path / "bells.mid").write_bytes(Project.new(hymn.quarter_s).beside([Line("Organ", hymn), *bells]))
    (music,) = musictx.load(filling).continue_midi(tmp_path / "bells.mid", bars=2)
    tracks = Counter[str]()
    for track in read_tracks(music.midi(), "").tracks:
        tracks[track.name] += len(track.score)
    assert tracks["Organ"] > len(hymn)
    assert [tracks[bell.name] for bell in bells] == [len(bell.score) for bell in bells]


def test_bars_after_an_upbeat(world, tmp_path):
    midi = mido.MidiFile(type=1, ticks_per_beat=QUARTER)
    track = mido.MidiTrack([mido.MetaMessage("time_signature", numerator=1, denominator=8)])
    track.append(mido.MetaMessage("set_tempo", tempo=400_000))
    track.append(mido.MetaMessage("time_signature", numerator=6, denominator=8, time=240))
    notes = mido.MidiTrack()
    for k in range(25):
        notes.append(mido.Message("note_on", note=60 + k % 8, velocity=80))
        notes.append(mido.Message("note_off", note=60 + k % 8, time=240))
    midi.tracks += [track, notes]
    midi.save(tmp_path / "upbeat.mid")
    (music,) = musictx.load(world.bundle).continue_midi(tmp_path / "upbeat.mid", bars=4, from_s=5.0)
    assert music.score.duration_s <= 5.0 + 4 * 1.2 + 1e-6
    assert music.score.duration_s > 5.0 + 2.0
    back = mido.MidiFile(file=io.BytesIO(music.midi()))
    signatures = [(m.numerator, m.denominator) for t in back.tracks for m in t if m.type == "time_signature"]
    assert signatures == [(1, 8), (6, 8)]
    (first,) = musictx.load(world.bundle).continue_midi(tmp_path / "upbeat.mid", seconds=1, seed_bars=1)
    assert first.new_from_s == pytest.approx(0.2 + 1.2)  # the upbeat, and bar 1


def test_an_accompaniment_goes_into_the_melodys_file(tmp_path, filling):
    from untrained import write_harmoniser

    melody = band(tmp_path / "band.mid")
    bundle = write_harmoniser(tmp_path / "voices.safetensors")
    ok(["musictx", "accompany", melody, f"bundle={bundle}", "rules.voice_ranges=false", "out=o"], tmp_path)
    was, now = events(melody), events(tmp_path / "o" / "band-1.mid")
    assert [now[k] for k in (0, 1, 3)] == [was[k] for k in (0, 1, 3)]
    assert now[2].events == [e for e in was[2].events if not (e.begins or e.ends)]  # the cello is not the melody
    assert {track.name for track in now[4:]} <= {"alto", "tenor", "bass"}
    again = read_tracks((tmp_path / "o" / "band-1.mid").read_bytes(), "").merge(True)
    assert again.duration_s >= read_tracks(melody.read_bytes(), "").merge(True).duration_s


def test_a_voice_that_is_written_again_stays_on_its_track(tmp_path):
    from untrained import write_harmoniser

    midi = mido.MidiFile(type=1, ticks_per_beat=QUARTER)
    for channel, (name, pitches) in enumerate(
        {
            "S": [72, 71, 69, 67] * 3,
            "A": [67, 67, 69, 67] * 3,
            "T": [60, 59, 60, 60] * 3,
            "B": [48, 43, 45, 48] * 3,
        }.items()
    ):  # soprano and alto meet
        track = mido.MidiTrack([mido.MetaMessage("track_name", name=name)])
        for pitch in pitches:
            track.append(mido.Message("note_on", channel=channel, note=pitch, velocity=80))
            track.append(mido.Message("note_off", channel=channel, note=pitch, time=QUARTER))
        midi.tracks.append(track)
    midi.save(tmp_path / "four.mid")
    bundle = write_harmoniser(tmp_path / "voices.safetensors")
    words = ["rewrite=A", "from_bar=2", "to_bar=2", "rules.voice_ranges=false", "rules.voice_order=false", "out=o"]
    ok(["musictx", "accompany", tmp_path / "four.mid", f"bundle={bundle}", *words], tmp_path)
    was, now = events(tmp_path / "four.mid"), events(tmp_path / "o" / "four-1.mid")
    from_tick, to_tick = 4 * QUARTER, 8 * QUARTER
    assert [now[k] for k in (0, 2, 3)] == [was[k] for k in (0, 2, 3)]
    outside = [[e for e in each[1].events if not from_tick <= e.tick - e.ends < to_tick] for each in (was, now)]
    assert outside[0] == outside[1]
    assert len(now) == 4


def test_voices_without_new_notes_leave_the_file_as_it_is(filling, world):
    (music,) = musictx.load(filling).continue_midi(world.hymn, bars=1)
    at_s = music.new_from_s
    old, *voices = (each.select(each.onset_s < at_s).clip(0.0, at_s) for each in (music.score, *music.lines))
    silent = replace(music, score=old, lines=tuple(voices))
    assert not len(silent.new_notes)
    was, now = (read_tracks(data, "").merge() for data in (world.hymn.read_bytes(), silent.midi()))
    assert now.pitch.tolist() == was.select(was.onset_s < at_s - 1e-6).pitch.tolist()


def test_the_seed_says_the_key_that_its_file_does_not(filling, world, tmp_path):
    hymn = read_tracks(world.hymn.read_bytes(), world.hymn)
    (tmp_path / "high.mid").write_bytes(Project.new(hymn.quarter_s).beside([Line("", hymn.merge().transpose(4))]))
    alone = from_midi((tmp_path / "high.mid").read_bytes())[0]
    assert not alone.keys
    signed = re.findall(rb"<fifths>(-?\d+)<", to_musicxml(alone)[0])
    for seed in range(3):  # untrained, so new notes are in any key
        for include in (True, False):
            (music,) = musictx.load(filling).continue_midi(
                tmp_path / "high.mid", bars=6, include_seed=include, random_seed=seed
            )
            music.write(tmp_path / "o.musicxml")
            assert set(re.findall(rb"<fifths>(-?\d+)<", (tmp_path / "o.musicxml").read_bytes())) == set(signed)
