import json
import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import ok, refused

from musictx.analysis.part_writing_report import rates, rules_report, separate_voices
from musictx.commands.inspect import inspect
from musictx.config.app import settings
from musictx.errors import UserError
from musictx.music.grid import REST, by_height, grid_to_score
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


def test_findings_are_named_by_bar_beat_and_voices(tmp_path):
    write_voices(tmp_path / "four.mid", CROSSED, (2, 4))
    out = ok(["musictx", "inspect", "midi=four.mid", "rules=true"], tmp_path).stdout
    assert "3 beats in four voices; each track is a voice" in out
    assert re.search(r"^parallel fifths +2 +66\.67$", out, re.M)
    assert (
        "\nparallel fifths (two voices a fifth apart move in one direction to a fifth), at bar:beat 1:2 S-B, 2:1 S-B\n"
        in out
    )
    assert re.search(r"^crossing \(.*\), at bar:beat 1:2 A-T$", out, re.M)


def test_beside_a_store_as_json(world, tmp_path):
    words = ["musictx", "inspect", f"midi={world.hymn}", "rules=true", f"beside={world.hymn_store}", "json=true"]
    facts = json.loads(ok(words, tmp_path).stdout)
    assert (facts["beats"], facts["voices"]) == (12, "by height")
    assert [rule["rule"] for rule in facts["rules"]][:2] == ["parallel fifths", "parallel octaves"]
    one = {rule["rule"]: rule for rule in facts["rules"]}["one direction"]
    assert one["count"] == len(one["findings"]) > 0
    assert one["per_100_beats"] == pytest.approx(100 * one["count"] / 12, abs=1e-3)
    assert one["beside_per_100_beats"] > 0
    out = ok(words[:-1], tmp_path).stdout
    assert f"{one['per_100_beats']:.2f}" in out
    assert f"in {facts['beside']}" in out


def test_rates_count_the_beats_of_all_grids_together():
    grids = [beats(CROSSED), beats(CROSSED[:1] * 7)]
    assert rates(grids)["parallel fifths"] == pytest.approx(100 * 2 / 10)


def test_voices_are_tracks_only_where_each_has_one_note_at_a_time(tmp_path):
    path = write_voices(tmp_path / "four.mid", CROSSED)
    found = separate_voices(read_tracks(read_bytes(path), path, one_tempo=True))
    assert found is not None
    assert found.tolist() == beats(CROSSED).tolist()
    write_midi(grid_to_score(beats(CROSSED)), tmp_path / "one.mid")
    assert separate_voices(read_tracks(read_bytes(tmp_path / "one.mid"), "one.mid", one_tempo=True)) is None
    assert {r["rule"]: r["count"] for r in report(tmp_path / "one.mid")["rules"]}["crossing"] == 0


def test_voices_by_height():
    assert by_height(beats([(60, 64, 67, 48)]))[0].tolist() == [67, 64, 60, 48]
    alone = by_height(beats([(72, 65, 59, 50), (REST, 66, REST, 49), (REST,) * 4, (48, REST, REST, REST)]))
    assert alone[::4].tolist() == [[72, 65, 59, 50], [REST, 66, REST, 49], [REST] * 4, [REST, REST, REST, 48]]


def test_bars_of_six_eighths(tmp_path):
    write_voices(tmp_path / "six.mid", [CROSSED[0]] * 4 + CROSSED[1:2], (6, 8))
    fifths = report(tmp_path / "six.mid")["rules"][0]["findings"]
    assert fifths == [{"bar": 2, "beat": 3, "voices": "S-B"}]


def test_music_that_is_not_four_voices_is_refused(world, tmp_path):
    assert "elise.mid is not four voices" in refused(["musictx", "inspect", "midi=elise", "rules=true"], tmp_path)
    write_midi(Score.empty(), tmp_path / "empty.mid")
    line = refused(["musictx", "inspect", "midi=empty.mid", "rules=true"], tmp_path)
    assert re.search("empty.mid is .*no notes", line)
    line = refused(["musictx", "inspect", "midi=chorale", "rules=true", f"beside={world.store}"], tmp_path)
    assert "store has performance tokens" in line


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["bundle=chorale", "rules=true"], "rules=true: "),
        (["midi=chorale", "beside=s"], "beside=s: "),
        (["midi=chorale", "rules=true", "beside="], "beside=: "),
        (["midi=chorale", "rules=true", "tokenizer=chorale"], "tokenizer=chorale: "),
    ],
)
def test_rules_are_for_a_midi_file_and_a_store_for_rules(words, line):
    with pytest.raises(UserError, match=f"^{line}"):
        inspect(settings("inspect", *words))
