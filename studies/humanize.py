"""Makes the weights of `humanize`: loudness and articulation of written notes, learned from POP909 alone.

    python studies/humanize.py --pop pop909.zip --out outputs/humanize

A person copies `humanize.safetensors` from there to musictx/generate/. Songs are split by a fixed random seed. Features
and settings were chosen with another split, whose test songs were read four times; this one was drawn afterwards. Each
written note is a played one of its pitch and track, the nearest. First the script measures how far onsets lie from the
grid of the score. Then networks of several random seeds learn, and mean absolute errors of held-out songs stand beside
those of two baselines, a constant, and the mean of each part and place in the bar. The first seed's weights are kept,
whatever they reach. Within a song: errors to which each part's median error was added, as one turns up a volume.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file
from shared import options
from torch import nn

from musictx.analysis.bootstrap import interval
from musictx.config.mistakes import in_one_line
from musictx.data.corpora.pop909 import CORPUS
from musictx.data.corpora.pop909_scores import Played, read_played
from musictx.data.source import open_source
from musictx.errors import MidiError, StoreError
from musictx.files import write_json
from musictx.generate.humanize import LONGEST, SHORTEST, Network
from musictx.generate.loudness import PLACES, ROLES, features_of
from musictx.music.notation.notation import Notation
from musictx.music.read import MOST_BYTES
from musictx.system import processor
from musictx.terminal import say
from musictx.tokenizers.score.slots import LEFT, OTHER, RIGHT, TUNE
from musictx.waiting import estimated

Floats = NDArray[np.float32]

TRACKS = {"Melody": (TUNE,), "Bridge": (OTHER,), "Piano": (RIGHT, LEFT)}  # the slots of their staves
SPLIT, TEST, HELD_OUT = 1, 0.2, 0.1  # the seed of the split, and shares of the songs
SEEDS, WIDTH, ROUNDS, BATCH = (0, 1, 2), 32, 20, 4096
RATE, DECAY = 6e-3, 1e-2
TARGETS = ("velocity", "held")
EXACT = 0.1  # of a unit


class Song(NamedTuple):
    """The features (N, F) of its notes, their targets (N, 2), and how far in units onsets lie from the grid (N,)."""

    name: str
    x: Floats
    y: Floats
    away: Floats


def songs_of(pop: Path, annotations: Path) -> tuple[list[Song], list[str]]:
    """All songs that have scores, and the names of the features."""
    songs, names = list[Song](), list[str]()
    with open_source(pop, (".mid",)) as files, open_source(annotations, (".txt",)) as texts:
        by_name = {"/".join(item.name.split("/")[-2:]): item for item in texts}
        files = [item for item in files if item.name.split("/")[-2] == Path(item.name).stem]
        for item in estimated(files, f"{len(files)} songs"):
            number = Path(item.name).stem
            try:
                beats, keys = (
                    by_name[f"{number}/{name}.txt"].load(MOST_BYTES).decode() for name in ("beat_midi", "key_audio")
                )
            except KeyError:
                raise StoreError(f"{annotations} has no beats of {item.name}", "give --annotations") from None
            try:
                notation, _, played = read_played(item.load(MOST_BYTES), beats, keys, number)
            except MidiError:
                continue
            slots = {name: list(each) for name, each in TRACKS.items()}
            found = features_of(notation, [slots[part.name].pop(0) for part in notation.parts])
            names = list(found)
            x = np.stack([found[name] for name in names], axis=1).astype(np.float32)
            songs.append(Song(number, x, *targets(notation, played)))
    return songs, names


def targets(notation: Notation, played: Played) -> tuple[Floats, Floats]:
    """How the written notes were played (N, 2), and how far from the grid (N,)."""
    rows = []
    for part in notation.parts:
        onset, end, pitch, velocity = played[part.name.upper()]
        for note in part.notes:
            same = np.flatnonzero(pitch == note.pitch)
            n = same[np.argmin(abs(onset[same] - note.onset))]
            rows.append((velocity[n], (end[n] - onset[n]) / note.length, abs(onset[n] - note.onset)))
    table = np.array(rows, np.float32)
    table[:, 1] = table[:, 1].clip(SHORTEST, LONGEST)
    return table[:, :2], table[:, 2]


def learn(x: Floats, y: Floats, names: list[str], seed: int) -> Network:
    """A network of two hidden layers, by squared errors of standardised targets."""
    torch.manual_seed(seed)
    mean, scale = x.mean(0), x.std(0) + 1e-6
    center, spread = y.mean(0), y.std(0) + 1e-6
    net = nn.Sequential(
        *(nn.Linear(x.shape[1], WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, y.shape[1]))
    )
    inputs = torch.from_numpy(Network(names, mean, scale, []).standardised(x))
    wanted = torch.from_numpy((y - center) / spread)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    steps = max(len(x) // BATCH, 1)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=ROUNDS * steps)
    for _ in range(ROUNDS):
        order = torch.randperm(len(x))
        for n in range(steps):
            mine = order[n * BATCH : (n + 1) * BATCH]
            loss = (net(inputs[mine]) - wanted[mine]).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rate.step()
    layers = [(w.weight.detach().numpy().T, w.bias.detach().numpy()) for w in net if isinstance(w, nn.Linear)]
    weight, bias = layers[-1]
    layers[-1] = weight * spread, bias * spread + center
    return Network(names, mean, scale, layers)


def errors(song: Song, told: NDArray[Any], roles: NDArray[Any]) -> NDArray[Any]:
    """Mean absolute errors (2, targets) of a song's notes, as they are and within the song."""
    away = told - song.y
    within = away.copy()
    for role in np.unique(roles):
        within[roles == role] -= np.median(within[roles == role], axis=0)
    return np.array([abs(away).mean(0), abs(within).mean(0)])


def main() -> None:
    parser = options(__doc__, "pop", "annotations", "out", out=Path("outputs/humanize"))
    args = parser.parse_args()
    songs, names = songs_of(args.pop, args.annotations or args.pop)
    order = np.random.default_rng(SPLIT).permutation(len(songs))
    test, chosen = (max(int(share * len(songs)), 1) for share in (TEST, HELD_OUT))
    sides = {"test": order[:test], "validation": order[test : test + chosen], "train": order[test + chosen :]}
    train = [songs[n] for n in sides["train"]]
    x, y = np.concatenate([song.x for song in train]), np.concatenate([song.y for song in train])
    away = np.concatenate([song.away for song in songs])

    def kinds(x: Floats) -> tuple[NDArray[Any], NDArray[Any]]:
        role, place = (x[:, [names.index(name) for name in each]].argmax(1) for each in (ROLES, PLACES))
        return role, role * len(PLACES) + place

    table = np.tile(np.median(y, axis=0), (len(ROLES) * len(PLACES), 1))
    cell = kinds(x)[1]
    for n in np.unique(cell):
        table[n] = y[cell == n].mean(0)
    networks = [learn(x, y, names, seed) for seed in SEEDS]
    ways: dict[str, Callable[..., NDArray[Any]]] = {
        "constant": lambda x: np.tile(np.median(y, axis=0), (len(x), 1)),
        "part and place": lambda x: table[kinds(x)[1]],
    }
    ways |= {f"network, seed {seed}": net.__call__ for seed, net in zip(SEEDS, networks, strict=True)}
    found: dict[str, Any] = {
        "processor": str(processor()),
        "songs": {side: len(mine) for side, mine in sides.items()},
        "notes": len(away),
        "parameters": sum(weight.size + bias.size for weight, bias in networks[0].layers),
        "seeds": len(SEEDS),
        "exact_onsets": float((away < EXACT).mean()),
        "median_away_units": float(np.median(away)),
        "rows": [],
    }
    for side in ("validation", "test"):
        mine = [songs[n] for n in sides[side]]
        for name, way in ways.items():
            each = np.array([errors(song, way(song.x), kinds(song.x)[0]) for song in mine])  # (songs, 2, targets)
            row: dict[str, Any] = {"split": side, "model": name}
            for n, target in enumerate(TARGETS):
                row[target] = list(interval(each[:, 0, n]))
                row[f"{target} within a song"] = list(interval(each[:, 1, n]))
            if name == "part and place":
                plain = each
            elif name != "constant":
                row["velocity saved"] = list(interval((plain - each)[:, 0, 0]))
            found["rows"].append(row)
            say(f"{side}, {name}: " + ", ".join(f"{target} {row[target][0]:.3f}" for target in TARGETS))
    roles = kinds(x)[0]
    found["mean_velocity"] = {ROLES[n]: float(y[roles == n, 0].mean()) for n in np.unique(roles)}
    save(networks[0], args.out / "humanize.safetensors")
    write_json(args.out / "humanize.json", found)


def save(net: Network, path: Path) -> None:
    tensors = {"mean": net.mean, "scale": net.scale}
    for n, (weight, bias) in enumerate(net.layers):
        tensors |= {f"weight{n}": weight, f"bias{n}": bias}
    about = {"features": json.dumps(net.features), "corpus": CORPUS.name, "licence": CORPUS.licence}
    about["citation"] = CORPUS.citation
    save_file({name: np.ascontiguousarray(each, np.float32) for name, each in tensors.items()}, path, about)


if __name__ == "__main__":
    with in_one_line():
        main()
