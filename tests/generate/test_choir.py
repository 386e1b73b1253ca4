"""Voices around given ones: what is given stays, rules apply on both sides, rows are functions of their keys."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from musictx.errors import UserError
from musictx.generate import choir
from musictx.generate.choir import AroundVoices, draw_around
from musictx.generate.control import Control
from musictx.generate.engine import Stream, Uniforms
from musictx.generate.filters import NanError, draw, log_softmax, softmax
from musictx.generate.requests import PLAIN, Accompany, Sampling
from musictx.model.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from musictx.model.torch_steps import TorchSourcePlayer
from musictx.music.grid import OPEN, REST
from musictx.music.harmony import parse_chords
from musictx.music.score import Meter
from musictx.tokenizers.chorale import ChoraleTokenizer
from musictx.tokenizers.grammar import build_grammar
from musictx.tokenizers.rules import VOICE_RANGES, Rules

TOK = ChoraleTokenizer()
LOW = np.array([45, 45, 47, REST, 48, 52, 52, 50, 43] * 2, np.int16)


def above(semitones):
    return np.where(LOW == REST, REST, LOW + semitones)


STRICT = Rules(voice_order=True, voice_ranges=True, no_parallels=True)


def build(seed=0):
    torch.manual_seed(seed)
    config = EncoderDecoderConfig(TOK.vocab.size, d_model=16, n_layers=1, n_heads=2, d_ff=32, pad=TOK.vocab.pad)
    return EncoderDecoder(replace(config, source_voices=4, target_group=4)).eval()


def grid_of(**voices):
    """OPEN, but for the voices S, A, T, B that are named."""
    grid = np.full((len(LOW), 4), OPEN, np.int16)
    for name, pitches in voices.items():
        grid[:, "SATB".index(name)] = pitches
    return grid


def drawn(grid, sampling=PLAIN, rules=STRICT, where=None, **asked):
    return draw_around(
        grid, TorchSourcePlayer(build()), TOK, 0.5, Accompany(sampling, rules=rules, **asked), **(where or {})
    )


@pytest.mark.parametrize(
    "given",
    [{"B": LOW}, {"S": above(24), "B": LOW}, {"A": above(14), "T": above(7)}],
)
def test_given_voices_stay_and_free_ones_keep_to_the_rules(given):
    """The model knows nothing: only the rules keep its voices in place."""
    for voices in drawn(grid_of(**given), variations=4):
        grid = voices.grid
        for v, name in enumerate("SATB"):
            if name in given:
                assert grid[:, v].tolist() == given[name].tolist()
                continue
            sung = grid[:, v][grid[:, v] != REST]
            assert ((sung >= VOICE_RANGES[v][0]) & (sung <= VOICE_RANGES[v][1])).all()
        for step in grid:
            sung = step[step != REST]
            assert (np.diff(sung) <= 0).all()
        for a, b in zip(grid[:-1].tolist(), grid[1:].tolist(), strict=True):
            for u in range(4):
                for v in range(u + 1, 4):
                    if "SATB"[u] in given and "SATB"[v] in given:
                        continue
                    if REST in (a[u], a[v], b[u], b[v]) or a[u] == b[u] or a[v] == b[v]:
                        continue
                    same_way, apart = (b[u] > a[u]) == (b[v] > a[v]), abs(b[u] - b[v]) % 12
                    assert not (same_way and apart in (0, 7) and apart == abs(a[u] - a[v]) % 12)
        assert (grid != REST).mean() > 0.6


class OneByOne(AroundVoices):
    """A given id is drawn like any other, as the only legal one."""

    def legal(self):
        if (given := self.forced_ids[self.position]) < 0:
            return super().legal()
        only = np.zeros_like(self.grammar.legal())
        only[:, given] = True
        return only


@pytest.mark.parametrize(
    ("given", "asked", "strength"),
    [
        ({"B": LOW}, {}, 0.5),
        ({"S": above(24), "B": LOW}, {}, 0.0),
        ({"S": above(24), "B": LOW}, {"control": Control(chords="G | D", particles=4)}, 0.5),
    ],
)
def test_given_ids_are_read_together_with_the_next(given, asked, strength, monkeypatch):
    """The music is the same as by a step for each id; the model is asked only about ids that it writes."""
    request = {"variations": 3, "sampling": replace(PLAIN, seed_guidance=strength), **asked}
    steps, prefill = [], EncoderDecoder.prefill

    def counted(self, ids, state):
        steps.append(len(ids))
        return prefill(self, ids, state)

    moved, move = [], Stream.move

    def watched(self, rows):
        moved.append(len(self.unread))
        move(self, rows)

    monkeypatch.setattr(Stream, "move", watched)
    monkeypatch.setattr(EncoderDecoder, "prefill", counted)
    together = drawn(grid_of(**given), **request)
    assert len(steps) <= len(LOW) * (4 - len(given)) + 1
    streams = 1 + (strength > 0)  # no guidance takes nothing
    assert set(steps) == {streams, 3 * streams * (4 if asked else 1)}
    assert bool(asked) == any(unread > 1 for unread in moved)  # particles move rows between reads
    monkeypatch.setattr(choir, "Stream", lambda *of, forced_ids: Stream(*of))
    monkeypatch.setattr(choir, "AroundVoices", OneByOne)
    for a, b in zip(together, drawn(grid_of(**given), **request), strict=True):
        assert a.grid.tolist() == b.grid.tolist()
        assert a.mean_log_p == pytest.approx(b.mean_log_p, abs=1e-5)


def test_a_region_leads_into_what_follows_without_parallels():
    """The free alto is never a fifth or an octave below the soprano's 74, from where both would rise by a tone. Bass
    and tenor rest."""
    grid = np.full((9, 4), REST, np.int16)
    grid[:, 0], grid[7, 1], grid[8] = 74, OPEN, (76, 69, REST, REST)
    lasts = {int(voices.grid[7, 1]) for voices in drawn(grid, variations=80)}
    assert 67 not in lasts
    assert len(lasts) > 8
    assert 67 in {int(voices.grid[7, 1]) for voices in drawn(grid, rules=Rules(), variations=80)}


def test_a_row_is_a_function_of_its_key_alone():
    control = Control(chords="C | F# G", bar_seconds=0.5, particles=2)
    sampling = Sampling(guard=False, seed_guidance=1.0, top_p=0.9)
    many = drawn(grid_of(B=LOW)[:10], sampling, random_seed=5, variations=3, rows_at_once=2, control=control)
    one = drawn(grid_of(B=LOW)[:10], sampling, random_seed=5, control=control)
    assert one[0].grid.tolist() == many[0].grid.tolist()
    assert len({each.grid.tobytes() for each in many}) == 3


def test_guidance_draws_what_two_full_passes_draw():
    """One over what is given and one over nothing, in any batch, with every rule kept."""
    model, grid = build(), grid_of(S=above(24), B=LOW)[:9]
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(2)
    sampling = Sampling(top_p=0.95, guard=False, seed_guidance=1.5)
    ids = TOK.encode_grid(np.where(grid == OPEN, REST, grid)).astype(np.int64)
    source = torch.from_numpy(np.where(grid.flatten() == OPEN, TOK.vocab.pad, ids))[None]
    forced = np.where(grid.flatten() == OPEN, -1, ids).tolist()
    asked = Accompany(sampling, rules=STRICT, random_seed=5, variations=3, rows_at_once=2)
    for k, voices in enumerate(draw_around(grid, TorchSourcePlayer(model), TOK, 0.5, asked)):
        grammar = build_grammar(TOK, STRICT, [np.zeros(0, np.uint16)], [0.5])
        rows, chance = AroundVoices(grammar, forced, TOK), Uniforms([(5, k)])
        read, nats = list[int](), list[float]()
        for given in forced:
            uniform, begun = chance.next(), torch.tensor([[TOK.vocab.bos, *read]])
            if given < 0:
                legal = rows.legal()[0]
                hidden = torch.full_like(source, TOK.vocab.pad)
                with torch.inference_mode(), np.errstate(divide="ignore", invalid="ignore"):
                    heard, none = (model(x, begun)[0, -1].double().numpy() for x in (source, hidden))
                    p, q = (softmax(np.where(legal, each, -np.inf)[None])[0] for each in (heard, none))
                    odds = p * (p / q) ** 1.5
                    odds[~legal | (p < 0.01 * p.max())] = 0
                    given = int(draw(np.log(odds)[None], sampling, 1.0, uniform)[0])
                nats.append(float(log_softmax(heard[None])[0, given]))
            rows.update(np.array([given]))
            read.append(given)
        assert TOK.pitch[read].reshape(-1, 4).tolist() == voices.grid.tolist()
        assert voices.mean_log_p == pytest.approx(np.mean(nats), rel=1e-4)  # under the model alone


@pytest.mark.parametrize(("where", "transpose"), [({}, 0), ({"from_s": 0.25, "meter": Meter(9.0, (2, 4))}, 2)])
def test_new_voices_are_of_the_chord_of_their_moment_where_the_melody_is(where, transpose):
    """A bar is two quarters, or four; the melody begins with one, or two sixteenths later."""
    control, line = Control(chords="C | F#", strength=20.0), parse_chords("C | F#")
    grid = grid_of(S=above(24))
    (voices,) = drawn(grid, rules=Rules(), where={**where, "higher": transpose}, control=control)
    first, bar = (2, 8) if where else (0, 16)
    step, lower = np.nonzero(np.diff(voices.grid[:, 1:], axis=0))  # what sounds on may stay
    pitch = voices.grid[1:, 1:][step, lower]
    heard = [(p, line.chords[(at + first + 1) // bar % 2].classes) for p, at in zip(pitch, step, strict=True)]
    assert all((p - transpose) % 12 in classes for p, classes in heard if p != REST)
    assert len(heard) > 20


def test_nothing_to_write_is_refused():
    with pytest.raises(UserError, match="every voice"):
        drawn(grid_of(S=above(24), A=above(14), T=above(7), B=LOW))


def test_no_numbers_are_said():
    model = build()
    torch.nn.init.constant_(model.embed.weight, torch.nan)
    with pytest.raises(NanError, match=r"\(NaN\)"):
        draw_around(grid_of(B=LOW), TorchSourcePlayer(model), TOK, 0.5, Accompany(PLAIN, rules=STRICT))
