import numpy as np
import pytest

from musictx.config.prepare import PrepareChoralesConfig
from musictx.data.corpora.chorales import chorale_list, encode_chorale, first_bars_steps, prepare_chorales
from musictx.errors import ConfigError
from musictx.tokenizers.chorale import ChoraleTokenizer


def test_all_371_are_listed_by_number():
    chorales = chorale_list()
    assert len(chorales) == 371
    assert (chorales[0].name, chorales[0].load(0)) == ("R001 bwv269", b"bach/bwv269")


def test_the_first_bars_of_the_first_chorale():
    # Aus meines Herzens Grunde, BWV 269, in G major: an upbeat of a quarter, then 3/4
    encoded = encode_chorale(b"bach/bwv269", "R001")
    assert not isinstance(encoded, str), encoded
    ids, seconds, _ = encoded
    grid = ChoraleTokenizer().decode_grid(np.frombuffer(ids, np.uint16))
    assert grid[:4].tolist() == [[67, 62, 59, 43]] * 4
    assert (grid[:, 0] > grid[:, 3]).mean() > 0.99
    assert seconds == len(grid) * 0.15
    assert first_bars_steps("bach/bwv269", 2) == 4 + 2 * 12
    assert encode_chorale(b"bach/bwv27.6", "R002") == "its voices are not soprano, alto, tenor, bass"  # there are five


def test_a_quick_trial_takes_the_first_chorales(tmp_path):
    manifest = prepare_chorales(PrepareChoralesConfig(out=str(tmp_path / "store"), pieces=4, workers=1))
    names = sorted(name for split in manifest.splits.values() for name in split.pieces)
    assert [name.split()[0] for name in names] == ["R001", "R002", "R003", "R004"]
    with pytest.raises(ConfigError, match="^pieces=372: give 1 to 371"):
        prepare_chorales(PrepareChoralesConfig(out=str(tmp_path / "other"), pieces=372))
