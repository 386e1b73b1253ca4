import numpy as np
import pytest
import torch

from musictx.errors import ConfigError
from musictx.objectives import build_objective
from musictx.tokenizers import build_tokenizer
from musictx.tokenizers.gap import most_framing


def built(name, plain=0.0, cycle=1):
    return build_objective("infill", {"plain": plain}, build_tokenizer(name), cycle)


def windows(asked, n=200):
    """Of a piece with its beginning, of the middle of one, and of a short one with its end."""
    vocab, group = asked.tokenizer.vocab, asked.tokenizer.group
    music = np.resize([60, 256 + 40, 188, 256 + 7], n) if group == 1 else np.resize(np.arange(80), n)
    short = music[: 12 * group]
    return [
        torch.from_numpy(np.concatenate(parts).astype(np.int64))
        for parts in (
            ([vocab.bos], music),
            (music[-1:], music),
            ([vocab.bos], short, [vocab.eos], np.full(n - len(short) - 1, vocab.pad)),
        )
    ]


@pytest.mark.parametrize(("name", "cycle"), [("performance", 1), ("chorale", 1), ("chorale", 16)])
def test_what_comes_after_is_first_and_what_comes_before_is_asked_for(name, cycle):
    asked = built(name, cycle=cycle)
    vocab, period = asked.tokenizer.vocab, max(cycle, asked.tokenizer.group)
    seen = set()
    for window in windows(asked):
        for seed in range(12):
            (inputs,), targets = asked.example(window, np.random.default_rng(seed))
            assert len(inputs) == len(targets) == len(window) - 1
            whole = [*inputs[inputs != vocab.pad].tolist(), *targets[-1:][targets[-1:] != vocab.pad].tolist()]
            music = window[window != vocab.pad].tolist()
            if whole == music[: len(whole)]:  # the border fell on an end
                continue
            at = len(whole) - 1 - whole[::-1].index(vocab.id("BEFORE"))
            x, before = whole[at + 1], whole[at + 2 :]
            assert targets[targets != vocab.pad].tolist() == before
            assert (targets[: at + 1] == vocab.pad).all()
            assert x == music[0]
            after = [i for i in whole[: at + 1] if i < vocab.pad or i == vocab.eos]
            text = asked.tokenizer.decode(np.array([*before, *after], np.uint16))
            kept = music[1 : 1 + (len(window) - 1 - most_framing(period)) // period * period]
            assert text == asked.tokenizer.decode(np.array(kept, np.uint16))
            assert (vocab.eos in after) == (vocab.eos in kept)
            seen.add(len(before))
    assert len(seen) > 10


def test_a_share_of_windows_stays_as_it_is():
    asked = built("chorale", plain=0.5)
    window = windows(asked)[0]
    plain = sum(torch.equal(asked.example(window, np.random.default_rng(k)).targets, window[1:]) for k in range(400))
    assert 160 < plain < 240
    assert torch.equal(built("chorale", 1.0).example(window, np.random.default_rng(0)).targets, window[1:])


def test_what_cannot_be_set():
    for name, value in (("plain", float("nan")), ("cycle", 4)):  # the cycle is the model's
        with pytest.raises(ConfigError, match=rf"^(objective_settings\.)?{name}="):
            build_objective("infill", {name: value}, build_tokenizer("chorale"))
