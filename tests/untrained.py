"""Models that have learned nothing: whatever they write, what must hold still does."""

from dataclasses import asdict, replace

import torch

from musictx.model.bundle import save_bundle
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from musictx.model.header import BundleHeader
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.tokenizers import with_added
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.gap import ADDED
from musictx.tokenizers.score import ScoreTokenizer

TOK = ChoraleTokenizer()
CONFIG = EncoderDecoderConfig(TOK.vocab.size, d_model=16, n_layers=2, n_heads=2, d_ff=32, pad=TOK.vocab.pad)
CONFIG = replace(CONFIG, source_voices=4, target_group=4)


def write_harmoniser(path, config=CONFIG, objective="voices", **notes):
    torch.manual_seed(0)
    learned = {"name": objective, "settings": {}, "added": []}
    shape = {"kind": "encoder_decoder", **asdict(config)}
    of = shape, "chorale", TOK.vocab.fingerprint, "none", "none", None, "0"
    header = BundleHeader(*of, notes=notes, objective=learned)
    save_bundle(path, EncoderDecoder(config), header)
    return path


def write_score_model(path, fills=False):
    """A bundle of score ids; one that `fills` knows gaps."""
    torch.manual_seed(0)
    tokenizer = with_added(ScoreTokenizer(), ADDED if fills else ())
    config = TransformerConfig(tokenizer.vocab.size, d_model=16, n_layers=1, n_heads=2, d_ff=32, trained_length=128)
    added = [list(row) for row in ADDED]
    objective = {"name": "infill", "settings": {}, "added": added} if fills else {}
    shape = {"kind": "transformer", **asdict(config)}
    of = shape, "score", ScoreTokenizer.vocab.fingerprint, "none", "none", None, "0"
    save_bundle(path, Transformer(config), BundleHeader(*of, objective=objective))
    return path
