import json
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import ok

from musictx.analysis.part_writing_report import rates, read_voices, rules_report
from musictx.commands.inspect import inspect
from musictx.config.app import settings
from musictx.errors import UserError
from musictx.music.grid import REST, by_height, grid_to_score
from musictx.music.project import Line, Project
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.music.write import write_midi

CROSSED = [(67, 64, 60, 48), (69, 60, 64, 50), (67, 64, 60, 48)]  # parallel fifths S-B; alto and tenor cross


def beats(chords):
    return np.repeat(np.array(chords), 4, axis=0).astype(np.int16)


def write_voices(path, chords, signature=(4, 4)):
    """A MIDI file with a track for each voice."""
    voices = []
    for voice in range(4):
        grid = np.full_like(beats(chords), REST)
        grid[:, voice] = beats(chords)[:, voice]
        voices.append(replace(grid_to_score(grid), program=np.array(voice)))
    write_midi(Score.merge(voices, 0.6), path, signature)
    return path


def report(path):
    return rules_report(read_tracks(read_bytes(path), path, one_tempo=True))


def test_the_shipped_chorale(tmp_path):
    out = ok(["musictx", "inspect", "midi=chorale", "rules=true"], tmp_path).stdout.splitlines()
    assert re.search(r"chorale\.mid: 8 beats in four voices; voices go by height", out[0])
    assert out[1].split() == ["rule", "count", "per", "100", "beats"]
    assert len(out) == 2 + 16
    assert re.fullmatch(r"parallel fifths +0 +0\.00", out[2])


def test_findings_are_named_by_bar_beat_and_voices(tmp_path, capsys):
    write_voices(tmp_path / "four.mid", CROSSED, (2, 4))
    inspect(settings("inspect", f"midi={tmp_path}/four.mid", "rules=true"))
    out = capsys.readouterr().out
    assert "3 beats in four voices; each track is a voice" in out
    assert re.search(r"^parallel fifths +2 +66\.67$", out, re.M)
    assert re.search(r"^parallel fifths \(.*\), at bar:beat 1:2 S-B, 2:1 S-B$", out, re.M)
    assert re.search(r"^crossing \(.*\), at bar:beat 1:2 A-T$", out, re.M)


def test_beside_a_store_as_json(world, capsys):
    inspect(settings("inspect", f"midi={world.hymn}", "rules=true", f"beside={world.hymn_store}", "json=true"))
    facts = json.loads(capsys.readouterr().out)
    assert (facts["beats"], facts["voices"], facts["beside"]) == (12, "by height", "hymns")
    assert [rule["rule"] for rule in facts["rules"]][:2] == ["parallel fifths", "parallel octaves"]
    one = {rule["rule"]: rule for rule in facts["rules"]}["one direction"]
    assert one["count"] == len(one["findings"]) > 0
    assert one["per_100_beats"] == pytest.approx(100 * one["count"] / 12, abs=1e-3)
    assert one["beside_per_100_beats"] > 0


def test_rates_count_the_beats_of_all_grids_together():
    grids = [beats(CROSSED), beats(CROSSED[:1] * 7)]
    assert rates(grids)["parallel fifths"] == pytest.approx(100 * 2 / 10)


def test_voices_by_height():
    assert by_height(beats([(60, 64, 67, 48)]))[0].tolist() == [67, 64, 60, 48]
    alone = by_height(beats([(72, 65, 59, 50), (REST, 66, REST, 49), (REST,) * 4, (48, REST, REST, REST)]))
    assert alone[::4].tolist() == [[72, 65, 59, 50], [REST, 66, REST, 49], [REST] * 4, [REST, REST, REST, 48]]


def test_bars_of_six_eighths(tmp_path):
    write_voices(tmp_path / "six.mid", [CROSSED[0]] * 4 + CROSSED[1:2], (6, 8))
    fifths = report(tmp_path / "six.mid")["rules"][0]["findings"]
    assert fifths == [{"bar": 2, "beat": 3, "voices": "S-B"}]


def test_music_that_is_not_four_voices_is_refused(world, tmp_path):
    write_midi(Score.empty(), tmp_path / "empty.mid")
    for words, said in (
        (["midi=elise"], "elise.mid is not four voices"),
        ([f"midi={tmp_path}/empty.mid"], "empty.mid is .*no notes"),
        (["midi=chorale", f"beside={world.store}"], "store has performance tokens"),
        (["midi=chorale", "beside="], "^beside=: "),
    ):
        with pytest.raises(UserError, match=said):
            inspect(settings("inspect", "rules=true", *words))


def test_a_seed_and_the_four_tracks_after_it_are_read_each_in_its_way(tmp_path):
    seed = Score([0.0, 0.0, 0.0, 0.0], [2.0] * 4, [72, 67, 64, 48], [80] * 4)
    lines = [  # alto and tenor cross
        Line(name, Score([2.0, 3.0], [3.0, 4.0], [pitch, pitch + up], [80, 80]))
        for name, pitch, up in (("soprano", 74, 2), ("alto", 67, -6), ("tenor", 60, 4), ("bass", 50, 0))
    ]
    it = Project.new(0.5)
    it = Project(it.beside([Line("seed", seed)]), it.clock)
    grid, voices = read_voices(read_tracks(it.continue_at(lines, 2.0), "a test", one_tempo=True))
    assert voices == "tracks and height"
    assert [grid[at].tolist() for at in (0, 16, 24)] == [[72, 67, 64, 48], [74, 67, 60, 50], [76, 61, 64, 50]]
