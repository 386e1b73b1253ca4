"""Sampling of ids: every prompt is read once, then all rows take one cached step a token."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from musictx.errors import UserError, counted, is_out_of_memory
from musictx.generate.character import Character
from musictx.generate.filters import NanError, draw, guide, log_softmax
from musictx.generate.requests import Sampling
from musictx.generate.steering import lead
from musictx.model.steps import Logits, Player, Steps
from musictx.tokenizers.grammar import Grammar

Array = NDArray[np.float64]
RowIds = NDArray[np.int64]  # (B,)
Legal = NDArray[np.bool_]  # (B, V)


class StreamStep(NamedTuple):
    """One token a row, (B,): its id, and its log-probability under the model alone, 0 of a forced id."""

    ids: RowIds
    log_p: Array


class Targets(Protocol):
    """Terms on logits that lead the rows of a batch to what a `Control` asks for."""

    def __call__(self, logits: Array) -> tuple[Array, Array]:
        """Logits (B, V), -inf where illegal -> steered logits (B, V), and logarithms of the targets' share under the
        model (B, V)."""
        ...

    def begins_note(self) -> NDArray[np.bool_]:
        """(B, V) the ids that begin a note now."""
        ...

    def update(self, ids: RowIds) -> None:
        """Takes one more token a row, (B,)."""
        ...

    def move(self, rows: RowIds) -> None:
        """Makes row b a copy of row rows[b], (B,), of the same prompt."""
        ...

    def away(self) -> Array:
        """(B,) the distance from targets that no single id meets, times the strength."""
        ...


class ByChance:
    """Draws ids; those of row b depend only on its logits, its key (random seed, k), its steering and its character."""

    def __init__(
        self,
        sampling: Sampling,
        keys: Sequence[tuple[int, int]],
        steering: Targets | None = None,
        fold: Callable[[Array], Array] | None = None,
        character: Character | None = None,
    ) -> None:
        self.sampling, self.uniforms, self.steering, self.fold = sampling, Uniforms(keys), steering, fold
        self.character, self.rows = character, np.arange(len(keys))
        self.warm([1.0] * len(keys))
        self.ease, self.tally = np.zeros((2, len(keys), 2))  # as in `Particles`

    def warm(self, factors: Sequence[float]) -> None:
        """Multiplies each row's temperature by a factor from now on, and divides seed guidance by it."""
        self.warmth = np.array(factors)[:, None]  # (B, 1)
        self.temperature = self.warmth * self.sampling.temperature

    def __call__(self, logits: Array, legal: Legal) -> RowIds:
        """Logits (B · streams, V), and a mask of legal ids (B, V) -> ids (B,)."""
        strength = self.sampling.strength
        streams = [logits] if strength is None else [logits[::2], logits[1::2]]
        if self.fold is not None:
            streams = [self.fold(each) for each in streams]
        whole, *bare = (np.where(legal, each, -np.inf) for each in streams)
        if self.character is not None:
            more, of_notes = self.character()
            whole, *bare = (lead(each + more, of_notes, self.character.strikes)[0] for each in (whole, *bare))
        if self.steering is not None:
            (whole, ease), *others = (self.steering(each) for each in (whole, *bare))
            bare = [each for each, _ in others]
        if strength is not None:
            whole = guide(whole, bare[0], self._strength(strength))
        ids = draw(whole, self.sampling, self.temperature, self.uniforms.next())
        if self.steering is not None:
            free = legal.sum(1) > 1  # (B,)
            is_strike = self.steering.begins_note()[self.rows, ids].astype(np.int64)
            self.ease[self.rows, is_strike] += ease[self.rows, ids] * free
            self.tally[self.rows, is_strike] += free
        self._keep(ids)
        return ids

    def _strength(self, guidance: float) -> Array:
        """The strength of seed guidance (B, 1), none where a loop would go on."""
        strength = guidance / self.warmth
        return strength if self.character is None else strength * ~self.character.loops[:, None]

    def take(self, ids: RowIds) -> None:
        """Takes forced ids (B,); skips a random number, so that later draws do not depend on them."""
        self.uniforms.next()
        self._keep(ids)

    def _keep(self, ids: RowIds) -> None:
        if self.steering is not None:
            self.steering.update(ids)
        if self.character is not None:
            self.character.update(ids.tolist())


class Stream:
    """An endless iterator of one token a row: the one loop behind all music.

    `steps` and `logits` (B · streams, V) follow the prompts. The `streams` of a row read the same ids after different
    beginnings; probabilities are those of the first. Rows draw where `forced_ids` are -1, and after them. Raises
    NanError for NaN or infinite logits."""

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
        """Since the last call: the gains and the tally of ids that begin no note, and that do, (B, 2) each; the
        distance from targets, (B,)."""
        assert self.chance.steering is not None
        gains = self.chance.ease.copy(), self.chance.tally.copy(), self.chance.steering.away()
        self.chance.ease[:] = self.chance.tally[:] = 0
        return gains

    def move(self, rows: RowIds) -> None:
        """Makes row b a copy of row rows[b], (B,), of the same prompt, but for its random numbers."""
        self.steps.move((rows[:, None] * self.streams + np.arange(self.streams)).ravel())
        self.unread = [ids[rows] for ids in self.unread]
        self.grammar.move(rows)
        if self.chance.steering is not None:
            self.chance.steering.move(rows)
        if self.chance.character is not None:
            self.chance.character.move(rows.tolist())


class BatchRow(NamedTuple):
    """The number of a row's prompt, and its random key, (random seed, k)."""

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
    steering: Targets | None = None,
    fold: Callable[[Array], Array] | None = None,
    character: Character | None = None,
) -> Stream:
    """A stream of rows after prompts (T,) of any lengths, and `bare` ones for seed guidance.

    The state has room for `room` tokens, the last ones if it is `rolling`. `fold` changes logits (B, V) first."""
    streams = 1 if sampling.strength is None else 2
    of_row = [row.prompt + k * len(prompts) for row in rows for k in range(streams)]
    logits, steps = prefill(player, [*prompts, *bare], of_row, room, rolling)
    chance = ByChance(sampling, [row.key for row in rows], steering, fold, character)
    return Stream(steps, logits, grammar, chance, streams)


def prefill(
    player: Player, prompts: Sequence[NDArray[np.int64]], of_row: Sequence[int], room: int, rolling: bool
) -> tuple[Logits, Steps]:
    """Logits (B, V) and steps after prompts (T,), read once each; row b continues prompt of_row[b]."""
    numbers = sorted(set(of_row))
    parts = [player.begin(room, rolling) for _ in numbers]
    logits = [part.prefill(prompts[i][None]) for i, part in zip(numbers, parts, strict=True)]
    at = [numbers.index(i) for i in of_row]
    return np.concatenate([logits[k] for k in at]), player.join(parts, at)


@contextmanager
def enough_memory(rows: int, otherwise: str, each: int = 1) -> Iterator[None]:
    """Raises UserError where memory runs out; the advice is fewer rows, fewer particles (`each`), or `otherwise`."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        what, advice = f"{counted(rows, 'row')} drawn together", f"give rows_at_once={rows // 2}"
        if rows <= each > 1:
            advice = "give control.particles=1"
        elif rows == 1:
            what, advice = "a single row", otherwise
        raise UserError(f"out of memory with {what}", advice) from None


BLOCK = 256  # random numbers made ahead, one a token


class Uniforms:
    """Random numbers in [0, 1), (B, 1) float64 a token; row b has key b, (random seed, k).

    Philox (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"): no two keys share a stream."""

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
