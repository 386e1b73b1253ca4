"""musictx classify: the probability of each label for a MIDI file, and the notes that decided."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from omegaconf import MISSING

from musictx.analysis.attribution import Answer, attribute, softmax
from musictx.analysis.embedding import Embedder
from musictx.analysis.probe import Probe, load_probe
from musictx.commands import check_way, check_within, open_and_print, print_table
from musictx.config.command import Command
from musictx.errors import ConfigError, UserError
from musictx.files import check_new, only_new, printable, write_json
from musictx.generate.open_player import check_device
from musictx.generate.seeds import fit_grid
from musictx.model.packaged import BUNDLES, bundle_path, seed_path
from musictx.model.tensors import tensors_hash
from musictx.music.harmony import pitch_name
from musictx.music.read import read_bytes, read_tracks
from musictx.music.score import Score
from musictx.setting import setting
from musictx.terminal import say
from musictx.viz.piano_roll import plot_attribution

PALE = 0.05  # a change of the log-odds that has a strong colour only where none is larger


@dataclass
class ClassifyConfig:
    """musictx classify: the probability of each label for a MIDI file, and the notes that decided."""

    midi: str = setting(MISSING, "a MIDI file; or elise, gymnopedie, chorale", path=True)
    labels: str = setting(MISSING, "the file of labels that `musictx probe` made", path=True)
    out: str = setting("outputs/classified", "a folder for the picture, and the figures as JSON", folder=True)
    bundle: str | None = setting(
        None, "the model that `musictx probe` heard the labels with; null: that one, if it is in musictx", path=True
    )
    passages: int = setting(20, "at most so many passages are heard, spread over the music")
    drums: bool = setting(False, "include the file's drums")
    overwrite: bool = setting(False, "replace existing files")
    device: str = setting("cpu", "cpu or cuda")


def classify(config: ClassifyConfig) -> None:
    device, source, out = check_device(config.device), seed_path(config.midi), Path(config.out)
    path, picture = (out / f"{source.stem}{end}" for end in (".json", ".png"))
    check_new(config.overwrite, path, picture)
    check_way("out", config.out, out)
    check_within(config, "passages", 1)
    data = read_bytes(source)
    probe, embedder = open_labels(config, device)
    tokenizer = embedder.tokenizer
    score = fit_grid(
        read_tracks(data, source, one_tempo=tokenizer.metrical).merge(config.drums), tokenizer, source, say
    )
    facts = {"midi": config.midi, "labels": config.labels, "held_out": probe.about.held_out}
    say(f"{config.labels}: {facts['held_out']}")
    length_s = probe.about.passage_seconds
    passages = embedder.passages(score, length_s, config.passages)
    if not passages:
        raise UserError(f"{config.midi}: no passage of four notes that the model can read", "give more music")
    if score.duration_s < length_s:
        what = f"shorter than the passages of {length_s:g} s that were learned"
        say(f"{source}: {score.duration_s:.1f} s, {what}")
    answer = attribute(score, passages, probe, embedder)
    show(answer, score)
    out.mkdir(parents=True, exist_ok=True)
    title = f"{source.stem}: {answer.label} {softmax(answer.mean).max():.2f}"
    what = f"log-odds of {answer.label} that it adds"
    plot_attribution(printable(title), score, answer.fall, answer.top_notes.tolist(), picture, printable(what), PALE)
    write_json(path, facts | answer.facts(score))
    say(f"{picture}: the notes that decided, in colour\n{path}: all figures")


def open_labels(config: ClassifyConfig, device: str) -> tuple[Probe, Embedder]:
    """The labels, and the model that hears them. Raises BundleError, ConfigError."""
    path = Path(config.labels)
    probe = load_probe(path)
    bundle = config.bundle or probe.about.bundle
    if not config.bundle and bundle not in BUNDLES:  # a stranger's file names no path to open
        why = f"{config.labels} was made with {bundle}, which is not inside musictx"
        raise ConfigError("bundle", got=None, why=why, allowed="that model")
    model, tokenizer, _ = open_and_print(bundle, device, continues=False)
    return probe, probe.embedder(model, tokenizer, tensors_hash(bundle_path(bundle)), path, bundle)


def show(answer: Answer, score: Score) -> None:
    """Prints the labels, the likeliest first, and the notes that decided most."""
    probability, first = softmax(answer.mean), answer.logits.argmax(1)
    rows = [
        (f"{probability[k]:.3f}", answer.labels[k], f"{(first == k).sum()} of {len(first)} passages")
        for k in np.argsort(-probability, kind="stable")
    ]
    print_table(["probability", "label", "likeliest in"], rows)
    rows = [
        (f"{score.onset_s[n]:.2f}", pitch_name(int(score.pitch[n])), f"{answer.fall[n]:+.3f}") for n in answer.top_notes
    ]
    print_table(["second", "note", f"log-odds of {answer.label} that it adds"], rows)


COMMAND = Command("classify", only_new(classify), ClassifyConfig, main="midi")
