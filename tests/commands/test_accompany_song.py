"""`musictx accompany` with a model of songs: the melody as it was, the rest in time; one line for what cannot be."""

from dataclasses import asdict

import numpy as np
import pytest
import torch
from conftest import ok, refused
from strategies import rows

import musictx
from musictx.errors import ConfigError, UserError
from musictx.model.bundle import save_bundle
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from musictx.model.header import BundleHeader
from musictx.music.read import read_midi
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.tokenizers import build_tokenizer

UNRULED = [f"rules.{name}=false" for name in ("voice_order", "voice_ranges", "no_parallels")]
# a line beside any grid, too low and too high for a soprano
TUNE = Score(np.array([0.31, 1.02, 2.5, 3.77]), [1.0, 2.2, 3.7, 5.3], [43, 74, 90, 72], [50, 60, 70, 80], 0.5, [40] * 4)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path, tok = tmp_path_factory.mktemp("untrained") / "songs.safetensors", build_tokenizer("performance-melody")
    torch.manual_seed(0)
    config = EncoderDecoderConfig(tok.vocab.size, d_model=16, n_heads=2, d_ff=32, pad=tok.vocab.pad, paced=True)
    learned = {"name": "conditional", "settings": {}, "added": [], "length": 64, "seconds": 3.0}
    shape, known = {"kind": "encoder_decoder", **asdict(config)}, ("none", "none", None, "0")
    header = BundleHeader(shape, tok.name, tok.vocab.fingerprint, *known, objective=learned)
    model = EncoderDecoder(config)
    model.pace.copy_(torch.from_numpy(tok.pace))
    save_bundle(path, model, header)
    return path


@pytest.fixture
def melody(tmp_path):
    write_midi(TUNE, tmp_path / "tune.mid")
    return tmp_path / "tune.mid"


def test_the_melody_is_kept_to_the_bit_and_a_piano_goes_with_it(melody, tmp_path, bundle):
    say = ["musictx", "accompany", f"bundle={bundle}", "melody=tune.mid", "out=o", "variations=2", "png=true"]
    said = ok(say, tmp_path).stdout
    assert "tune-1.mid: 4 notes of the melody, unchanged" in said
    assert "sixteenth" not in said
    assert {p.name for p in (tmp_path / "o").iterdir()} == {"tune-1.mid", "tune-2.mid", "tune.png"}
    kept = rows(read_midi(melody))
    both = [rows(read_midi(tmp_path / "o" / f"tune-{k}.mid")) for k in (1, 2)]
    for music in both:
        assert kept < music
        new = music - kept
        assert {program for *_, program in new} == {0}
        assert max(end for _, end, *_ in new) <= max(end for _, end, *_ in kept) + 0.01
        assert any(onset * 8 % 1 > 0.1 for onset, *_ in new)  # on no grid
    assert both[0] != both[1]
    player = musictx.load(bundle)
    for given in (melody, read_midi(melody)):
        pieces = player.accompany(given, variations=2)
        assert len(pieces) == 2
        assert rows(pieces[0].melody) == kept
        assert (pieces[0].score, pieces[0].transposed) == (Score.merge([pieces[0].melody, pieces[0].voices], 0.5), 0)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["transpose=2"], "transpose=2: it is for models of chorales"),
        (["voices=B"], "voices=B: it is for models of chorales"),
        (["rules.masks=false", *UNRULED], "rules.masks=false"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_written(melody, tmp_path, bundle, words, text):
    said = refused(["musictx", "accompany", f"bundle={bundle}", "melody=tune.mid", "out=o", *words], tmp_path)
    assert text in said
    assert not (tmp_path / "o").exists()


def test_the_highest_of_several_lines_is_taken_and_said(bundle):
    player, two = musictx.load(bundle), Score.merge([TUNE, TUNE.transpose(-12)], 0.5)
    (piece,) = player.accompany(two)
    assert piece.melody == TUNE
    assert piece.remarks == ("the melody: its highest 4 notes are the melody, the other 4 are left out",)
    late = Score(TUNE.onset_s + 1801, TUNE.offset_s + 1801, TUNE.pitch, TUNE.velocity)
    with pytest.raises(UserError, match=r"^the melody: 30.1 .* 30 "):
        player.accompany(late)
    with pytest.raises(ConfigError, match=r"^seed_guidance=1.0: "):
        player.accompany(TUNE, seed_guidance=1.0)
