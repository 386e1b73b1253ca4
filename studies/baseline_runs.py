"""One model of `baselines.py`: the music that it gets, its size, its training, and what is read of it."""

import csv
import io
import zipfile
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import timed
import torch
from numpy.typing import NDArray
from shared import within_positions
from torch import Tensor

from musictx.analysis.likelihood import negative_log_likelihood
from musictx.analysis.seed_gain import Place, gains, places
from musictx.data.dataset import CarriedWindows, RandomCrops
from musictx.data.similar import signature
from musictx.data.store import Split, Store
from musictx.errors import UserError
from musictx.model.build import build_model, model_config
from musictx.objectives.next_token import NextToken


class Music(NamedTuple):
    parameters: int
    step_ids: int
    width: dict[str, Any]  # of a Transformer
    windows: dict[str, tuple[int, ...]]  # of each kind
    seconds: float  # of a training
    augment: dict[str, Any]
    seed_s: float
    part_s: float
    every: int  # of so many validation or test pieces one is read
    longest: int  # and so many of its ids


POSITIONS = {"table": "relative", "Fourier": "relative_fourier", "RoPE": "rope", "sines": "sinusoidal"}
POSITIONS |= {"learned": "learned"}
BLOCKS = {"mlp": "swiglu", "qk_norm": True, "value_residual": True, "n_heads": 4}
BOTH, STRETCH = (256, 1024), (0.95, 0.975, 1.0, 1.025, 1.05)
MUSIC = {
    "chorales": Music(
        parameters=1_300_000,
        step_ids=2048,
        width={"d_model": 192, "n_layers": 3},
        windows=dict.fromkeys(POSITIONS, BOTH) | {"LSTM": (128, 256, 512, 1024), "LSTM, attention": BOTH},
        seconds=240.0,
        augment={"transpose": 5},
        seed_s=9.6,
        part_s=2.4,
        every=1,
        longest=16384,
    ),
    "piano": Music(
        parameters=1_500_000,
        step_ids=4096,
        width={"d_model": 192, "n_layers": 3},
        windows=dict.fromkeys(("table", "Fourier", "RoPE", "sines"), (2048,)) | {"LSTM": (256, 1024, 2048)},
        seconds=300.0,
        augment={"transpose": 3, "stretch": STRETCH},
        seed_s=10.0,
        part_s=5.0,
        every=3,
        longest=8192,
    ),
}
HELD_OUT, PARTS, DECAY = 20, 6, 0.1


class Cell(NamedTuple):
    """A kind of model and a training window."""

    music: str
    kind: str
    window: int

    @property
    def recurrent(self) -> bool:
        return self.kind.startswith("LSTM")


@cache
def config_of(cell: Cell, vocab_size: int) -> Any:
    """The config of a model; the width of its cells or of its feed-forward layers comes nearest to the parameters of
    the music."""
    music = MUSIC[cell.music]
    if cell.recurrent:
        attention = {"additive": True, "d_attention": 32, "window": 1024} if "attention" in cell.kind else {}
        name, free, sizes = "recurrent", "d_model", range(64, 1024, 4)
        fixed: dict[str, Any] = {"n_layers": 3, **attention}
    else:
        ends: dict[str, Any] = {
            "learned": {"max_positions": cell.window},
            "table": {"max_distance": min(cell.window, 512)},
        }
        fixed = {**music.width, **BLOCKS, "position": POSITIONS[cell.kind], **ends.get(cell.kind, {})}
        name, free, sizes = "transformer", "d_ff", range(64, 2048, 8)

    def config(size: int) -> Any:
        return model_config(name, {**fixed, free: size}, vocab_size=vocab_size)

    def excess(size: int) -> int:
        with torch.device("meta"):
            return n_parameters(build_model(config(size))) - music.parameters

    first = bisect_left(sizes, 0, key=excess)  # of those with at least so many
    near = sizes[max(first - 1, 0) : first + 1]
    return config(min(near, key=lambda size: abs(excess(size))))


def n_parameters(model: Any) -> int:
    return sum(p.numel() for p in model.parameters())


class Data:
    """The music of a study: all training pieces, those without the ones held out, and what is scored."""

    def __init__(self, music: Music, store: Store, archive: Path | None) -> None:
        self.music, self.tokenizer, self.store = music, store.tokenizer, store
        self.works = works_of(archive) if archive else {}
        self.train = store.split("train")
        out = set(self.alone().tolist())
        self.rest = part(self.train, [i for i in range(len(self.train)) if i not in out])
        self.held_out = part(self.train, sorted(out), music.longest)

    def scored(self, name: str) -> Split:
        """What is scored of a split."""
        split = self.store.split(name)
        return part(split, range(0, len(split), self.music.every), self.music.longest)

    def work(self, name: str) -> str:
        return self.works.get(name.rpartition("/")[2], name)

    def alone(self) -> NDArray[np.int64]:
        """Numbers of training pieces of works that no other piece plays. Where no table has the works: of pieces that
        share little of their sketch with any other."""
        works = np.array([self.work(name) for name in self.train.names])
        if self.works:
            _, first, how_often = np.unique(works, return_index=True, return_counts=True)
            unlike = first[how_often == 1]
        else:
            sketch = np.stack([signature(self.tokenizer.decode(np.asarray(ids))) for ids in self.train])  # (P, hashes)
            alike = (sketch[:, None] == sketch).mean(-1)
            np.fill_diagonal(alike, 0)
            unlike = np.flatnonzero(alike.max(1) < 0.1)
        return np.random.default_rng(0).choice(unlike, min(HELD_OUT, len(unlike)), replace=False)


def works_of(archive: Path) -> dict[str, str]:
    """Composer and title of each file of MAESTRO's archive."""
    with zipfile.ZipFile(archive) as all_files:
        table = next(name for name in all_files.namelist() if name.endswith(".csv"))
        rows = csv.DictReader(io.StringIO(all_files.read(table).decode()))
        return {
            row["midi_filename"].rpartition("/")[2]: f"{row['canonical_composer']}: {row['canonical_title']}"
            for row in rows
        }


def part(split: Split, numbers: Sequence[int], longest: int | None = None) -> Split:
    ids = [np.asarray(split[i])[:longest] for i in numbers]
    names = [split.names[i] for i in numbers]
    return Split(np.concatenate(ids), np.cumsum([0, *map(len, ids)]), names)


def batches(crops: RandomCrops, carried: bool, rows: int) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Windows (B, T + 1), and which rows begin fresh, if they continue."""
    windows = CarriedWindows(crops, rows) if carried else None
    for step in count():
        numbers = range(step * rows, (step + 1) * rows)
        if windows is None:
            yield torch.stack([crops[n] for n in numbers]), None
        else:
            ids, fresh = zip(*(windows[n] for n in numbers), strict=True)
            yield torch.stack(ids), torch.stack(fresh)


def train(cell: Cell, data: Data, split: Split, how: dict[str, Any], share: Iterator[float], device: str) -> Any:
    """A model of the cell; `how` has rate, dropout, carried and random seed."""
    music, tokenizer = data.music, data.tokenizer
    torch.manual_seed(how["seed"])
    config = replace(config_of(cell, tokenizer.vocab.size), dropout=how["dropout"])
    model: Any = build_model(config).to(device)
    crops = RandomCrops(split, tokenizer, cell.window, how["seed"], **music.augment)
    windows = batches(crops, how["carried"], max(music.step_ids // cell.window, 1))
    objective, state = NextToken(tokenizer), None

    def loss(_: int) -> Tensor:
        nonlocal state
        ids, fresh = next(windows)
        example = objective.example(ids.to(device), np.random.default_rng())
        asked = model
        if fresh is not None:
            state = model.init_state(len(ids), cell.window) if state is None else state.detach().reset(fresh.to(device))
            asked = lambda ids: model.carry(ids, state)  # noqa: E731
        with torch.autocast(device, torch.bfloat16):
            nats, n = objective.loss(asked, example)
        return nats / n

    model.steps = timed.learn(model, loss, how["rate"], share, DECAY)
    return model


def scores(model: Any, data: Data, split: Split, window: int | None, device: str) -> dict[str, list[float]] | None:
    """Nats and tokens of each piece; None where the model has too few positions."""
    ask = partial(negative_log_likelihood, model, split, data.tokenizer, window, 16384, device)
    with torch.autocast(device, torch.bfloat16):
        found = within_positions(ask)
    return None if found is None else {"nats": found.nats.tolist(), "tokens": found.tokens_of.tolist()}


AGAINST: dict[str, dict[str, Any]] = {"nothing": {}, "a stranger": {"stranger": True}, "a reset": {"kept": 1}}


def remembered(model: Any, data: Data, found: list[Place], device: str) -> dict[str, Any] | None:
    """Nats that the seed saves in each part of each piece, against three other beginnings; and the parts' tokens."""

    def ask() -> dict[str, Any]:
        each = {name: gains(model, data.tokenizer, found, device=device, **of) for name, of in AGAINST.items()}
        return {name: nats.tolist() for name, (nats, _) in each.items()} | {"tokens": each["nothing"][1].tolist()}

    with torch.autocast(device, torch.bfloat16):
        return within_positions(ask)


def seeds_of(data: Data, split: Split) -> tuple[list[Place], list[str]]:
    """The places of `analysis.seed_gain`, and the works that they are of."""
    music, tokenizer, found, works = data.music, data.tokenizer, [], []
    for i in range(len(split)):
        try:
            pair = [np.asarray(split[i])] * 2  # two, the fewest that it takes
            found.append(places(pair, tokenizer, music.seed_s, PARTS, music.part_s, tokenizer.group)[0])
            works.append(data.work(split.names[i]))
        except UserError:  # too short
            pass
    return found, works
