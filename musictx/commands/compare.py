"""musictx compare: measure several models on one store: a report with a table and pictures."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from omegaconf import MISSING

from musictx.analysis.bootstrap import Interval, interval
from musictx.analysis.continuations import Beginnings, beginnings, continue_beginnings
from musictx.analysis.distance import compare_all
from musictx.analysis.embedding import Embedder, Vectors
from musictx.analysis.frechet import compare_passages
from musictx.analysis.motif import held_in, retention
from musictx.analysis.repeats import CorpusIndex, repeated_share
from musictx.analysis.report import FILES, JSON, Knowledge, Memory, ModelReport, splice, write_report
from musictx.analysis.seed_gain import Place, places, seed_gain
from musictx.analysis.statistics import features
from musictx.commands import check_new
from musictx.commands.evaluate import measure
from musictx.config.command import Command
from musictx.config.train import AttentionConfig, DataConfig
from musictx.data.store import Split
from musictx.errors import ConfigError, UserError
from musictx.files import only_new, write_json
from musictx.generate.open_bundle import COMPOSER, Opened, common_store, find_bundles, name_bundles, open_bundle
from musictx.generate.open_player import check_device
from musictx.generate.requests import Continue, Sampling
from musictx.model.header import read_header
from musictx.model.packaged import CHORALE, PIANO, bundle_path, is_packaged
from musictx.model.torch_steps import TorchPlayer
from musictx.model.weights import for_steps
from musictx.music.score import Score
from musictx.setting import setting
from musictx.terminal import say
from musictx.tokenizers import Tokenizer
from musictx.waiting import estimated

PASSAGE_S = 10.0  # of what is heard for the Fréchet distance
NO_EAR = "this musictx was built without the model that hears"


@dataclass
class CompareConfig:
    """musictx compare: compare several models on one store, in a report with a table and pictures."""

    runs: list[str] = setting(
        MISSING, "run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too", path=True
    )
    names: list[str] | None = setting(None, "names for the table; null: each run's own")
    store: str = setting(MISSING, "a store of the tokens that all of them were trained on", path=True)
    out: str = setting("outputs/comparison", "a folder for report.md, report.json and pictures", path=True)
    split: str = setting("validation", "train, validation or test")
    segment: int | None = setting(None, "ids in a segment for scoring; null: whole pieces")
    stride: int | None = setting(
        None,
        "with segment: windows move on by so many ids, recurrent models carry their state through whole pieces; "
        "null: segments know nothing of what came before",
    )
    pieces: int = setting(64, "held-out pieces to continue")
    seed_seconds: float = setting(10.0, "seconds of each piece to continue")
    length_seconds: float = setting(30.0, "length of each continuation")
    span_seconds: float = setting(5.0, "span in which motif retention and seed gain are measured")
    copying: bool = setting(True, "search the whole training set for each continuation")
    random_seed: int = setting(0, "random seed")
    device: str = setting("cpu", "cpu or cuda")
    overwrite: bool = setting(False, "replace an existing report")
    sampler: Sampling = field(default_factory=Sampling)
    attention: AttentionConfig = field(default_factory=AttentionConfig)


def compare(config: CompareConfig) -> None:
    device = check_device(config.device)
    if not config.span_seconds > 0:
        raise ConfigError("span_seconds", got=config.span_seconds, allowed="more than 0")
    bundles = find_bundles(config.runs)
    names = name_bundles(bundles, config.names)
    out = Path(config.out)
    check_new(config.overwrite, *(out / name for name in FILES))
    store = common_store(Path(config.store), bundles)  # reports mistakes before the first model is measured
    split, tokenizer = store.split(config.split), store.tokenizer
    ear = listener(tokenizer, device)
    held_out = beginnings(split, tokenizer, config.pieces, config.seed_seconds, config.length_seconds)
    index = CorpusIndex([tokenizer.decode(ids) for ids in store.split("train")]) if config.copying else None
    metrical = tokenizer.metrical
    real = features(held_out.true, metrical)
    cut = _places(bundles, split, tokenizer, config)
    request = Continue(config.sampler, random_seed=config.random_seed)

    true_heard = heard(ear, held_out.true)
    all_drawn = {COMPOSER: held_out.true}
    rows = [ModelReport(COMPOSER, memory(held_out.true, held_out, index, config, metrical))]
    for name, bundle in zip(names, bundles, strict=True):
        opened = open_bundle(bundle, device, config.attention.impl)
        say(f"{name}: {opened.header.origin}")
        budget = DataConfig.score_batch_tokens
        nll = measure(opened, bundle, store, config.split, config.segment, budget, device, stride=config.stride)
        parameters = sum(p.numel() for p in opened.model.parameters())
        knows = _knowledge(opened, cut, config, device)
        player, own = TorchPlayer(for_steps(opened.model), device), opened.header.sampling
        drawn = continue_beginnings(player, opened.tokenizer, held_out, request, own=own)
        all_drawn[name] = drawn.scores
        row = ModelReport(
            name=name,
            nll=nll,
            parameters=parameters,
            generate_tokens_per_s=drawn.tokens_per_s,
            distances=compare_all(real, features(drawn.scores, metrical)),
            memory=memory(drawn.scores, held_out, index, config, metrical),
            knows=knows,
            frechet=compare_passages(true_heard, heard(ear, drawn.scores)) if ear else NO_EAR,
        )
        rows.append(row)
        say(f"{name}: {nll.per_token.mean:.4f} nats per token")
    out.mkdir(parents=True, exist_ok=True)
    write_report(out, rows, held_out, config, store, all_drawn)
    write_json(out / JSON, [row.plain() for row in rows])
    say(f"{out}/report.md: the table and what it means, with pictures and report.json beside it")


def listener(tokenizer: Tokenizer, device: str) -> Embedder | None:
    """The model that hears all music, for the Fréchet distance; None if the package was built without it."""
    name = CHORALE if tokenizer.voices else PIANO
    if not is_packaged(name):
        return None
    opened = open_bundle(bundle_path(name), device, continues=False)
    return Embedder(opened.model, opened.tokenizer)


def heard(ear: Embedder | None, scores: list[Score]) -> list[Vectors]:
    """What it hears in the passages of each piece, (N, C); pieces without any are left out."""
    if ear is None:
        return []
    parts = [part for score in scores if (part := ear.passages(score, PASSAGE_S))]
    vectors = ear.vectors([passage.score for part in parts for passage in part])
    return np.split(vectors, np.cumsum([len(part) for part in parts])[:-1]) if parts else []


def _places(bundles: list[Path], split: Split, tokenizer: Tokenizer, config: CompareConfig) -> list[Place] | str:
    """The places at which the seed gain of every model is measured, or why it cannot be."""
    part_s = min(config.span_seconds, config.length_seconds)
    period = max(tokenizer.group, *(read_header(bundle).model.get("cycle", 1) for bundle in bundles))
    try:
        return places(split, tokenizer, config.seed_seconds, int(config.length_seconds / part_s + 1e-9), part_s, period)
    except UserError as error:
        return f"seed gain could not be measured: {error}"


def _knowledge(opened: Opened, cut: list[Place] | str, config: CompareConfig, device: str) -> Knowledge:
    if isinstance(cut, str):
        return Knowledge(unmeasured=cut)
    part_s = min(config.span_seconds, config.length_seconds)
    try:
        gain = seed_gain(opened.model, opened.tokenizer, cut, part_s, device=device)
    except ConfigError as error:  # a model of learned positions ends with its table
        return Knowledge(unmeasured=f"seed gain could not be measured: {error}")
    return Knowledge(gain, opened.model.window)


def memory(
    scores: list[Score], held_out: Beginnings, index: CorpusIndex | None, config: CompareConfig, metrical: bool
) -> Memory:
    """What continuations keep of their seeds and, if its index is given, of the training set."""
    length_s = held_out.length_s
    arguments = held_out.seeds, scores, held_out.true, held_in(metrical)
    looked = estimated(scores, "looking for copies")
    copied = interval([index.longest_copy(score).notes for score in looked]) if index is not None else None
    pairs = zip(held_out.seeds, scores, strict=True)
    from_seed = interval([CorpusIndex([a]).longest_copy(b).notes if len(a) > 1 else 0 for a, b in pairs])
    repeated = _repeated(scores, held_out) if metrical else None
    try:
        whole = retention(*arguments, span_s=length_s, horizon_s=length_s)
        curve = retention(*arguments, span_s=min(config.span_seconds, length_s), horizon_s=length_s)
    except UserError as error:  # too few pieces, or too short ones: all else can still be reported
        return Memory(None, None, copied, str(error), from_seed, repeated)
    retained = Interval(*(float(x[0]) for x in (whole.mean, whole.low, whole.high)))
    return Memory(curve, retained, copied, "", from_seed, repeated)


def _repeated(scores: list[Score], held_out: Beginnings) -> Interval | None:
    """The share of a continuation's bars that occurred before, in it or in its seed; a bar across the border belongs
    to the seed."""
    shares = []
    for seed, score in zip(held_out.seeds, scores, strict=True):
        bar_s = 4 * seed.quarter_s
        whole = splice(seed, score, held_out.seed_s)
        shares.append(repeated_share(whole, from_bar=int(np.ceil(held_out.seed_s / bar_s - 1e-6))))
    said = [share for share in shares if np.isfinite(share)]
    return interval(said) if said else None


COMMAND = Command("compare", only_new(compare), CompareConfig, {"sampler": "auto", "attention": "auto"}, main="runs")
