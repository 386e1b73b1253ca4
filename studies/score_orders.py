"""The order of a score's ids: bar by bar with the tune a bar ahead, bar by bar, by onset, or part by part; and in the
first of these a table of distances and an LSTM beside Fourier positions.

    OMP_NUM_THREADS=1 python studies/score_orders.py --store outputs/score_music/works --out outputs/score_orders

The same scores are written in each order, with the ids of the score encoding. A small model learns each for as many
seconds of a core (`SECONDS`), with the same window and optimizer. A step counts those of `costs.json`
(`step_costs.py`). The figure is nats a note on held-out works, with all ids counted. By part, a block of `BLOCK` bars
of one part comes before the next part's, since a model continues music. The kinds of model have as many parameters,
within a tenth.

The rule that chooses the rate of each order: of `RATES` the one with the lowest cost on every fourth validation piece;
where that is the lowest or highest so far, half or twice the rate is tried too. The figures are of every other piece,
none of these, with `SEEDS` other random seeds. Orders of unequal length could win by the window alone, so each is
scored with a context of half a window at least, the LSTM with a carried state, and the ids a note are kept beside it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import timed
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from shared import options
from step_costs import Costs

from musictx.analysis.bootstrap import interval
from musictx.analysis.likelihood import negative_log_likelihood
from musictx.config.mistakes import in_one_line
from musictx.data.dataset import RandomCrops
from musictx.data.store import Split, Store
from musictx.model.build import build_model, model_config
from musictx.music.notation.parts import Bar, Note
from musictx.system import processor
from musictx.terminal import say
from musictx.tokenizers import Ids
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import TUNE
from musictx.tokenizers.score.tokens import chords_of

SCORE = ScoreTokenizer()
BLOCK = 8  # bars
SECONDS, WINDOW, ROWS = 600.0, 512, 4
RATES, SEEDS = (1e-3, 2e-3, 4e-3), (1, 2)
CHOOSES = 0  # the random seed of the runs that choose
SEMITONES = 5
MODEL: dict[str, Any] = {"d_model": 192, "n_layers": 4, "n_heads": 4, "d_ff": 512, "dropout": 0.0, "mlp": "swiglu"}
MODEL |= {"qk_norm": True, "value_residual": True, "position": "relative_fourier"}
CELLS: dict[str, Any] = {"d_model": 232, "n_layers": 4, "dropout": 0.0, "residual": True}
Staves = dict[int, list[Note]]  # by slot


def staves_of(ids: Ids) -> tuple[Staves, list[Bar], int]:
    """The notes of each part, the bars, and where the last one ends."""
    placed, bars, end = SCORE.placed(ids)
    staves: Staves = {}
    for each in placed:
        staves.setdefault(each.slot, []).append(each.note)
    return staves, bars, end


def within(notes: Sequence[Note], bar: Bar, end: int) -> list[Note]:
    return [note for note in notes if bar.onset <= note.onset < end]


def begin(bar: Bar, end: int) -> list[int]:
    """The ids that begin a bar."""
    meter = SCORE.vocab.id(f"METER_{bar.denominator}", bar.numerator)
    return [meter] if end - bar.onset == bar.full else [meter, SCORE.span, SCORE.at0 + end - bar.onset]


class Chords:
    """The ids of chords; a part's length is left out where it is that of its note before in the bar."""

    def __init__(self) -> None:
        self.last: dict[int, int] = {}

    def ids(self, slot: int, notes: Sequence[Note]) -> Iterator[int]:
        for _, length, pitches in chords_of(notes):
            if self.last.get(slot) != length:
                yield from SCORE.length_ids(length)
            self.last[slot] = length
            yield from (SCORE.pitch0 + pitch for pitch in pitches)


def by_onset(ids: Ids) -> list[int]:
    """All parts together: at each place, each part's chords."""
    staves, bars, end = staves_of(ids)
    out: list[int] = []
    for bar, until in zip(bars, [*(bar.onset for bar in bars[1:]), end], strict=True):
        out += begin(bar, until)
        chords = Chords()
        notes = sorted((note.onset, slot, note) for slot in staves for note in within(staves[slot], bar, until))
        for onset, here in groupby(notes, key=lambda each: each[0]):
            out.append(SCORE.at0 + onset - bar.onset)
            for slot, own in groupby(here, key=lambda each: each[1]):
                out += [SCORE.part0 + slot, *chords.ids(slot, [note for _, _, note in own])]
        out.append(SCORE.bar)
    return out


def by_part(ids: Ids) -> list[int]:
    """Some bars of one part, then the same of the next; the meters come with the first."""
    staves, bars, end = staves_of(ids)
    spans = list(zip(bars, [*(bar.onset for bar in bars[1:]), end], strict=True))
    out: list[int] = []
    for first in range(0, len(spans), BLOCK):
        for slot in sorted(staves):
            out.append(SCORE.part0 + slot)
            for bar, until in spans[first : first + BLOCK]:
                out += begin(bar, until) if slot == min(staves) else []
                chords = Chords()
                for onset, here in groupby(within(staves[slot], bar, until), key=lambda note: note.onset):
                    out += [SCORE.at0 + onset - bar.onset, *chords.ids(slot, list(here))]
                out.append(SCORE.bar)
    return out


def by_bar(ids: Ids, ahead: int | None) -> list[int]:
    """As the encoding has it; pieces without a tune are the same in both."""
    found: list[int] = SCORE.encode_notation(SCORE.decode_notation(ids), ahead).tolist()
    return found


ORDERS: dict[str, Callable[[Ids], list[int]]] = {
    "by bar, tune ahead": partial(by_bar, ahead=TUNE),
    "by bar": partial(by_bar, ahead=None),
    "by onset": by_onset,
    "by part": by_part,
}


class Contestant(NamedTuple):
    """An order, and the kind of model that learns it."""

    order: str
    kind: str = "transformer"
    settings: Mapping[str, Any] = MappingProxyType(MODEL)


AHEAD = "by bar, tune ahead"
CONTESTANTS = {order: Contestant(order) for order in ORDERS}
CONTESTANTS["table"] = Contestant(AHEAD, settings=MODEL | {"position": "relative", "d_ff": 352})
CONTESTANTS["LSTM"] = Contestant(AHEAD, "recurrent", CELLS)


@lru_cache(maxsize=4)
def written(split: Split, order: str, every: int = 1, first: int = 0) -> tuple[Split, NDArray[np.int64]]:
    """Every so many pieces of a split in an order, and the notes of each."""
    numbers = range(first, len(split), every)
    pieces = [ORDERS[order](np.asarray(split[n])) for n in numbers]
    notes = np.array([int((SCORE.pitch[np.array(piece)] >= 0).sum()) for piece in pieces])
    offsets = np.cumsum([0, *map(len, pieces)])
    ids = np.concatenate(pieces).astype(np.uint16)
    return Split(ids, offsets, [split.names[n] for n in numbers]), notes


def built(each: Contestant) -> Any:
    return build_model(model_config(each.kind, each.settings, vocab_size=SCORE.vocab.size))


def step_loss(model: Any, ids: torch.Tensor) -> torch.Tensor:
    """The mean loss of (ROWS, WINDOW + 1) ids."""
    logits = model(ids[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), ignore_index=SCORE.vocab.pad)


def gradients(model: Any, length: int) -> None:
    """What a step computes."""
    ids = np.random.default_rng(0).integers(1, SCORE.vocab.pad, (ROWS, length + 1))
    step_loss(model, torch.from_numpy(ids)).backward()


def train(music: dict[str, Split], each: Contestant, steps: int, rate: float, seed: int) -> dict[str, Any]:
    """What a contestant needs for held-out music: nats and notes of each piece."""
    torch.manual_seed(seed)
    model = built(each)
    crops = RandomCrops(written(music["train"], each.order)[0], SCORE, WINDOW, seed, transpose=SEMITONES)
    numbers = iter(range(10**9))

    def loss() -> torch.Tensor:
        return step_loss(model, torch.stack([crops[next(numbers)] for _ in range(ROWS)]))

    timed.learn(model, loss, rate, (step / steps for step in range(steps)))
    found: dict[str, Any] = {"steps": steps, "processor": str(processor())}
    found["parameters"] = sum(p.numel() for p in model.parameters())
    for name, every, first in (("choice", 4, 0), ("figure", 2, 1)):
        if (name == "choice") != (seed == CHOOSES):
            continue
        split, notes = written(music["validation"], each.order, every, first)
        nats = negative_log_likelihood(model, split, SCORE, WINDOW, stride=WINDOW // 2).nats
        found[name] = {"nats": nats.round(2).tolist(), "notes": notes.tolist(), "ids": int(split.offsets[-1])}
    return found


def run_of(runs: timed.Runs, music: dict[str, Split], name: str, about: str, steps: int, rate: float, seed: int) -> Any:
    """One run, made or known."""
    each = CONTESTANTS[name]
    settings = crc32(repr((each.kind, dict(each.settings), WINDOW, ROWS, SEMITONES, BLOCK)).encode())
    key = f"{name}, {rate:g}, {seed}, {about}, {settings:08x}"
    found = runs.get(key, partial(train, music, each, steps, rate, seed))
    say(f"{key}: {cost(found):.4f} nats a note, {found['steps']} steps", flush=True)
    return found


def cost(found: dict[str, Any]) -> float:
    """Nats a note over all scored pieces."""
    scored = found.get("choice") or found["figure"]
    return float(sum(scored["nats"]) / sum(scored["notes"]))


def tried(known: Callable[[float, int], Any], rate: float) -> float:
    return cost(known(rate, CHOOSES))


def mean_nats(runs: list[dict[str, Any]]) -> NDArray[np.float64]:
    """Of each work, over the random seeds."""
    nats: NDArray[np.float64] = np.mean([run["figure"]["nats"] for run in runs], axis=0)
    return nats


def row_of(runs: list[dict[str, Any]], rate: float, ahead: list[dict[str, Any]] | None) -> dict[str, Any]:
    """A contestant in the table: the mean of its random seeds, with an interval by work; beside those of `AHEAD`,
    where they are known."""
    notes = np.array(runs[0]["figure"]["notes"], dtype=float)
    row: dict[str, Any] = {"rate": rate, "nats a note": interval(mean_nats(runs), notes)}
    if ahead is not None and ahead is not runs:
        row["more than ahead"] = interval(mean_nats(runs) - mean_nats(ahead), notes)
    row["of each seed"] = [cost(run) for run in runs]
    row["ids a note"] = runs[0]["figure"]["ids"] / notes.sum()
    return (
        row | {name: runs[0][name] for name in ("parameters", "processor")} | {"steps": [run["steps"] for run in runs]}
    )


def main() -> None:
    parser = options(__doc__, "store", "out", "seconds", out=Path("outputs/score_orders"), seconds=SECONDS)
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=[*CONTESTANTS], help="default: all")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    store, table = Store(args.store, SCORE.name), dict[str, Any]()
    models = {name: partial(built, CONTESTANTS[name]) for name in (AHEAD, "table", "LSTM")}
    costs = Costs(args.out / "costs.json", models, gradients, (WINDOW,))
    ahead: list[dict[str, Any]] | None = None
    music, sha256 = {name: store.split(name) for name in ("train", "validation")}, store.manifest.splits["train"].sha256
    for name in args.contestants:
        runs = timed.Runs(args.out / f"{name.replace(', ', '-').replace(' ', '-')}.json")
        steps = max(round(args.seconds / costs.step_s(name if name in models else AHEAD, "muon", WINDOW)), 1)
        known = partial(run_of, runs, music, name, f"{args.seconds:g} s, {sha256[:8]}", steps)
        rate = timed.bracketed(RATES, partial(tried, known))
        seeds = [known(rate, seed) for seed in SEEDS]
        ahead = seeds if name == AHEAD else ahead
        table[name] = row_of(seeds, rate, ahead)
        say(f"{name}: {table[name]}", flush=True)
    if len(args.contestants) == len(CONTESTANTS):
        timed.write_rows(args.out / "orders.json", table)


if __name__ == "__main__":
    with in_one_line():
        main()
