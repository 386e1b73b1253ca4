"""Each kind of model, and each sense of position, learns to find a motif again, also at a lag that training never had.

A mark comes before three notes of eight, others follow, and the mark and the three notes come again: only memory knows
the second and the third. Lags grow by a curriculum. Convolutions over three ids spare the Transformers the long search
for "the note after this one", which takes them minutes (`studies/planted_motif.py`).
"""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from musictx.model.build import build_model, model_config

NOTES, MARK = 8, 8
UNSEEN = 5, 11  # lags
STAGES = [(2, 0), (3, 2), (3, 4), (3, 8), (3, 14)]  # notes of the motif, longest lag
BLOCK: dict[str, Any] = {
    "d_model": 32,
    "n_layers": 2,
    "n_heads": 2,
    "d_ff": 64,
    "conv": 3,
    "max_distance": 64,
    "dropout": 0.0,
}
CELLS: dict[str, Any] = {"d_model": 32, "n_layers": 2, "dropout": 0.0}
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("recurrent", CELLS),
    "LSTM, recall": ("recurrent", CELLS | {"recall": True, "d_attention": 16}),
    "table": ("transformer", BLOCK | {"position": "relative"}),
    "Fourier": ("transformer", BLOCK | {"position": "relative_fourier"}),
    "RoPE": ("transformer", BLOCK | {"position": "rope"}),
    "sines": ("transformer", BLOCK | {"position": "sinusoidal"}),
    "learned": ("transformer", BLOCK | {"position": "learned", "max_positions": 64}),
    "no position": ("transformer", BLOCK | {"position": "none"}),
}
STEPS, ENOUGH = 1500, 0.75  # right notes; by chance 1/8


def pieces(rows, notes, lag, rng):
    """(rows, T) ids."""
    before, motif, between = (rng.integers(0, NOTES, (rows, n)) for n in (rng.integers(0, 5), notes, lag))
    mark = np.full((rows, 1), MARK)
    return torch.from_numpy(np.concatenate([before, mark, motif, between, mark, motif], 1))


def answers(model, ids, notes):
    """Logits and true ids of the return, after its first note."""
    return model(ids[:, :-1])[:, 1 - notes :].flatten(0, 1), ids[:, 1 - notes :].flatten()


@torch.no_grad()
def right(model, notes, lag, seed):
    logits, true = answers(model, pieces(200, notes, lag, np.random.default_rng([seed, lag])), notes)
    return float((logits.argmax(-1) == true).float().mean())


@pytest.mark.parametrize("kind", KINDS)
def test_a_motif_is_found_at_a_lag_that_training_never_had(kind):
    torch.manual_seed(0)
    rng, (name, settings) = np.random.default_rng(0), KINDS[kind]
    model = build_model(model_config(name, settings, vocab_size=NOTES + 2))
    optimizer, stage, found = torch.optim.AdamW(model.parameters(), 3e-3), 0, 0.0
    for step in range(STEPS):
        notes, most = STAGES[stage]
        lag = int(rng.choice([lag for lag in range(most + 1) if lag not in UNSEEN]))
        optimizer.zero_grad()
        F.cross_entropy(*answers(model, pieces(64, notes, lag, rng), notes)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 50 == 49 and stage < len(STAGES) - 1:
            stage += right(model, notes, most, step) > 0.8
        elif step % 50 == 49:
            found = min(right(model, 3, lag, step) for lag in UNSEEN)
            if found > ENOUGH:
                break
    assert found > ENOUGH
