"""What goes with a song's melody: legal notes, as long as it, window by window, a function of melody and key."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from musictx.errors import ConfigError, UserError
from musictx.generate.control import Control
from musictx.generate.engine import ByChance
from musictx.generate.filters import NanError
from musictx.generate.requests import PLAIN, Accompany
from musictx.generate.song import Windows, draw_rest
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from musictx.model.torch_steps import TorchSourcePlayer
from musictx.music.harmony import parse_chords
from musictx.music.score import Meter, Score
from musictx.objectives import build_objective
from musictx.tokenizers.performance import MelodyTokenizer
from musictx.tokenizers.rules import Rules

TOK = MelodyTokenizer()
V, PAD, BOS = TOK.vocab.size, TOK.vocab.pad, TOK.vocab.bos
# a line of 9 s with a rest in it
MELODY = Score(np.array([0.5, 1, 2, 7]), [1.0, 1.9, 4.0, 9.0], [72, 74, 76, 72], [80] * 4, 0.5, np.array(40))


def build() -> EncoderDecoder:
    torch.manual_seed(0)
    config = EncoderDecoderConfig(V, d_model=16, n_layers=1, n_heads=2, d_ff=32, pad=PAD)
    config = replace(config, position="rope", clock="time", paced=True)
    model = EncoderDecoder(config).eval()
    model.pace.copy_(torch.from_numpy(TOK.pace))
    return model


def drawn(model=None, melody=MELODY, window_s=20.0, rules=None, **asked):
    how = {name: asked.pop(name) for name in ("device", "report", "meter") if name in asked}
    request = Accompany(PLAIN, rules=rules or Rules(max_still_s=None), **asked)
    return draw_rest(melody, TorchSourcePlayer(model or build()), TOK, request, window_s=window_s, **how)


@pytest.mark.parametrize("window_s", [3.0, 20.0])
def test_it_lasts_as_long_as_the_melody_and_keeps_the_rules(window_s):
    for rest, mean_log_p in drawn(
        window_s=window_s, variations=2, rules=Rules(max_polyphony=3, max_note_s=2.0, max_still_s=None)
    ):
        assert len(rest) > 10
        assert set(rest.program.tolist()) == {0}
        assert rest.duration_s <= 9.0
        assert rest.onset_s.max() > 7.0  # in the last window too
        assert (rest.offset_s - rest.onset_s).max() <= 2.0 + 1e-9
        for onset in rest.onset_s:
            assert ((rest.onset_s <= onset) & (rest.offset_s > onset)).sum() <= 3
        assert -np.log(V) * 2 < mean_log_p < 0


def test_a_variation_is_a_function_of_melody_seed_and_number():
    melody = MELODY.clip(0.0, 4.0)
    first, second = drawn(melody=melody, variations=2, random_seed=3)
    assert [first[0] == drawn(melody=melody, random_seed=seed)[0][0] for seed in (3, 4)] == [True, False]
    assert first[0] != second[0]


def test_controls_lead_the_rest_through_all_windows():
    text = "C | F#"
    control = Control(chords=text, density="0 3, 9 20", loudness=40, strength=20.0)
    rules = Rules(max_still_s=None, max_polyphony=8)  # else all keys of a chord may be down
    ((rest, _),) = drawn(window_s=3.0, rules=rules, control=control, meter=Meter(0.5, (3, 4)))
    for onset_s, pitch in zip(rest.onset_s, rest.pitch, strict=True):
        assert pitch % 12 in parse_chords(text).chords[int((onset_s + 1e-6) // 1.5) % 2].classes
    assert abs(rest.velocity.mean() - 40) < 5
    assert (rest.onset_s < 4).sum() < (rest.onset_s >= 5).sum()


def begin(model) -> Windows:
    chance, player = ByChance(PLAIN, [(0, 0)]), TorchSourcePlayer(model)
    return Windows(TOK.encode(TOK.as_melody(MELODY)), player, TOK, Rules(max_still_s=None), chance)


def written(model, window_s) -> Windows:
    music = begin(model)
    for start_s in np.arange(0, max(9 - window_s / 2, 0.01), window_s / 2):
        music.extend(start_s, min(start_s + window_s, 9.0))
    return music


def test_what_the_model_is_asked_is_what_it_learns():
    """Of a melody in one window: the drawn tokens are likely as training's example of the same music says."""
    model = build()
    music = written(model, 20.0)
    melody = TOK.encode(TOK.as_melody(MELODY))
    rest = TOK.decode(music.until(9.0))
    both = TOK.encode(Score.merge([TOK.as_melody(MELODY), rest]))
    asked = build_objective("conditional", None, TOK)
    (source, _), targets = asked.example(torch.tensor([BOS, *both.tolist()]), np.random.default_rng(0))
    assert source.tolist() == melody.tolist()
    ids = torch.tensor([BOS, *music.ids.tolist()])
    with torch.inference_mode():
        log_p = model(source[None], ids[None, :-1])[0].log_softmax(-1).gather(1, ids[1:, None])[:, 0]
    assert len(targets) > 50
    np.testing.assert_allclose(music.log_p[: len(log_p)], log_p, rtol=1e-4, atol=1e-4)


def test_windows_hear_the_melody_from_where_they_begin_and_what_was_written_there(monkeypatch):
    model, heard = build(), []
    start, read = model.init_state, model.prefill

    def init_state(source, room):
        heard.append([source[0].numpy(), None])
        return start(source, room)

    def prefill(ids, state):
        if heard[-1][1] is None:  # steps come here too
            heard[-1][1] = ids[0].numpy()
        return read(ids, state)

    monkeypatch.setattr(model, "init_state", init_state)
    monkeypatch.setattr(model, "prefill", prefill)
    music, melody = written(model, 4.0), TOK.as_melody(TOK.normalise(TOK.as_melody(MELODY)))
    rest = TOK.decode(music.ids)
    assert len(heard) == 4  # from 0, 2, 4 and, to the end of the melody, 6 seconds on
    assert heard[0][1].tolist() == [BOS]
    for start_s, (source, prompt) in zip((0, 2, 4, 6), heard, strict=True):
        begun = melody.select((melody.onset_s >= start_s) & (melody.onset_s < start_s + 4))
        np.testing.assert_allclose(TOK.decode(source).onset_s, begun.onset_s - start_s, atol=1e-9)
        before = rest.onset_s[(rest.onset_s >= start_s) & (rest.onset_s < start_s + 2)]
        there = TOK.decode(prompt[1:]).onset_s
        np.testing.assert_allclose(there, before[: len(there)] - start_s, atol=1e-9)
        if start_s:
            assert len(there) > 0
    # from 4 s on: the note of 2 s ends at once, then nothing for three seconds
    assert [TOK.vocab.describe(i) for i in heard[2][0][:4]] == ["MELODY_OFF 76", *["TIME_SHIFT 100"] * 3]


def test_a_wait_that_reaches_the_end_of_a_window_is_left_to_the_next(monkeypatch):
    model, wait = build(), TOK.vocab.id("TIME_SHIFT", 30)
    read = model.prefill
    monkeypatch.setattr(model, "prefill", lambda ids, state: read(ids, state) + 1e4 * (torch.arange(V) == wait))
    music = begin(model)
    music.extend(0.0, 4.0)
    assert music.ids.size == 0
    music.extend(2.0, 4.5)
    assert TOK.seconds(music.ids) == 2.0  # from where the second window begins


def test_a_model_that_lets_no_time_pass_is_said(monkeypatch):
    model = build()
    read, slow = model.prefill, 1e4 * torch.from_numpy(TOK.pace).clamp(min=0)
    monkeypatch.setattr(model, "prefill", lambda ids, state: read(ids, state) - slow)
    with pytest.raises(UserError, match=r"91 tokens.* of 0\.9 seconds.*temperature="):
        drawn(model=model, melody=MELODY.clip(0.1, 1.0))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ConfigError, match="^masks=false: "):
        drawn(rules=Rules(masks=False))
    with pytest.raises(ConfigError, match="^particles=2: a song "):
        drawn(control=Control(key="C", particles=2))
    model = build()
    torch.nn.init.constant_(model.embed.weight, torch.nan)
    with pytest.raises(NanError, match=r"\(NaN\)"):
        drawn(model=model)


def test_a_model_that_ends_at_its_table_says_so():
    config = EncoderDecoderConfig(V, d_model=16, n_layers=1, n_heads=2, d_ff=32, pad=PAD, position="learned")
    model = EncoderDecoder(replace(config, max_positions=40)).eval()
    with pytest.raises(UserError, match="more than position=learned has; 9.0 seconds of music need more"):
        drawn(model=model)


def test_each_window_begins_as_warm_as_was_asked():
    music = begin(build())
    music.extend(0.0, 3.0)
    music.chance.warm([3.0])  # as in a loop
    heat: list[float] = []

    def fold(logits):
        heat.append(float(music.chance.temperature[0, 0]))
        return logits

    music.chance.fold = fold
    music.extend(1.5, 4.5)
    assert heat[0] == 1.0
