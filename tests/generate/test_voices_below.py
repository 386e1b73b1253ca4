"""Voices below a given melody: the melody is what it was, rules hold, and a row is a function of melody and key."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from musictx.generate.control import Control
from musictx.generate.engine import Uniforms
from musictx.generate.filters import NanError, draw
from musictx.generate.requests import PLAIN, Accompany, Sampling
from musictx.generate.voices import BelowMelody, Voices, draw_voices
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from musictx.model.recurrent_encoder_decoder import RecurrentEncoderDecoder, RecurrentEncoderDecoderConfig
from musictx.music.grid import REST
from musictx.music.harmony import parse_chords
from musictx.music.score import Meter
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import VOICE_RANGES, Rules

TOK = ChoraleTokenizer()
MELODY = np.array([72, 72, 74, REST, 76, 60, 60, 81, 67], np.int16)
SINGABLE = Rules(voice_order=True, voice_ranges=True)


def build(kind) -> EncoderDecoder | RecurrentEncoderDecoder:
    torch.manual_seed(0)
    if kind == "cells":
        cells = RecurrentEncoderDecoderConfig(TOK.vocab.size, d_model=16, d_attention=8, pad=TOK.vocab.pad)
        return RecurrentEncoderDecoder(cells).eval()
    config = EncoderDecoderConfig(TOK.vocab.size, d_model=16, n_layers=1, n_heads=2, d_ff=32, pad=TOK.vocab.pad)
    return EncoderDecoder(config).eval()


def drawn(kind="attention", melody=MELODY, sampling=PLAIN, rules=SINGABLE, **asked) -> list[Voices]:
    how = {name: asked.pop(name) for name in ("device", "report", "meter", "from_s") if name in asked}
    return draw_voices(melody, build(kind), TOK, 0.5, Accompany(sampling, rules, **asked), **how)


@pytest.mark.parametrize("kind", ["attention", "cells"])
def test_the_melody_is_kept_and_no_voice_crosses_or_leaves_its_range(kind):
    """The model knows nothing: only the rules keep its voices in place."""
    for voices in drawn(kind, variations=5):
        grid = voices.grid
        assert grid[:, 0].tolist() == MELODY.tolist()
        for v, (low, high) in enumerate(VOICE_RANGES):
            sung = grid[:, v][grid[:, v] != REST]
            assert ((sung >= low) & (sung <= high)).all()
        for step in grid:
            sung = step[step != REST]
            assert (np.diff(sung) <= 0).all()
        assert -np.log(TOK.vocab.size) * 2 < voices.mean_log_p < 0
    free = np.concatenate([v.grid for v in drawn(kind, variations=5, rules=Rules())])
    assert (np.diff(free[(free != REST).all(1)], axis=1) > 0).any()  # which the rules forbade


@pytest.mark.parametrize(("given", "transpose"), [({}, 0), ({"from_s": 0.25, "meter": Meter(9.0, (2, 4))}, 2)])
def test_new_voices_are_of_the_chord_of_their_moment_where_the_melody_is(given, transpose):
    """A bar is two quarters, or four; the melody begins with one, or two sixteenths later."""
    control, line = Control(chords="C | F#", strength=20.0), parse_chords("C | F#")
    (voices,) = drawn(rules=Rules(), control=control, transpose=transpose, melody=np.repeat(MELODY, 4), **given)
    first, bar = (2, 8) if given else (0, 16)
    n = 0
    for step, (then, now) in enumerate(zip(voices.grid[:-1, 1:], voices.grid[1:, 1:], strict=True), first + 1):
        chord = line.chords[step // bar % 2].classes
        for before, pitch in zip(then, now, strict=True):
            if pitch not in (before, REST):  # what sounds on may stay
                n += 1
                assert (pitch - transpose) % 12 in chord
    assert n > 30


def parallels(grid):
    """By the definition, a pair of voices and a step at a time."""
    found = []
    for a, b in zip(grid[:-1].tolist(), grid[1:].tolist(), strict=True):
        for u in range(4):
            for v in range(u + 1, 4):
                still = a[u] == b[u] or a[v] == b[v] or REST in (a[u], a[v], b[u], b[v])
                if still or (b[u] > a[u]) != (b[v] > a[v]):
                    continue
                if abs(a[u] - a[v]) % 12 == abs(b[u] - b[v]) % 12 and abs(a[u] - a[v]) % 12 in (0, 7):
                    found.append((u, v))
    return found


def test_no_parallel_fifths_and_octaves_where_they_are_forbidden():
    """Of a model that knows nothing, which leaps at every step: a melody that does too."""
    melody = np.random.default_rng(0).integers(60, 82, 120).astype(np.int16)
    strict = Rules(voice_ranges=True, no_parallels=True)
    free, ruled = (drawn(melody=melody, variations=8, rules=r) for r in (Rules(voice_ranges=True), strict))
    assert {pair for voices in free for pair in parallels(voices.grid)} == {
        (u, v) for u in range(4) for v in range(u + 1, 4)
    }
    assert [parallels(voices.grid) for voices in ruled] == [[]] * 8
    sung = np.concatenate([voices.grid for voices in ruled]) != REST
    assert sung.mean() > 0.9
    assert len({voices.grid.tobytes() for voices in ruled}) == 8


def test_a_variation_is_a_function_of_melody_seed_and_its_number():
    alone, together = drawn(variations=1), drawn(variations=5)
    few = drawn(variations=5, rows_at_once=2)
    assert np.array_equal(alone[0].grid, together[0].grid)
    assert [v.grid.tolist() for v in few] == [v.grid.tolist() for v in together]
    assert len({v.grid.tobytes() for v in together}) == 5
    assert not np.array_equal(drawn(random_seed=1)[0].grid, alone[0].grid)
    coldest = drawn(sampling=Sampling(temperature=0, top_p=None, guard=False), variations=2)
    assert np.array_equal(coldest[0].grid, coldest[1].grid)


@pytest.mark.parametrize(("strength", "streams"), [(None, 1), (0, 1), ("auto", 1), (0.2, 2)])
def test_no_guidance_takes_nothing(strength, streams, monkeypatch):
    model, rows = build("cells"), []
    step = model.step

    def counted(ids, state):
        rows.append(len(ids))
        return step(ids, state)

    monkeypatch.setattr(model, "step", counted)
    sampling = Sampling(temperature=0, top_p=None, guard=False, seed_guidance=strength)
    draw_voices(MELODY, model, TOK, 0.5, Accompany(sampling, Rules(), variations=3))
    assert rows == [3 * streams] * (3 * len(MELODY) - 1)


@pytest.mark.parametrize("kind", ["attention", "cells"])
def test_two_streams_draw_what_two_full_passes_draw(kind):
    """One over the melody and one over none, in any batch, with every rule kept."""
    model = build(kind)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    rules = Rules(voice_order=True, voice_ranges=True, no_parallels=True)
    sampling = Sampling(top_p=0.95, guard=False, seed_guidance=1.5)
    many = draw_voices(MELODY, model, TOK, 0.5, Accompany(sampling, rules, random_seed=5, variations=3, rows_at_once=2))
    unguided = replace(sampling, seed_guidance=None)
    (plain,) = draw_voices(MELODY, model, TOK, 0.5, Accompany(unguided, rules, random_seed=5))
    source = torch.from_numpy(np.where(MELODY == REST, TOK.vocab.id("REST"), MELODY - TOK.lo)).long()
    for k, voices in enumerate(many):
        grammar = build_grammar(TOK, rules, [np.zeros(0, np.uint16)], [0.5], "cpu")
        below, chance, ids = BelowMelody(grammar, source, 4), Uniforms([(5, k)], "cpu"), [TOK.vocab.bos]
        nats = []
        with torch.inference_mode():
            for _ in range(3 * len(MELODY)):
                legal, read = below.legal()[0], torch.tensor([ids])
                heard, none = (model(s[None], read)[0, -1] for s in (source, torch.full((1,), TOK.vocab.pad)))
                p, q = (each.masked_fill(~legal, -torch.inf).softmax(-1) for each in (heard, none))
                odds = p * (p / q) ** 1.5
                odds[~legal | (p < 0.01 * p.max())] = 0
                drawn = draw(odds.log()[None], sampling, 1.0, chance.next())
                below.update(drawn)
                ids.append(int(drawn))
                nats.append(float(heard.log_softmax(-1)[drawn]))
        assert TOK.pitch[ids[1:]].reshape(-1, 3).tolist() == voices.grid[:, 1:].tolist()
        assert voices.grid[:, 0].tolist() == MELODY.tolist()
        assert parallels(voices.grid) == []
        assert voices.mean_log_p == pytest.approx(np.mean(nats), rel=1e-4)  # under the model alone
    assert many[0].grid.tolist() != plain.grid.tolist()


def test_no_numbers_are_said():
    model = build("attention")
    with torch.no_grad():
        model.embed.weight[70 - 21] = torch.nan
    with pytest.raises(NanError, match=r"\(NaN\)"):
        draw_voices(np.array([70, 70]), model, TOK, 0.5, Accompany(PLAIN, SINGABLE))
