"""Whether the near-duplicate search finds replayed pieces and no others: MAESTRO with jitter, at other speeds, louder.

    git worktree add ../before 82cf6b6
    python studies/similar.py --archive maestro-v3.0.0-midi.zip --before ../before

Twenty pieces, each unchanged and replayed with jitter: every onset moves by a normal random number of so many
milliseconds, 3 to 5 % faster or slower, another loudness. The script prepares them as a person's own folder with a
seeded split, and counts the pieces whose performances are in one group, and in one split. Then all of MAESTRO: which
pairs share a group although the table gives them another composer and another title. With `--before` another checkout
prepares the twenty too, and preparing MAESTRO is timed with both in turn. The twenty exclude the pieces on which the
settings of `musictx/data/similar.py` were chosen.
"""

import argparse
import csv
import io
import json
import os
import subprocess
import sys
import zipfile
from itertools import combinations
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np
from maestro import ROOT

from musictx.config.prepare import SelectConfig
from musictx.data.recipe import choose
from musictx.music.read import read_tracks
from musictx.music.score import Score
from musictx.music.write import write_midi

PIECES = 20
TOGETHER = [[8, 20], [8], [20], [40]]  # ms of jitter of the performances beside each piece
DEVELOPMENT = [(1, 40), (1, 60), (6, 400)]  # random seed, pieces: the settings were chosen on these
TIMED = """
import sys
from pathlib import Path
from time import perf_counter
from musictx.config.prepare import PrepareMaestroConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.maestro import prepare_maestro
tokenizer = TokenizerConfig("performance")
start = perf_counter()
prepare_maestro(PrepareMaestroConfig(path=sys.argv[1], out=sys.argv[2], overwrite=True, tokenizer=tokenizer))
print(perf_counter() - start)
"""


def fresh(n: int, random_seed: int) -> list[int]:
    """Twenty of n pieces, without those of the development."""
    seen = [np.random.default_rng(s).choice(n, count, replace=False) for s, count in DEVELOPMENT]
    order = np.random.default_rng(random_seed).permutation(n)
    return [int(i) for i in order[~np.isin(order, np.concatenate(seen))][:PIECES]]


def play_again(score: Score, jitter_s: float, rng: np.random.Generator) -> Score:
    onset = np.maximum(score.onset_s + rng.normal(0, jitter_s, len(score)), 0)
    offset = np.maximum(score.offset_s, onset + 0.02)
    velocity = np.clip(score.velocity.astype(int) + rng.integers(-20, 21), 1, 127)
    speed = 1 + rng.choice([-1, 1]) * rng.uniform(0.03, 0.05)
    return Score(onset, offset, score.pitch, velocity, score.quarter_s).stretch(float(speed))


def write_folder(
    archive: zipfile.ZipFile, names: list[str], jitters_ms: list[int], random_seed: int, folder: Path
) -> None:
    """Writes every piece unchanged and once for each jitter, named `piece performance`."""
    rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for k, name in enumerate(names):
        data = archive.read(name)
        (folder / f"{k:02d} 0.mid").write_bytes(data)
        score = choose(read_tracks(data, name, one_tempo=False), SelectConfig())
        for ms in jitters_ms:
            rng = np.random.default_rng([random_seed, k, ms])
            write_midi(play_again(score, ms / 1000, rng), folder / f"{k:02d} {ms}.mid")


def prepare(checkout: Path, script: str, *words: str) -> None:
    command = [sys.executable, str(checkout / "data_prep" / script), *words, "overwrite=true"]
    env = os.environ | {"PYTHONPATH": str(checkout)}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env)


def known_again(names: list[str], performances: int, random_seed: int, out: Path, checkout: Path) -> dict[str, Any]:
    """How many pieces have all their performances in one group, and in one split; the groups of several pieces."""
    prepare(checkout, "folder.py", f"path={out / 'midi'}", f"out={out / 'store'}", f"random_seed={random_seed}")
    manifest = json.loads((out / "store" / "manifest.json").read_text(encoding="utf-8"))
    sides = [{name[:2] for name in split["pieces"]} for split in manifest["splits"].values()]
    groups = [[name[:2] for name in group] for group in manifest["extra"]["near_duplicates"]]
    every = [f"{k:02d}" for k in range(len(names))]
    return {
        "in_one_group": sum(any(group.count(k) == performances for group in groups) for k in every),
        "on_one_side": sum(sum(k in side for side in sides) == 1 for k in every),
        "groups_of_several": [sorted({names[int(k)] for k in group}) for group in groups if len(set(group)) > 1],
    }


def false_edges(archive: Path, table: dict[str, dict[str, str]], out: Path) -> dict[str, Any]:
    """The groups in all of MAESTRO, and the pairs in them that share neither composer nor title."""
    prepare(ROOT, "maestro.py", f"path={archive}", f"out={out / 'maestro'}")
    extra = json.loads((out / "maestro" / "manifest.json").read_text(encoding="utf-8"))["extra"]
    groups = extra["near_duplicates"]
    pairs = [(table[a], table[b]) for group in groups for a, b in combinations(group, 2)]
    shared = [sum(a[key] == b[key] for key in ("canonical_composer", "canonical_title")) for a, b in pairs]
    named = [[f"{row['canonical_composer']}: {row['canonical_title']}" for row in pair] for pair in pairs]
    return {
        "groups": len(groups),
        "pieces": sum(map(len, groups)),
        "largest": max(map(len, groups), default=0),
        "across_official_splits": extra["near_duplicates_across_splits"],
        "pairs": len(pairs),
        "pairs_of_one_title_and_composer": shared.count(2),
        "pairs_of_one_title_or_composer": shared.count(1),
        "pairs_of_neither": [names for names, n in zip(named, shared, strict=True) if not n],
    }


def seconds(archive: Path, checkouts: dict[str, Path], repeats: int, out: Path) -> dict[str, list[float]]:
    """Seconds of preparing MAESTRO with each checkout, in turn."""
    found: dict[str, list[float]] = {name: [] for name in checkouts}
    for _ in range(repeats):
        for name, checkout in checkouts.items():
            words = [sys.executable, "-P", "-c", TIMED, str(archive.resolve()), str(out / f"timed-{name}")]
            env = os.environ | {"PYTHONPATH": str(checkout)}
            done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, env=env, cwd=checkout)
            found[name].append(round(float(done.stdout.split()[-1]), 3))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--archive", type=Path, required=True)
    parser.add_argument("--before", type=Path, help="another checkout, timed in turn")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--random-seeds", type=int, nargs="+", default=[101, 102, 103], help="one for every twenty pieces"
    )
    parser.add_argument("--out", type=Path, default=Path("outputs/similar"))
    parser.add_argument("--json", type=Path, default=Path("studies/results/similar.json"))
    args = parser.parse_args()
    checkouts = {"now": ROOT} | ({"before": args.before.resolve()} if args.before else {})
    with zipfile.ZipFile(args.archive) as archive:
        member = next(name for name in archive.namelist() if name.endswith(".csv"))
        rows = list(csv.DictReader(io.StringIO(archive.read(member).decode())))
        root = member.rpartition("/")[0]
        table = {f"{root}/{row['midi_filename']}".lstrip("/"): row for row in rows}
        played: list[dict[str, Any]] = []
        for seed in args.random_seeds:
            names = [sorted(table)[i] for i in fresh(len(table), seed)]
            for jitters_ms in TOGETHER:
                write_folder(archive, names, jitters_ms, seed, args.out / "midi")
                row: dict[str, Any] = {"seed": seed, "jitter_ms": jitters_ms}
                for name, checkout in checkouts.items():
                    row[name] = known_again(names, 1 + len(jitters_ms), seed, args.out, checkout)
                played.append(row)
                print(row, flush=True)
    result: dict[str, Any] = {"pieces": PIECES, "played_again": played}
    result["maestro"] = false_edges(args.archive, table, args.out)
    if args.before:
        result["seconds"] = seconds(args.archive, checkouts, args.repeats, args.out.resolve())
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(json.dumps({key: result[key] for key in result if key != "played_again"}, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
