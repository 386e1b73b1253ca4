"""Sampling over ids: reads every prompt once, then takes one cached step a token for all rows together.

Each row has its own random numbers: the ids of row k are a function of (random seed, k), whatever other rows the batch
has.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError, is_out_of_memory
from musictx.generate.character import Character
from musictx.generate.filters import NanError, draw, guided, log_softmax
from musictx.generate.requests import Sampling
from musictx.generate.steering import Steering, lead
from musictx.model.steps import Logits, Player, Steps
from musictx.tokenizers.grammar import Grammar

Array = NDArray[np.float64]
RowIds = NDArray[np.int64]  # (B,)
Legal = NDArray[np.bool_]  # (B, V)


class StreamStep(NamedTuple):
    """One token a row: its id, and the model's own log-probability of it, 0 where it was given, (B,) each."""

    ids: RowIds
    log_p: Array


class ByChance:
    """Draws ids: those of row b depend only on its logits, its key (random seed, k) and its steering."""

    def __init__(
        self,
        sampling: Sampling,
        keys: Sequence[tuple[int, int]],
        steering: Steering | None = None,
        fold: Callable[[Array], Array] | None = None,
        character: Character | None = None,
    ) -> None:
        """`fold` changes logits (B, V) before anything else does."""
        self.sampling, self.uniforms, self.steering, self.fold = sampling, Uniforms(keys), steering, fold
        self.character, self.rows = character, np.arange(len(keys))
        self.warm([1.0] * len(keys))
        self.ease, self.tally = np.zeros((2, len(keys), 2))  # as in `Particles`

    def warm(self, factors: Sequence[float]) -> None:
        """From now on each row's temperature is so many times the one asked for, and seed guidance the weaker."""
        self.warmth = np.array(factors)[:, None]  # (B, 1)
        self.temperature = self.warmth * self.sampling.temperature

    def __call__(self, logits: Array, legal: Legal) -> RowIds:
        """Logits (B · streams, V), and a mask of legal ids (B, V) -> ids (B,)."""
        strength = self.sampling.strength
        streams = [logits] if strength is None else [logits[::2], logits[1::2]]
        if self.fold is not None:
            streams = [self.fold(each) for each in streams]
        masked, *bare = (np.where(legal, each, -np.inf) for each in streams)
        if self.character is not None:
            more, of_notes = self.character()
            masked, *bare = (lead(each + more, of_notes, self.character.strikes)[0] for each in (masked, *bare))
        if self.steering is not None:
            (masked, eased), *others = (self.steering(each) for each in (masked, *bare))
            bare = [each for each, _ in others]
        if strength is not None:
            masked = guided(masked, bare[0], self._strength(strength))
        ids = draw(masked, self.sampling, self.temperature, self.uniforms.next())
        if self.steering is not None:
            free = legal.sum(1) > 1  # (B,)
            struck = self.steering.begins_note()[self.rows, ids].astype(np.int64)
            self.ease[self.rows, struck] += eased[self.rows, ids] * free
            self.tally[self.rows, struck] += free
        self._keep(ids)
        return ids

    def _strength(self, guidance: float) -> Array:
        """(B, 1) of seed guidance: less while a row goes in circles, none while it would go on with a loop."""
        strength = guidance / self.warmth
        return strength if self.character is None else strength * ~self.character.loops[:, None]

    def take(self, ids: RowIds) -> None:
        """Takes forced ids (B,). Skips a random number a row, so that later draws do not depend on them."""
        self.uniforms.next()
        self._keep(ids)

    def _keep(self, ids: RowIds) -> None:
        if self.steering is not None:
            self.steering.update(ids)
        if self.character is not None:
            self.character.update(ids.tolist())


class Stream:
    """An endless iterator, one token a row at every step: the one loop behind all music that a model makes.

    The caller decides when to stop. `steps` and `logits` (B · streams, V) are those after the prompts. Several streams
    of one row read the same music after different beginnings; reported probabilities are those of the first.
    All rows begin with `forced_ids`, and draw where these are -1. The model reads a forced id together with the next
    one that rows draw, so its steps must take several at once. Raises NanError once logits are NaN or infinite.
    """

    def __init__(
        self,
        steps: Steps,
        logits: Logits,
        grammar: Grammar,
        chance: ByChance,
        streams: int = 1,
        forced_ids: Sequence[int] = (),
    ) -> None:
        self.steps, self.logits, self.grammar = steps, logits, grammar
        self.forced_ids, self.chance, self.streams = iter(forced_ids), chance, streams
        self.rows = np.arange(len(logits) // streams)
        self.unread: list[RowIds] = []  # (B,) each: ids that the model has not read yet

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> StreamStep:
        if (forced_ids := next(self.forced_ids, -1)) >= 0:
            ids = np.full(len(self.rows), forced_ids)
            self.chance.take(ids)
            return self._keep(ids, np.zeros(len(ids)))
        if self.unread:
            ids = np.stack(self.unread, 1).repeat(self.streams, axis=0)  # (B · streams, T)
            one = len(self.unread) == 1
            self.logits = self.steps.step(ids[:, 0]) if one else self.steps.prefill(ids)
            self.unread = []
        logits = self.logits.astype(np.float64)  # (B · streams, V)
        log_p = log_softmax(logits[:: self.streams])  # all NaN where a logit is NaN or infinity, or none is finite
        if np.isnan(log_p[:, 0]).any():
            raise NanError
        ids = self.chance(logits, self.grammar.legal())
        return self._keep(ids, log_p[self.rows, ids])

    def _keep(self, ids: RowIds, log_p: Array) -> StreamStep:
        self.grammar.update(ids)
        self.unread.append(ids)
        return StreamStep(ids, log_p)

    def gains(self) -> tuple[Array, Array, Array]:
        """The gains of rows since the last call, as in `Particles`: (B, 2) by ids that begin no note and those that do,
        and the tally of these ids; (B,) the distance of each row from its targets."""
        assert self.chance.steering is not None
        gains = self.chance.ease.copy(), self.chance.tally.copy(), self.chance.steering.away()
        self.chance.ease[:] = self.chance.tally[:] = 0
        return gains

    def move(self, rows: RowIds) -> None:
        """Row b becomes a copy of row rows[b], (B,), of the same prompt; each keeps its own chance."""
        self.steps.move((rows[:, None] * self.streams + np.arange(self.streams)).ravel())
        self.unread = [ids[rows] for ids in self.unread]
        self.grammar.move(rows)
        if self.chance.steering is not None:
            self.chance.steering.move(rows)
        if self.chance.character is not None:
            self.chance.character.move(rows.tolist())


class BatchRow(NamedTuple):
    """Which prompt a row continues, and the key of its random numbers: (random seed, k)."""

    prompt: int
    key: tuple[int, int]


def begin_stream(
    player: Player,
    prompts: Sequence[NDArray[np.int64]],
    rows: Sequence[BatchRow],
    sampling: Sampling,
    grammar: Grammar,
    room: int,
    rolling: bool,
    bare: Sequence[NDArray[np.int64]] = (),
    steering: Steering | None = None,
    fold: Callable[[Array], Array] | None = None,
    character: Character | None = None,
) -> Stream:
    """A stream of rows that draw after their prompts (T,), of any lengths. With seed guidance each row is read after
    its `bare` prompt too. The model's state has room for `room` tokens; with `rolling` for the last ones."""
    streams = 1 if sampling.strength is None else 2
    of_row = [row.prompt + k * len(prompts) for row in rows for k in range(streams)]
    logits, steps = prefill(player, [*prompts, *bare], of_row, room, rolling)
    chance = ByChance(sampling, [row.key for row in rows], steering, fold, character)
    return Stream(steps, logits, grammar, chance, streams)


def prefill(
    player: Player, prompts: Sequence[NDArray[np.int64]], of_row: Sequence[int], room: int, rolling: bool
) -> tuple[Logits, Steps]:
    """Reads each prompt (T,) once -> logits (B, V) after it, and the steps of all rows; row b continues prompt
    of_row[b]."""
    used = sorted(set(of_row))
    parts = [player.begin(room, rolling) for _ in used]
    logits = [part.prefill(prompts[i][None]) for i, part in zip(used, parts, strict=True)]
    at = [used.index(i) for i in of_row]
    return np.concatenate([logits[k] for k in at]), player.join(parts, at)


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
    share a stream.
    """

    def __init__(self, keys: Sequence[tuple[int, int]]) -> None:
        self.at = BLOCK
        self.generators = [np.random.Generator(np.random.Philox(key=np.array(key, np.uint64))) for key in keys]
        self.block = np.zeros((0, 0, 1))

    def next(self) -> Array:
        if self.at == BLOCK:
            self.block = np.stack([generator.random(BLOCK) for generator in self.generators], 1)[..., None]
            self.at = 0
        self.at += 1
        row: Array = self.block[self.at - 1]  # (B, 1)
        return row
