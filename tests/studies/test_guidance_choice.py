"""How a strength of seed guidance is chosen."""

import json
from dataclasses import replace
from pathlib import Path

import guidance
import pytest
import torch
from safetensors.torch import load_file
from trials import trial

from musictx.config.app import settings
from musictx.data.store import Store
from musictx.errors import UserError
from musictx.generate.open_player import open_playing
from musictx.model.header import read_header

COMPOSERS = {"retained": (1, 1, 1), "from_seed": (20, 14, 27), "repeated": (0.13, 0.08, 0.19)}


def drawn(low=0.8, from_seed=15.0, repeated=0.05, entropy=0.95, range_=0.96):
    """Overlaps are known to 0.02 up and 0.03 down."""
    areas = {"pitch_class_entropy": entropy, "pitch_range": range_}
    overlaps = {name: (area, area - 0.03, area + 0.02) for name, area in areas.items()}
    return {
        "retained": (1.1, low, 1.6),
        "from_seed": (from_seed, 1, 99),
        "repeated": (repeated, 0, 1),
        "overlaps": overlaps,
        "still": 1,
    }


PLAIN = [drawn(entropy=0.95), drawn(entropy=0.93), drawn(entropy=0.97)]


@pytest.mark.parametrize(
    ("draws", "said"),
    [
        ([drawn()], []),
        ([drawn(low=0.9), drawn(low=1.1)], []),  # the mean of the draws counts
        ([drawn(low=1.02)], ["motif retention above 1, from 1.02 on"]),
        ([drawn(from_seed=27.5)], ["from_seed 27.50, the composers at most 27.00"]),
        ([drawn(repeated=0.2)], ["repeated 0.20, the composers at most 0.19"]),
        ([drawn(entropy=0.931)], []),  # no lower than plain sampling, 0.95, as far as can be said
        ([drawn(entropy=0.929)], ["overlap of pitch_class_entropy at most 0.949, plain 0.950"]),
        ([drawn(range_=float("nan"))], ["overlap of pitch_range at most nan, plain 0.960"]),
        ([drawn() | {"still": 2}, drawn()], ["1.5 continuations a draw wait for over 3 s, plain 1"]),
        ([drawn() | {"still": 2}, drawn() | {"still": 0}], []),
    ],
)
def test_what_speaks_against_a_strength(draws, said):
    assert guidance.against(draws, PLAIN, COMPOSERS) == said


def test_nothing_speaks_against_what_is_as_plain_sampling_though_numbers_are_rounded():
    same = [drawn() | {"overlaps": {"polyphony": (1 - 2**-53, 1 - 2**-52, 1 - 2**-52)}}]
    assert guidance.against(same, same, COMPOSERS) == []


def test_bars_count_only_where_there_are_beats():
    free = [drawn() | {"repeated": None}]
    assert guidance.against(free, free, COMPOSERS | {"repeated": None}) == []


def test_the_largest_strength_without_objection_is_chosen():
    found = {None: [], 1.0: [], 2.0: ["x"], 1.5: [], 3.0: ["x"]}
    rows = [{"strength": strength, "against": against} for strength, against in found.items()]
    assert guidance.choose(rows) == 1.5
    assert guidance.choose([row for row in rows if row["strength"] in (None, 2.0, 3.0)]) is None
    assert guidance.choose(rows, [{"strength": x, "against": ["x"] * (x == 1.5)} for x in (1.0, 1.5)]) == 1.0


@pytest.fixture
def study(world, tmp_path, monkeypatch):
    """The script on a tiny model; to 1.5 no strength has an objection. Notes what is measured."""
    measured = []

    def measure(opened, split, strengths, draws, config, keep):
        measured.append((len(split), strengths))
        return {"rows": [{"strength": x, "against": ["too much"] * (x > 1.5)} for x in strengths]}

    def run(*words):
        measured.clear()
        trial(guidance, "--store", world.store, "--models", world.bundle, "--out", "o", *words)
        return json.loads(Path("o/chosen.json").read_text())[str(world.bundle)], [*measured]

    monkeypatch.setattr(guidance, "measured", measure)
    monkeypatch.chdir(tmp_path)
    return run


def test_the_test_split_is_read_after_the_choice_and_nothing_twice(study, world, capsys):
    pieces = {name: len(Store(world.store).split(name)) for name in ("validation", "test")}
    strengths = [1.0, 1.25, 1.5, 2.0, 3.0]
    found, measured = study("--test")
    assert measured == [(pieces["validation"], strengths), (pieces["test"], [1.5])]
    assert (found["chosen"], [row["strength"] for row in found["test"]["rows"]]) == (1.5, [1.5])
    capsys.readouterr()
    assert study("--test") == (found, [])
    assert "o/runs.json: found 2 runs, which are not made again" in capsys.readouterr().out
    assert study("--strengths", "1.25")[1] == [(pieces["validation"], [1.25])]
    found, measured = study("--strengths", "1.25", "--beside", world.store)
    assert (measured, found["beside"]) == ([], {world.store.name: found["validation"]})
    for word in ("out=x", "split=test", "sampler.seed_guidance=2"):
        with pytest.raises(UserError, match=word):
            study(word)
    for words in ("--test", "--write"):
        with pytest.raises(UserError, match="validation chose no strength"):
            study("--strengths", "2", words)


def test_what_was_chosen_is_written_into_the_header_of_a_copy_and_no_weight_changes(study, world):
    study("--write")
    copy = Path("o") / world.bundle.name
    header, before, after = read_header(world.bundle), load_file(world.bundle), load_file(copy)
    assert read_header(copy) == replace(header, notes=header.notes | {"seed_guidance": 1.5})
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], x) for name, x in after.items())
    with pytest.raises(UserError, match="is there already"):
        study("--write")


def test_what_is_measured_is_json(world, monkeypatch):
    known = {"retained": (1.0, 1.0, 1.0), "from_seed": (1.0, 1.0, 1.0), "repeated": None}
    monkeypatch.setattr(guidance, "_kept", lambda *_: known)  # two tunes have too few motifs
    words = ["pieces=2", "seed_seconds=2", "length_seconds=2", "span_seconds=1"]
    config = settings("compare", f"runs=[{world.bundle}]", f"store={world.store}", "out=x", *words)
    opened = open_playing(world.bundle)
    split = Store(world.store, "performance").split("train")
    known_draws = dict[str, object]()

    def keep(name, make):
        if name not in known_draws:
            known_draws[name] = make()
        return known_draws[name]

    found = json.loads(json.dumps(guidance.measured(opened, split, [1.0], 1, config, keep)))
    assert [*known_draws] == ["strength None, random seed 0", "strength 1.0, random seed 0"]
    monkeypatch.setattr(guidance, "features", None)  # nothing is measured again
    assert json.loads(json.dumps(guidance.measured(opened, split, [1.0], 1, config, keep))) == found
    assert [row["strength"] for row in found["rows"]] == [None, 1.0]
    assert all(0 <= draw["still"] <= 2 for row in found["rows"] for draw in row["draws"])
