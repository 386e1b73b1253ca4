"""musictx classify: the probability of each label for a MIDI file, and the notes that decided."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import MISSING
from rich.console import Console
from rich.table import Table

from musictx.analysis.deciding import LEAST, deciding_notes, log_odds
from musictx.analysis.probe import Probe, load_probe
from musictx.commands import check_new
from musictx.config.command import Command
from musictx.errors import ConfigError, UserError
from musictx.files import only_new, printable, replacing
from musictx.generate.open_bundle import check_device, open_and_print
from musictx.generate.seeds import fit_grid
from musictx.model.bundle import tensors_hash
from musictx.model.packaged import BUNDLES, bundle_path, seed_path
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.setting import setting
from musictx.viz.raised import plot_raised

NAMED = 10  # notes that decided most
KEYS = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
PALE = 0.05  # a change of the log-odds that has a strong colour only where none is larger


@dataclass
class ClassifyConfig:
    """musictx classify: the probability of each label for a MIDI file, and the notes that decided."""

    midi: str = setting(MISSING, "a MIDI file; or elise, gymnopedie, chorale")
    labels: str = setting(MISSING, "the file of labels that `musictx probe` made")
    out: str = setting("outputs/classified", "a folder for the picture and the figures as JSON")
    bundle: str | None = setting(None, "the model that the labels were made with; null: that one, if it is in musictx")
    passages: int = setting(20, "at most so many passages are heard, spread over the music")
    readings: int = setting(300, "at most so many readings of a passage without some of its notes")
    drums: bool = setting(False, "include the file's drums")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")


def classify(config: ClassifyConfig) -> None:
    device, source, out = check_device(config.device), seed_path(config.midi), Path(config.out)
    path, picture = out / f"{source.stem}.json", out / f"{source.stem}.png"
    check_new(config.overwrite, path, picture)
    if any(each.exists() and not each.is_dir() for each in (out, *out.parents)):
        raise ConfigError("out", got=config.out, why="a file is in its way", allowed="another place")
    data = read_bytes(source)
    probe = load_probe(Path(config.labels))
    length_s, labels = probe.about.passage_seconds, probe.about.labels
    if config.passages < 1:
        raise ConfigError("passages", got=config.passages, allowed="1 or more")
    bundle = config.bundle or named_bundle(probe, config.labels)
    model, tokenizer, _ = open_and_print(bundle, device, continues=False)
    embedder = probe.embedder(model, tokenizer, tensors_hash(bundle_path(bundle)), Path(config.labels), bundle)
    tracks = read_tracks(data, source, one_tempo=tokenizer.metrical)
    score = fit_grid(tracks.merge(config.drums), tokenizer, source)
    heard = embedder.passages(score, length_s, config.passages)
    if not heard:
        raise UserError(f"{source}: no passage of four notes that the model can read", "give a file with more music")
    if config.readings < (least := LEAST * len(heard)):
        why = f"there are {len(heard)} passages"
        raise ConfigError(
            "readings", got=config.readings, why=why, allowed=f"{least} or more", hint="or fewer passages="
        )
    logits = probe.layer.logits(embedder.vectors([passage.score for passage in heard]))  # (P, K)
    label = int(logits.mean(0).argmax())
    fall = deciding_notes(score, heard, length_s, embedder.vectors, probe.layer, label, config.readings)
    decided = np.argsort(np.where(np.isnan(fall), np.inf, -fall), kind="stable")[:NAMED]
    print(f"{config.labels}: {probe.about.held_out}")
    if score.duration_s < length_s:
        print(f"{source}: {score.duration_s:.1f} s, shorter than the passages of {length_s:g} s that were learned")
    show(labels, logits, score, fall, decided)
    out.mkdir(parents=True, exist_ok=True)
    title = f"{source.stem}: {labels[label]} {softmax(logits.mean(0))[label]:.2f}"
    what = f"log-odds of {labels[label]} that it adds"
    plot_raised(printable(title), score, fall, decided.tolist(), picture, printable(what), PALE)
    figures = as_json(config, probe, logits, [passage.from_s for passage in heard], score, fall)
    with replacing(path) as partial:
        partial.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    print(f"{picture}: the notes that decided, in colour\n{path}: all figures")


def named_bundle(probe: Probe, labels: str) -> str:
    """The model inside musictx that the labels were made with. Raises ConfigError where it is another: a stranger's
    file names no path to open."""
    if probe.about.bundle not in BUNDLES:
        why = f"{labels} was made with {probe.about.bundle}, which is not inside musictx"
        raise ConfigError("bundle", got=None, why=why, allowed="that model")
    return probe.about.bundle


def softmax(logits: NDArray[Any]) -> NDArray[np.float64]:
    """Probabilities (..., K) of logits (..., K)."""
    share: NDArray[np.float64] = np.exp(logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True))
    return share


def show(labels: list[str], logits: NDArray[Any], score: Score, fall: NDArray[Any], decided: NDArray[Any]) -> None:
    """Prints the labels, the likeliest first, and the notes that decided most."""
    mean, console = logits.mean(0), Console(highlight=False, markup=False, width=120)
    probability, first = softmax(mean), logits.argmax(1)
    table = Table("probability", "label", "likeliest in", box=None)
    for k in np.argsort(-mean, kind="stable"):
        of = f"{int((first == k).sum())} of {len(logits)} passages"
        table.add_row(f"{probability[k]:.3f}", printable(labels[k]), of)
    console.print(table)
    label = int(mean.argmax())
    table = Table("second", "note", f"log-odds of {printable(labels[label])} that it adds", box=None)
    for n in decided:
        table.add_row(f"{score.onset_s[n]:.2f}", note_name(int(score.pitch[n])), f"{fall[n]:+.3f}")
    console.print(table)


def note_name(pitch: int) -> str:
    """C4 for 60."""
    return f"{KEYS[pitch % 12]}{pitch // 12 - 1}"


def as_json(
    config: ClassifyConfig, probe: Probe, logits: NDArray[Any], from_s: list[float], score: Score, fall: NDArray[Any]
) -> dict[str, Any]:
    """All figures; the notes that decided most come first."""
    labels, mean = probe.about.labels, logits.mean(0)
    label = int(mean.argmax())

    def named(row: NDArray[Any]) -> dict[str, float]:
        return dict(zip(labels, softmax(row).round(6).tolist(), strict=True))

    heard = np.flatnonzero(~np.isnan(fall))
    ranked = heard[np.argsort(-fall[heard], kind="stable")]
    return {
        "midi": config.midi,
        "labels": config.labels,
        "held_out": probe.about.held_out,
        "label": labels[label],
        "probability": named(mean),
        "log_odds": float(log_odds(mean, label)),
        "passages": [{"from_s": s, "probability": named(row)} for s, row in zip(from_s, logits, strict=True)],
        "notes": [
            {
                "onset_s": float(score.onset_s[n]),
                "pitch": int(score.pitch[n]),
                "note": note_name(int(score.pitch[n])),
                "log_odds": float(fall[n]),
            }
            for n in ranked
        ],
    }


COMMAND = Command("classify", only_new(classify), ClassifyConfig)
