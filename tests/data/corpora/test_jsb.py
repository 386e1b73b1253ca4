import json

import pytest
from strategies import SHARED_DATA

from musictx.config.prepare import PrepareJsbConfig
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.store import Store
from musictx.errors import ConfigError, StoreError

CHORD, OTHER = [72, 67, 64, 48], [71, 67, -1, 50]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "jsb.json"
    raw = {"train": [[CHORD] * 4 + [OTHER] * 4, [OTHER] * 3], "valid": [[OTHER, CHORD]], "test": [[CHORD, OTHER] * 5]}
    path.write_text(json.dumps(raw))
    return path


def prepare(path, tmp_path):
    return prepare_jsb(PrepareJsbConfig(path=str(path), out=str(tmp_path / "store")))


def test_the_official_split_step_by_step(table, tmp_path):
    manifest = prepare(table, tmp_path)
    assert {name: (info.tokens, info.pieces) for name, info in manifest.splits.items()} == {
        "train": (44, ["train 000", "train 001"]),
        "validation": (8, ["valid 000"]),
        "test": (40, ["test 000"]),
    }
    assert Store(tmp_path / "store").split("validation")[0].tolist() == [50, 46, 88, 29, 51, 46, 43, 27]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("no json", "JSB table"),
        ('{"train": [], "valid": []}', r"JSB table \('test'\)"),
        ('{"train": [[[60.5, 2, 3, 4]]], "valid": [], "test": []}', "four whole"),
        ('{"train": [[[60, 2, 30, 40]]], "valid": [], "test": []}', "train 000: pitch 2 "),
    ],
)
def test_any_other_file_is_refused(content, message, tmp_path):
    with pytest.raises(ConfigError, match=r"^path=.*x.json: "):
        prepare(tmp_path / "x.json", tmp_path)
    (tmp_path / "x.json").write_text(content)
    with pytest.raises(StoreError, match=message):
        prepare(tmp_path / "x.json", tmp_path)


@pytest.mark.skipif(not (SHARED_DATA / "jsb-chorales-16th").is_dir(), reason="the corpus is not on this machine")
def test_the_counts_of_the_literature(tmp_path):
    manifest = prepare(SHARED_DATA / "jsb-chorales-16th" / "Jsb16thSeparated.json", tmp_path)
    assert {name: (len(info.pieces), info.tokens) for name, info in manifest.splits.items()} == {
        "train": (229, 220_912),
        "validation": (76, 73_632),
        "test": (77, 75_600),
    }
    assert manifest.extra["near_duplicates"] == [["train 142", "valid 058"], ["train 224", "valid 074"]]
    assert manifest.extra["near_duplicates_across_splits"] == 2
