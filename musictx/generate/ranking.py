"""Which of many draws are the best: `musictx generate draws=20 rank=both`."""

from collections.abc import Callable, Sequence

from musictx.analysis.motif import returns
from musictx.errors import UserError
from musictx.generate.draw import Continuation
from musictx.generate.primer import Primer

Ranking = Callable[[Primer | None, Continuation], float]


def by_likelihood(primer: Primer | None, continuation: Continuation) -> float:
    """Ranks continuations higher whose tokens the model itself finds likelier: nats a token."""
    return continuation.mean_log_p


def by_primer(held_s: float) -> Ranking:
    """Ranks continuations higher in which more of the seed's motifs return: a share. Without a seed, or with one too
    short for motifs, all rank equally. `held_s` as in `analysis/motif.py`."""

    def share(primer: Primer | None, continuation: Continuation) -> float:
        if primer is None:
            return 0.0
        new = continuation.score.clip(continuation.new_from_s, continuation.score.duration_s)
        try:
            return float(returns(primer.score, new, [0.0, max(new.duration_s, 1e-3) + 1.0], held_s)[0])
        except UserError:
            return 0.0

    return share


def rankings(rank: str, held_s: float) -> list[Ranking]:
    """The rankings that `rank=`, one of RANKS, names."""
    both = [by_likelihood, by_primer(held_s)]
    return {"likelihood": both[:1], "motif": both[1:], "both": both}[rank]


def best_first(primer: Primer | None, drawn: Sequence[Continuation], rankings: Sequence[Ranking]) -> list[Continuation]:
    """Sorted by the sum of their places in each ranking; a tie goes to the earlier draw."""
    places = [0] * len(drawn)
    for ranking in rankings:
        worth = [ranking(primer, continuation) for continuation in drawn]
        for i, value in enumerate(worth):
            places[i] += sum(other > value for other in worth)
    return [drawn[i] for i in sorted(range(len(drawn)), key=lambda i: places[i])]
