"""Sampling over ids: reads every prompt once, in blocks, then takes one cached step a token for all rows together.

Each row has its own random numbers: what row k draws is a function of (random seed, k), whatever other rows the
batch has.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from musictx.errors import UserError, is_out_of_memory
from musictx.generate.character import Character
from musictx.generate.filters import NanError, draw
from musictx.generate.guidance import guided
from musictx.generate.requests import Sampling
from musictx.generate.steering import Steering, lead
from musictx.model.cache import KVCache
from musictx.model.prompt_cache import PromptCache
from musictx.model.protocol import LanguageModel, Steps
from musictx.model.static_steps import StaticSteps
from musictx.model.transformer import Transformer
from musictx.tokenizers.grammar import Grammar

PREFILL_BLOCK = 512  # tokens: attention over a whole prompt of T at once would take memory O(T²)


class Drawn(NamedTuple):
    """One token a row: its id, and the model's own log-probability of it, 0 where it was given, (B,) each."""

    ids: Tensor
    log_p: Tensor


class ByChance:
    """Draws. What row b draws depends only on its logits, its key (random seed, k), and what it is led to."""

    def __init__(
        self,
        sampling: Sampling,
        keys: Sequence[tuple[int, int]],
        device: torch.device | str,
        steering: Steering | None = None,
        fold: Callable[[Tensor], Tensor] | None = None,
        character: Character | None = None,
    ) -> None:
        """`fold` changes logits (B, V) before anything else does."""
        self.sampling, self.uniforms, self.steering, self.fold = sampling, Uniforms(keys, device), steering, fold
        self.character = character
        if character is not None:
            self.strikes = torch.from_numpy(character.strikes).to(device)  # (V,)
        self.warmth = torch.ones(len(keys), 1, device=device)  # (B, 1)
        self.temperature = self.warmth * sampling.temperature
        self.ease, self.drawn = torch.zeros(2, len(keys), 2, device=device)  # as in `Particles`

    def warm(self, factors: Sequence[float]) -> None:
        """From now on each row's temperature is so many times the one asked for, and seed guidance the weaker."""
        like = self.temperature
        self.warmth = torch.tensor(factors, device=like.device, dtype=like.dtype)[:, None]
        self.temperature = self.warmth * self.sampling.temperature

    def __call__(self, logits: Tensor, legal: Tensor) -> Tensor:
        """Logits (B · streams, V), and what is legal (B, V) -> ids (B,)."""
        strength = self.sampling.strength
        streams = [logits] if strength is None else [logits[::2], logits[1::2]]
        if self.fold is not None:
            streams = [self.fold(each) for each in streams]
        masked, *bare = (torch.where(legal, each, -torch.inf) for each in streams)
        if self.character is not None:
            more, of_notes = (torch.from_numpy(each).to(masked.device) for each in self.character())
            masked, *bare = (lead(each + more, of_notes, self.strikes)[0] for each in (masked, *bare))
        if self.steering is not None:
            (masked, eased), *others = (self.steering(each) for each in (masked, *bare))
            bare = [each for each, _ in others]
        if strength is not None:
            masked = guided(masked, bare[0], self._strength(strength))
        ids = draw(masked, self.sampling, self.temperature, self.uniforms.next())
        if self.steering is not None:
            free = (legal.sum(1, keepdim=True) > 1).float()  # (B, 1)
            struck = self.steering.begins_note().expand(len(ids), -1).gather(1, ids[:, None]).long()
            self.ease.scatter_add_(1, struck, eased.gather(1, ids[:, None]) * free)
            self.drawn.scatter_add_(1, struck, free)
            self.steering.update(ids)
        if self.character is not None:
            self.character.update(ids.tolist())
        return ids

    def _strength(self, asked: float) -> Tensor:
        """(B, 1) of seed guidance: less while a row goes in circles, none while it would go on with a loop."""
        strength = asked / self.warmth
        if self.character is not None:
            strength = strength * torch.from_numpy(~self.character.loops[:, None]).to(strength.device)
        return strength

    def take(self, ids: Tensor) -> None:
        """Ids (B,) that are given, not drawn. A random number a row is left out, so that what follows does not depend
        on how many ids are given."""
        self.uniforms.next()
        if self.steering is not None:
            self.steering.update(ids)
        if self.character is not None:
            self.character.update(ids.tolist())


class Stream:
    """An endless iterator, one token a row at every step: the one loop behind all music that a model makes.

    The caller decides when to stop. Nothing here waits for the device, but the guard, which follows each row on the
    CPU; so the caller must call `check` now and then.
    `choose` takes logits (B · streams, V) and what is legal (B, V), and gives ids (B,), as `ByChance` does.
    `logits` (B · streams, V) and `state` are those after the prompts. Several streams of one row read the same music
    after different beginnings; reported probabilities are those of the first. With `given`, the first ids of all rows
    are these, and rows draw where it is -1. The model reads a given id together with the next one that rows draw, so
    its state must take several ids at once.
    """

    def __init__(
        self,
        model: Steps,
        logits: Tensor,
        state: Any,
        grammar: Grammar,
        choose: Callable[[Tensor, Tensor], Tensor],
        streams: int = 1,
        given: Sequence[int] = (),
    ) -> None:
        self.model, self.logits, self.state, self.grammar = model, logits, state, grammar
        self.given = iter(given)
        self.choose, self.streams = choose, streams
        # False once a row's logits were NaN or infinite
        self.finite = torch.ones(len(logits) // streams, dtype=torch.bool, device=logits.device)
        self.unread: list[Tensor] = []  # (B,) each: ids that the model has not read yet

    def __iter__(self) -> Self:
        return self

    @torch.inference_mode()
    def __next__(self) -> Drawn:
        if (given := next(self.given, -1)) >= 0:
            assert isinstance(self.choose, ByChance)
            ids = torch.full((len(self.finite),), given, device=self.finite.device)
            self.choose.take(ids)
            return self._keep(ids, torch.zeros_like(self.choose.temperature[:, 0]))
        if self.unread:
            ids = torch.stack(self.unread, 1).repeat_interleave(self.streams, 0)  # (B · streams, T)
            one = ids.shape[1] == 1
            self.logits = self.model.step(ids[:, 0], self.state) if one else self.model.prefill(ids, self.state)
            self.unread = []
        logits = self.logits.float()  # (B · streams, V)
        # (B, V) all NaN where a logit is NaN or +infinity, or none is finite
        log_p = logits[:: self.streams].log_softmax(-1)
        ids = self.choose(logits, self.grammar.legal())
        self.finite &= ~log_p[:, 0].isnan()
        return self._keep(ids, log_p.gather(1, ids[:, None])[:, 0])

    def _keep(self, ids: Tensor, log_p: Tensor) -> Drawn:
        self.grammar.update(ids)
        self.unread.append(ids)
        return Drawn(ids, log_p)

    def check(self) -> None:
        """Waits for the device. Raises NanError once a row's logits were NaN or infinite."""
        if not self.finite.all():
            raise NanError

    def gains(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """What rows gained since the last call, as in `Particles`: (B, 2) by ids that begin no note and those that do,
        and how many these were; (B,) how far each row now is from the numbers that are asked for."""
        assert isinstance(self.choose, ByChance)
        assert self.choose.steering is not None
        sums = self.choose.ease, self.choose.drawn
        ease, drawn, away = (x.double().cpu().numpy().copy() for x in (*sums, self.choose.steering.away()))
        for x in sums:
            x.zero_()
        return ease, drawn, away

    @torch.inference_mode()
    def move(self, rows: NDArray[np.int64]) -> None:
        """Row b becomes what row rows[b] was, (B,), of the same prompt; each keeps its own chance."""
        assert isinstance(self.choose, ByChance)
        at = torch.from_numpy(rows).to(self.finite.device)
        several = (at[:, None] * self.streams + torch.arange(self.streams, device=at.device)).flatten()
        self.finite = self.finite[at]
        (self.model if isinstance(self.model, StaticSteps) else self.state).move(several)
        self.unread = [ids[at] for ids in self.unread]
        self.grammar.move(at)
        if self.choose.steering is not None:
            self.choose.steering.move(at)
        if self.choose.character is not None:
            self.choose.character.move(rows.tolist())


class BatchRow(NamedTuple):
    """Which prompt a row continues, and the key of its random numbers: (random seed, k)."""

    prompt: int
    key: tuple[int, int]


def begin_stream(
    model: LanguageModel,
    prompts: Sequence[Tensor],
    rows: Sequence[BatchRow],
    sampling: Sampling,
    grammar: Grammar,
    room: int,
    rolling: bool,
    bare: Sequence[Tensor] = (),
    steering: Steering | None = None,
    fold: Callable[[Tensor], Tensor] | None = None,
    character: Character | None = None,
) -> Stream:
    """A stream of rows that draw after their prompts (T,) int64, of any lengths. With seed guidance each row is read
    after its `bare` prompt too. The model's state has room for `room` tokens; with `rolling` for the last ones."""
    streams = 1 if sampling.strength is None else 2
    of_row = [row.prompt + k * len(prompts) for row in rows for k in range(streams)]
    logits, state = prefill(model, [*prompts, *bare], of_row, room, rolling, steps_only=True)
    chance = ByChance(sampling, [row.key for row in rows], logits.device, steering, fold, character)
    return Stream(model, logits, state, grammar, chance, streams)


def read(model: LanguageModel, ids: Tensor, state: Any, room: int) -> Tensor:
    """Reads ids (T,), at least one, into a state with that room -> logits (1, V) after the last."""
    for block in torch.split(ids[None], min(PREFILL_BLOCK, room), dim=1):
        logits = model.prefill(block, state)
    return logits


@torch.inference_mode()
def prefill(
    model: LanguageModel,
    prompts: Sequence[Tensor],
    of_row: Sequence[int],
    room: int,
    rolling: bool,
    steps_only: bool = False,
) -> tuple[Tensor, Any]:
    """Reads each prompt (T,) once -> logits (B, V) after it and the joint state; row b continues prompt of_row[b]. With
    `steps_only` the state may be one that takes single tokens and joins no other."""
    logits, states = {}, {}
    for i in sorted(set(of_row)):
        state = model.init_state(1, room, rolling)
        logits[i], states[i] = read(model, prompts[i], state, room), state
    each, after = [states[i] for i in of_row], torch.cat([logits[i] for i in of_row])
    if steps_only and isinstance(model, Transformer) and model.shares_prompts and type(each[0]) is KVCache:
        numbers = sorted(states)
        own = room if rolling else max(room - max(state.length for state in each), 1)
        return after, PromptCache([states[i] for i in numbers], [numbers.index(i) for i in of_row], own)
    same = torch.zeros(len(each), dtype=torch.long, device=prompts[0].device)
    return after, each[0].take(same) if len(states) == 1 else type(each[0]).join(each)


@contextmanager
def enough_memory(rows: int, otherwise: str, each: int = 1) -> Iterator[None]:
    """Raises UserError where memory runs out within it. The advice is fewer rows together; or fewer particles, where
    one piece of music has `each` rows; or `otherwise`."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        what, advice = f"{rows} rows drawn together", f"give rows_at_once={rows // 2}"
        if rows <= each > 1:
            advice = "give control.particles=1"
        elif rows == 1:
            what, advice = "a single row", otherwise
        raise UserError(f"out of memory with {what}", advice) from None


BLOCK = 256  # random numbers made ahead, one a token


class Uniforms:
    """Random numbers in [0, 1) for a batch, one (B, 1) float64 a token; row b follows key b, (random seed, k).

    Philox counts from its key (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"), so no two keys
    share a stream. Every device uses numpy's.
    """

    def __init__(self, keys: Sequence[tuple[int, int]], device: torch.device | str) -> None:
        self.device, self.at = device, BLOCK
        self.generators = [np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))) for key in keys]
        self.block = torch.empty(0)

    def next(self) -> Tensor:
        if self.at == BLOCK:
            block = np.stack([generator.random(BLOCK) for generator in self.generators], 1)  # (BLOCK, B)
            self.block, self.at = torch.from_numpy(block[..., None]).to(self.device), 0
        self.at += 1
        return self.block[self.at - 1]
