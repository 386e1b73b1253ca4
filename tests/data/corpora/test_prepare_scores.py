"""A folder of scores as a store: bars and parts of each, whatever its format."""

from dataclasses import replace

import numpy as np
import pytest

from musictx.config.prepare import PrepareFolderConfig, PrepareScoresConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder, prepare_scores
from musictx.data.store import Store
from musictx.errors import ConfigError
from musictx.music.notation.midi import to_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.write import to_musicxml
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers.score import ScoreTokenizer


def waltz(number, bars=3):
    """An upbeat and bars of a tune above chords."""
    tune = tuple(Note(24 * n, 24, 60 + (n * n + number * n) % 13) for n in range(1 + 3 * bars))
    chords = tuple(Note(24 + 72 * n + 24 * k, 24, 40 + k + number) for n in range(bars) for k in range(3))
    starts = [0, *range(24, 24 + 72 * bars, 72)]
    parts = Part("Voice", 73, tune), Part("Piano", 0, chords)
    return Notation(parts, tuple(Bar(at, 3, 4) for at in starts), 24 + 72 * bars)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for n in range(4):
        (tmp_path / "in" / f"{n}.musicxml").write_bytes(to_musicxml(waltz(n))[0])
    (tmp_path / "in" / "5.mid").write_bytes(to_midi(waltz(5)))
    (tmp_path / "in" / "long.mid").write_bytes(
        to_midi(replace(waltz(6), bars=(Bar(0, 10, 1), Bar(960, 10, 1)), end=1920))
    )
    played = np.cumsum(np.linspace(0.11, 0.47, 40))
    write_midi(Score(played, played + 0.3, 60 + np.arange(40) % 9, np.full(40, 80)), tmp_path / "in" / "played.mid")
    return tmp_path / "in"


def test_scores_of_all_formats_have_their_bars_and_parts(folder, tmp_path):
    config = PrepareScoresConfig(
        path=str(folder), out=str(tmp_path / "store"), validation_fraction=0.2, test_fraction=0.2, workers=1
    )
    manifest = prepare_scores(config)
    reasons = dict(manifest.dropped)
    assert "a performance" in reasons["played.mid"]
    assert "10/1" in reasons["long.mid"]
    store = Store(tmp_path / "store", "score")
    splits = [store.split(name) for name in manifest.splits]
    pieces = {name: ids for split in splits for name, ids in zip(split.names, split, strict=True)}
    assert sorted(pieces) == ["0.musicxml", "1.musicxml", "2.musicxml", "3.musicxml", "5.mid"]
    for name, ids in pieces.items():
        written, found = waltz(int(name[0])), ScoreTokenizer().decode_notation(ids)
        assert [part.notes for part in found.parts] == [part.notes for part in written.parts]
        assert [bar[1:] for bar in found.bars[1:]] == [bar[1:] for bar in written.bars[1:]]
        assert [bar.onset for bar in found.bars] == [bar.onset for bar in written.bars]


def test_a_store_of_midi_files_is_no_store_of_scores(folder, tmp_path):
    config = PrepareFolderConfig(path=str(folder), out=str(tmp_path / "store"), tokenizer=TokenizerConfig("score"))
    with pytest.raises(ConfigError, match="prepare scores"):
        prepare_folder(config)
