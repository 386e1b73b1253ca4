"""Draws voices below every soprano of a split at once, with any of the models that `accompany.py` compares."""

from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.data.store import Store
from musictx.generate.engine import ByChance, Stream, prefill
from musictx.generate.open_bundle import open_bundle
from musictx.generate.requests import Accompany, Sampling
from musictx.generate.voices import BelowMelody, draw_voices
from musictx.music.grid import Grid
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import Rules


@torch.inference_mode()
def begin(model: Any, objective: str, melodies: list[Tensor], tokenizer: Tokenizer, room: int) -> tuple[Tensor, Any]:
    """Logits (B, V) before the first alto, and the state of all rows; melodies (S,) of any lengths."""
    bos = torch.tensor([tokenizer.vocab.bos])
    if objective == "conditional":
        pad = tokenizer.vocab.pad
        source = torch.nn.utils.rnn.pad_sequence(melodies, batch_first=True, padding_value=pad)
        state = model.init_state(source, room)
        return model.prefill(bos.repeat(len(source), 1), state), state
    prompts = [bos] * len(melodies)
    if objective == "melody_first":
        voices = torch.tensor([tokenizer.vocab.id("VOICES")])
        prompts = [torch.cat([bos, melody, voices]) for melody in melodies]
        room += max(map(len, melodies)) + 1
    return prefill(model, prompts, range(len(prompts)), room, rolling=False)


def drawn(bundle: Path, store: Store, split: str, pieces: int) -> list[Grid]:
    """A grid (S, 4) for each of the first pieces of the split: its own soprano and the model's voices, with the
    sampler's defaults and one rule, that every id is music."""
    opened = open_bundle(bundle, continues=False)
    model: Any = opened.model
    tokenizer: Any = opened.tokenizer
    first = list(store.split(split))[:pieces]
    steps = [np.asarray(piece).reshape(-1, 4).astype(np.int64) for piece in first]
    melodies = [torch.from_numpy(piece[:, 0].copy()) for piece in steps]
    n_tokens = 3 * max(map(len, melodies))
    objective = opened.header.objective["name"]
    logits, state = begin(model, objective, melodies, tokenizer, n_tokens + 1)
    rows = len(melodies)
    nothing: list[NDArray[np.integer]] = [np.zeros(0, np.uint16)] * rows
    given = torch.nn.utils.rnn.pad_sequence(melodies, padding_value=tokenizer.vocab.id("REST"))  # (S, B)
    grammar = BelowMelody(
        build_grammar(tokenizer, Rules(masks=False), nothing, [0.5] * rows, "cpu"), given, tokenizer.voices
    )
    chance = ByChance(Sampling(), [(0, k) for k in range(rows)], "cpu")
    stream = Stream(model, logits, state, grammar, chance, tokenizer.vocab.eos)
    ids = torch.stack([token.ids for token in islice(stream, n_tokens)], 1).numpy()  # (B, T)
    grids = []
    for piece, row in zip(steps, ids, strict=True):
        whole = np.concatenate([piece[:, :1], row[: 3 * len(piece)].reshape(-1, 3)], 1)
        grids.append(tokenizer.decode_grid(whole.reshape(-1)))
    return grids


def ruled(bundle: Path, store: Store, split: str, pieces: int) -> list[Grid]:
    """The same with the rules of `musictx accompany`, one piece after the other."""
    opened = open_bundle(bundle, continues=False)
    model: Any = opened.model
    tokenizer: Any = opened.tokenizer
    grids = []
    for grid in bach(store, split, pieces):
        below = draw_voices(grid[:, 0], model, tokenizer, 0.6, Accompany())
        grids += [voices.grid for voices in below]
    return grids


def bach(store: Store, split: str, pieces: int) -> list[Grid]:
    tokenizer: Any = store.tokenizer
    return [tokenizer.decode_grid(np.asarray(piece)) for piece in list(store.split(split))[:pieces]]
