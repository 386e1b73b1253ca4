"""musictx compare: several models on one store, measured alike, as a report that a person can read."""

import csv
import json
import statistics as stats
from pathlib import Path

from musictx.app import hydra_app
from musictx.config.use import CompareConfig
from musictx.device import check_device
from musictx.errors import ConfigError, UserError
from musictx.evaluate_command import measure
from musictx.evaluation.bootstrap import Interval, interval
from musictx.evaluation.continuations import Beginnings, beginnings, continue_all
from musictx.evaluation.copying import CorpusIndex
from musictx.evaluation.distance import compare_all
from musictx.evaluation.motif import retention
from musictx.evaluation.statistics import features, statistics
from musictx.files import replacing
from musictx.model.weights import for_steps
from musictx.notes.score import Score
from musictx.open import open_bundle
from musictx.report import Memory, Row, write_report
from musictx.sampling.settings import Settings
from musictx.several import COMPOSER, common_store, find_bundles, name_bundles


def training_of(bundle: Path) -> tuple[float | None, list[tuple[int, float]]]:
    """Median training tokens/s and the curve (step, validation NLL), from the metrics beside a bundle if they are."""
    metrics = bundle.with_name("metrics.csv")
    if not metrics.is_file():
        return None, []
    with open(metrics, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rates = [float(row["train/tokens_per_s"]) for row in rows if row.get("train/tokens_per_s")]
    curve = [(int(row["step"]) + 1, float(row["val/nll"])) for row in rows if row.get("val/nll")]
    return stats.median(rates) if rates else None, curve


def compare(config: CompareConfig) -> None:
    device = check_device(config.device)
    bundles = find_bundles(config.runs)
    names = name_bundles(bundles, config.names)
    out = Path(config.out)
    if (out / "report.md").exists() and not config.overwrite:
        raise ConfigError(f"{out}/report.md exists already: give another out= or overwrite=true")
    store = common_store(Path(config.store), bundles)  # mistakes are told before the first model is measured
    split, tokenizer = store.split(config.split), store.tokenizer
    held_out = beginnings(split, tokenizer, config.pieces, config.seed_seconds, config.length_seconds)
    index = None
    if config.copying:
        index = CorpusIndex([tokenizer.decode(ids) for ids in store.split("train")])
    real = features([statistics(s, s.quarter_s / 4 if tokenizer.metrical else None) for s in held_out.true])
    settings = Settings(config.sampler, seed=config.seed, device=device)

    rows = [_composers(held_out, index, config)]
    for name, bundle in zip(names, bundles, strict=True):
        opened = open_bundle(bundle, device, config.attention.impl)
        print(f"{name}: {opened.header.origin}")
        nll = measure(opened, bundle, store, config.split, config.segment, config.score_batch_tokens, device)
        parameters = sum(p.numel() for p in opened.model.parameters())
        drawn = continue_all(for_steps(opened.model), tokenizer, held_out, settings)
        made = features([statistics(s, s.quarter_s / 4 if tokenizer.metrical else None) for s in drawn.scores])
        rate, curve = training_of(bundle)
        row = Row(
            name=name,
            nll=nll,
            parameters=parameters,
            train_tokens_per_s=rate,
            generate_tokens_per_s=drawn.tokens_per_s,
            validation=curve,
            distances=compare_all(real, made),
            memory=_memory(drawn.scores, held_out, index, config),
        )
        rows.append(row)
        print(f"{name}: {nll.per_token.mean:.4f} nats per token")
    out.mkdir(parents=True, exist_ok=True)
    write_report(out, rows, held_out, config, store)
    with replacing(out / "report.json") as partial:
        partial.write_text(json.dumps([row.plain() for row in rows], indent=1), encoding="utf-8")
    print(f"{out}/report.md: the table and what it means, with pictures and report.json beside it")


def _composers(held_out: Beginnings, index: CorpusIndex | None, config: CompareConfig) -> Row:
    """The row to set the models against: the pieces' own continuations."""
    return Row(COMPOSER, _memory(held_out.true, held_out, index, config))


def _memory(scores: list[Score], held_out: Beginnings, index: CorpusIndex | None, config: CompareConfig) -> Memory:
    length_s = held_out.length_s
    arguments = held_out.seeds, scores, held_out.true
    copied = interval([index.longest_copy(s).notes for s in scores]) if index is not None else None
    try:
        whole = retention(*arguments, window_s=length_s, horizon_s=length_s)
        curve = retention(*arguments, window_s=min(config.window_seconds, length_s), horizon_s=length_s)
    except UserError as error:  # too few pieces, or too short: all else can still be told
        return Memory(None, None, copied, str(error))
    return Memory(curve, Interval(*(float(x[0]) for x in (whole.mean, whole.low, whole.high))), copied)


main = hydra_app("compare", compare)

if __name__ == "__main__":
    main()
