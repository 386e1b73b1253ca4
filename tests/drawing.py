"""Music that a grammar allows, drawn without a model."""

import numpy as np


def drawn(grammar, steps, seed, favourites=0):
    """(B, steps) ids by random logits; with `favourites`, so many ids that are always liked far better than others."""
    chance, ids = np.random.default_rng(seed), []
    liked = np.zeros(grammar.legal().shape[1])
    liked[chance.permutation(len(liked))[:favourites]] = 30.0
    for _ in range(steps):
        legal = grammar.legal()
        assert legal.any(1).all()
        says = liked + chance.normal(0, 3, legal.shape) + chance.gumbel(size=legal.shape)
        ids.append(np.where(legal, says, -np.inf).argmax(1))
        grammar.update(ids[-1])
    return np.stack(ids, 1)
