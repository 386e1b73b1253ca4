"""Seed guidance in scores compares with the last bar alone."""

from dataclasses import replace

import numpy as np
from small_scores import PLAIN, SCORE, SONG, in_file, player
from stubs import Said, Saying

from musictx.generate.requests import Continue, Fill, Length, Sampling
from musictx.generate.score_tasks import task_of
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.tokenizers.rules import Rules


class Listener(Said):
    """Keeps each prompt, and likes the pitches that it has read there."""

    window = None

    def __init__(self):
        self.prompts, said = [], player().say
        super().__init__(said)

    def begin(self, room, rolling=False):
        return Listening(self.say, self.prompts)

    def join(self, parts, of_row):
        return Listening(self.say, self.prompts, [parts[k].liked[0] for k in of_row])


class Listening(Saying):
    def __init__(self, say, prompts, liked=()):
        super().__init__(say, len(liked))
        self.prompts, self.liked = prompts, liked

    def prefill(self, ids):
        if not len(self.liked):
            self.prompts.append(ids[0].tolist())
            self.rows, self.liked = 1, [np.isin(np.arange(SCORE.vocab.size), ids[0]) & (SCORE.pitch >= 0)]
        return super().prefill(ids) + np.array(self.liked, np.float32)


def test_seed_guidance_compares_with_the_last_bar_alone(tmp_path):
    early = Part("Piano", 0, (*(Note(24 * k, 24, 60 + k % 3) for k in range(9)), Note(216, 24, 79), Note(240, 72, 80)))
    bars = tuple(Bar(72 * k, 3, 4) for k in range(5))
    path = in_file(Notation((early,), bars[:4], 312), tmp_path)
    few, counts = Rules(max_polyphony=2), list[float]()
    for strength in (None, 0, 4):
        model, sampling = Listener(), replace(PLAIN, seed_guidance=strength)
        (music,) = task_of(path, SCORE, Continue(sampling, Length(bars=24), rules=few)).draw(model, SCORE)
        assert len(model.prompts) == (1 if strength is None else 2)
        counts.append(float(np.isin(music.new_notes.pitch, [60, 61, 62]).mean()))
    whole, last = model.prompts
    assert last == [SCORE.bar, *whole[len(whole) - len(last) + 1 :]]
    assert last.count(SCORE.bar) == 2
    assert counts[2] > counts[0] + 0.2


def test_the_guidance_of_a_bundle_is_for_continuations_alone(tmp_path):
    path, own = in_file(SONG, tmp_path), {"seed_guidance": 1.0}
    auto = Sampling(guard=False)
    for request, prompts in (
        (Continue(auto, Length(bars=1)), 2),
        (Fill(auto, from_bar=1, to_bar=1), 1),
        (Fill(auto, from_bar=2, to_bar=2), 1),
    ):
        model = Listener()
        task_of(path, SCORE, request).draw(model, SCORE, own=own)
        assert len(model.prompts) == prompts
