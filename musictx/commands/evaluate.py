"""musictx evaluate: measure nats per token of a split, beside uniform and unigram baselines."""

from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from omegaconf import MISSING

from musictx.analysis.evaluation import evaluate_split, scoring_objective
from musictx.analysis.likelihood import Evaluation
from musictx.commands import open_and_print
from musictx.config.app import settings
from musictx.config.command import Command
from musictx.config.train import AttentionConfig, DataConfig
from musictx.data.store import Store
from musictx.errors import counted
from musictx.files import check_new, only_new, write_json
from musictx.generate.open_bundle import chosen_weights
from musictx.generate.open_player import check_device
from musictx.model.build import describe_model
from musictx.model.packaged import bundle_path
from musictx.model.settings import WEIGHTS, one_of
from musictx.model.weights import describe_weights, with_weights
from musictx.objectives import NEXT_TOKEN
from musictx.setting import setting
from musictx.terminal import say


@dataclass
class EvaluateConfig:
    """musictx evaluate: measure a model's nats per token, note and second on a split, beside simple baselines."""

    bundle: str = setting(
        MISSING, "piano, chorale, harmoniser, a file that `musictx train` made or a run's folder", path=True
    )
    data: DataConfig = field(default_factory=DataConfig)
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    objective: str | None = setting(
        None,
        "the objective to score: next_token, infill or another; null: the bundle's own, but never infill; "
        "voices is scored with the soprano given",
    )
    split: str = setting("validation", "train, validation or test")
    out: str | None = setting(None, "a JSON file for the figures; null: none", path=True)
    overwrite: bool = setting(False, "replace an existing file")
    device: str = setting("cpu", "cpu or cuda")
    weights: str = setting("float32", "float32, bfloat16 or int8: shows what `generate` loses by fewer bits")


def file_hash(path: str | Path) -> str:
    """The SHA-256 of a file."""
    return sha256(Path(path).read_bytes()).hexdigest()


def evaluate(*words: str, **values: Any) -> Evaluation:
    """`musictx evaluate` from Python: `evaluate("data.path=my_store", bundle="mine")`.

    `words` are settings as the command takes them, `values` the same as Python has them.

    Units:
        nats a token, a note and a second.

    Raises:
        UserError: as the command does, in one line.
    """
    return run(settings("evaluate", *words, **values))


def run(config: EvaluateConfig) -> Evaluation:
    if config.out:
        check_new(config.overwrite, Path(config.out))
    device, weights = check_device(config.device), one_of("weights", config.weights, WEIGHTS)
    opened = open_and_print(config.bundle, device, config.attention.impl, continues=False)
    say(describe_model(opened.model))
    for line in chosen_weights(weights, opened.model)[1]:
        say(line)
    opened = opened._replace(model=with_weights(opened.model, weights))
    name, objective = scoring_objective(config.bundle, opened, config.objective)
    store, data = Store(Path(config.data.path), opened.header.tokenizer), config.data
    bundle, budget = Path(config.bundle), data.score_batch_tokens
    figures = evaluate_split(opened, bundle, store, config.split, data.segment, budget, device, objective, data.stride)
    kind = describe_weights(opened.model)
    how = figures.inputs
    how += "" if name == NEXT_TOKEN else f", objective={name}"
    how += f", given {given}" if (given := getattr(objective, "given", None)) else ""
    is_one = figures.pieces == 1  # which has no interval
    pieces = "1 piece" if is_one else f"{figures.pieces} pieces"
    say(f"{config.split} split of {store.path}: {pieces}, {counted(figures.tokens, 'token')}, {how}, {kind}")
    say("negative log-likelihood, nats per token")
    say(f"  uniform  {figures.uniform:.4f}")
    say(f"  unigram  {figures.unigram:.4f}")
    nll, note, second = figures.per_token, figures.per_note, figures.per_second
    of_tokens = "" if is_one else f"   95% of pieces' resamples: {nll.low:.4f} to {nll.high:.4f}"
    of_notes = "" if is_one else f" ({note.low:.3f} to {note.high:.3f})"
    say(f"  model    {nll.mean:.4f}{of_tokens}   {config.bundle}")
    say(f"           {note.mean:.3f} per note{of_notes}, {second.mean:.3f} per second")
    if config.out:
        facts = asdict(figures) | {
            "weights": weights,
            "weights_are": kind,
            "bundle_sha256": file_hash(bundle_path(config.bundle)),
            **({} if name == NEXT_TOKEN else {"objective": name}),
        }
        write_json(Path(config.out), facts)
        say(f"{config.out}: these figures as JSON")
    return figures


COMMAND = Command(
    "evaluate", only_new(run), EvaluateConfig, {"data": "performances", "attention": "auto"}, main="bundle"
)
