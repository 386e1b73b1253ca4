"""Continues the beginnings of held-out pieces, as `musictx compare` and `listen` do."""

from dataclasses import replace
from time import perf_counter
from typing import Any, NamedTuple

from musictx.analysis.held_out import Beginnings
from musictx.errors import UserError
from musictx.generate.draw import continue_primers
from musictx.generate.primer import Primer
from musictx.generate.requests import Continue, Length
from musictx.model.steps import Player
from musictx.music.score import Meter, Score
from musictx.tokenizers import Tokenizer


class Continued(NamedTuple):
    """A model's continuation of each seed, from time 0 on, and how fast it drew."""

    scores: list[Score]
    tokens_per_s: float


def continue_beginnings(
    player: Player, tokenizer: Tokenizer, held_out: Beginnings, request: Continue, **settings: Any
) -> Continued:
    """One continuation of each seed, as long as the true one, batched; `settings` as in `Drawing`. Raises UserError for
    one that stops early."""
    request = replace(request, length=Length(seconds=held_out.length_s), include_seed=False)
    primers = [Primer(seed, held_out.seed_s, Meter(seed.quarter_s)) for seed in held_out.seeds]
    start = perf_counter()
    continuations = continue_primers(primers, player, tokenizer, request, **settings)
    seconds = perf_counter() - start
    stopped = {row.stopped for rows in continuations for row in rows} - {""}
    if stopped:
        raise UserError(f"continuations ended before {held_out.length_s:g} s", ", ".join(stopped))
    scores = [rows[0].score.clip(0.0, held_out.length_s) for rows in continuations]
    return Continued(scores, sum(len(tokenizer.encode(score)) for score in scores if len(score)) / seconds)
