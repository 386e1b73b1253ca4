"""A harmoniser that has learned nothing: whatever it writes, what must hold still does."""

from dataclasses import asdict, replace

import torch

from musictx.model.bundle import save_bundle
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from musictx.model.header import BundleHeader
from musictx.tokenizers.chorale import ChoraleTokenizer

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
