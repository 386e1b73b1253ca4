"""musictx compare: measure several models on one store: a report with a table and pictures."""

from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import MISSING

from musictx.analysis.comparison import gain_places, knowledge, listener, memory, passage_vectors
from musictx.analysis.continuations import beginnings, continue_beginnings
from musictx.analysis.distance import compare_all
from musictx.analysis.evaluation import evaluate_split
from musictx.analysis.frechet import compare_passages
from musictx.analysis.repeats import CorpusIndex
from musictx.analysis.report import FILES, JSON, ModelReport, write_report
from musictx.analysis.statistics import features
from musictx.config.command import Command
from musictx.config.train import AttentionConfig, DataConfig
from musictx.errors import ConfigError
from musictx.files import check_new, only_new, write_json
from musictx.generate.open_bundle import COMPOSER, common_store, find_bundles, name_bundles, open_bundle
from musictx.generate.open_player import check_device
from musictx.generate.requests import Continue, Sampling
from musictx.model.torch_steps import TorchPlayer
from musictx.model.weights import for_steps
from musictx.setting import setting
from musictx.terminal import say

NO_EAR = "this musictx was built without the model that hears"


@dataclass
class CompareConfig:
    """musictx compare: compare several models on one store, in a report with a table and pictures."""

    runs: list[str] = setting(
        MISSING, "run folders, bundles, piano, chorale; patterns like 'outputs/*/lstm*' too", path=True
    )
    names: list[str] | None = setting(None, "names for the table; null: each run's own")
    store: str = setting(MISSING, "a store of the tokens that all of them were trained on", path=True)
    out: str = setting("outputs/comparison", "a folder for report.md, report.json and pictures", folder=True)
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
    span_s = config.span_seconds
    part_s = min(span_s, config.length_seconds)
    cut = gain_places(bundles, split, tokenizer, config.seed_seconds, config.length_seconds, part_s)
    request = Continue(config.sampler, random_seed=config.random_seed)

    true_vectors = passage_vectors(ear, held_out.true)
    scores = {COMPOSER: held_out.true}
    rows = [ModelReport(COMPOSER, memory(held_out.true, held_out, index, span_s, metrical))]
    for name, bundle in zip(names, bundles, strict=True):
        opened = open_bundle(bundle, device, config.attention.impl)
        say(f"{name}: {opened.header.origin}")
        budget = DataConfig.score_batch_tokens
        nll = evaluate_split(opened, bundle, store, config.split, config.segment, budget, device, stride=config.stride)
        parameters = sum(p.numel() for p in opened.model.parameters())
        knows = knowledge(opened, cut, part_s, device)
        player, own = TorchPlayer(for_steps(opened.model), device), opened.header.sampling
        continued = continue_beginnings(player, opened.tokenizer, held_out, request, own=own)
        scores[name] = continued.scores
        row = ModelReport(
            name=name,
            nll=nll,
            parameters=parameters,
            generate_tokens_per_s=continued.tokens_per_s,
            distances=compare_all(real, features(continued.scores, metrical)),
            memory=memory(continued.scores, held_out, index, span_s, metrical),
            knows=knows,
            frechet=compare_passages(true_vectors, passage_vectors(ear, continued.scores)) if ear else NO_EAR,
        )
        rows.append(row)
        say(f"{name}: {nll.per_token.mean:.4f} nats per token")
    out.mkdir(parents=True, exist_ok=True)
    write_report(out, rows, held_out, config, store, scores)
    write_json(out / JSON, [row.plain() for row in rows])
    say(f"{out}/report.md: the table and what it means, with pictures and report.json beside it")


COMMAND = Command("compare", only_new(compare), CompareConfig, {"sampler": "auto", "attention": "auto"}, main="runs")
