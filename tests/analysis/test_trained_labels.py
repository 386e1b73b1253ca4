"""A model that labels notes reads long music in windows: each note is asked once, after enough music."""

from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from musictx.analysis.trained_labels import Labeller, label_notes
from musictx.music.score import Score
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.labels import with_labels


@given(st.integers(1, 60), st.integers(2, 40), st.integers(0, 10**6))
def test_each_note_has_the_answer_of_its_own_id_after_half_a_window(n, length, random_seed):
    tokenizer, chance = with_labels(build_tokenizer("performance"), 2), np.random.default_rng(random_seed)
    ear: Any = Labeller(torch.nn.Linear(1, 1), tokenizer)

    def read(batch):  # (B, T, 2): the pitch of each id, and how many ids it has before it
        before = torch.arange(batch.shape[1]).expand(batch.shape)
        return torch.stack([torch.from_numpy(tokenizer.pitch)[batch], before], 2)

    ear.read = read
    onset_s = np.cumsum(chance.choice([0.1, 0.4, 3.7], n))
    score = Score(onset_s, onset_s + 0.05, chance.integers(0, 128, n), np.full(n, 80))
    pitch, before = label_notes(ear, score, length).T
    assert pitch.tolist() == score.pitch.tolist()
    struck = tokenizer.trace(tokenizer.encode(score), score.quarter_s).struck_by + 1  # after BOS
    assert (before >= np.minimum(struck, length // 2)).all()
    assert (before < max(length, 2)).all()
