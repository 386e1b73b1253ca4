"""Files -> a store: splits by piece and random seed, in which near-duplicates stay together, and a summary."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import numpy as np

from musictx.config.prepare import PrepareConfig, PrepareMidiConfig, SplitConfig
from musictx.config.train import TokenizerConfig
from musictx.data.parallel.journal import Journal
from musictx.data.parallel.pool import cores, encode_all
from musictx.data.recipe import Encode, Recipe, check_filters, check_select, encode_midi
from musictx.data.similar import group
from musictx.data.source import Item
from musictx.data.store import COUNTED, SPLITS, Corpus, Manifest, Piece, check_target, write_store
from musictx.errors import ConfigError, StoreError, counted
from musictx.terminal import say
from musictx.tokenizers import Ids, Tokenizer, build_tokenizer
from musictx.tokenizers.miditok import KINDS
from musictx.tokenizers.miditok.tokens import check_size, train_bpe
from musictx.tokenizers.score import ScoreTokenizer

Assign = Callable[[Sequence[Piece], Sequence[str]], list[str]]  # (pieces, key of each) -> split of each


def check_work(config: PrepareConfig) -> None:
    """Raises UserError for impossible settings, before the long work begins."""
    check_target(Path(config.out), config.overwrite)
    cores(config.workers)
    for name, least in (("file_seconds", 0.1), ("memory_mb", 1), ("file_mb", 1e-3)):
        if not least <= (value := getattr(config, name)) < 1e6:  # refuses NaN too
            raise ConfigError(name, got=value, allowed=f"a number from {least:g} to below a million")
    if isinstance(config, PrepareMidiConfig):
        check_select(config.select)
        check_filters(config.filters)
        check_bpe(config.tokenizer)
        build_tokenizer(config.tokenizer.name)
        if config.tokenizer.name == ScoreTokenizer.name:
            why, hint = "it needs bars and parts", "musictx prepare scores keeps them"
            raise ConfigError("tokenizer", got=config.tokenizer.name, why=why, hint=hint)
    if isinstance(config, SplitConfig):
        check_fractions(config.validation_fraction, config.test_fraction, config.random_seed)


def prepare(
    items: Sequence[Item],
    encode: Encode,
    recipe: str,
    tokenizer: Tokenizer,
    corpus: Corpus,
    assign: Assign,
    config: PrepareConfig,
    unread: Sequence[tuple[str, str]] = (),
) -> Manifest:
    """Files -> a store at `config.out`, with the chunks of an earlier run under the same `recipe`; after `check_work`.

    `assign` gets pieces with a key each, equal for near-duplicates. `unread` are other files, with reasons. Raises
    ConfigError; StoreError where no piece is left.
    """
    limits = f"{config.memory_mb} {config.file_seconds} {config.file_mb}"
    versions = ", ".join(f"{name} {version(name)}" for name in ("musictx", "numpy"))
    journal = Journal(Path(config.out), f"{recipe} {limits} {versions}")
    with journal.lock():
        pieces, dropped = encode_all(items, encode, journal, config)
        if not pieces:
            journal.close()
            raise StoreError(f"of {counted(len(items), 'file')} none could be used; {dropped[0][0]}: {dropped[0][1]}")
        manifest = finish(pieces, sorted([*dropped, *unread]), tokenizer, corpus, assign, config)
        journal.close()
    return manifest


def prepare_midi(
    items: Sequence[Item],
    corpus: Corpus,
    assign: Assign,
    config: PrepareMidiConfig,
    unread: Sequence[tuple[str, str]] = (),
) -> Manifest:
    """`prepare` for MIDI files by the recipe of the settings."""
    recipe = Recipe(build_tokenizer(config.tokenizer.name), config.select, config.filters)
    encode = partial(encode_midi, recipe=recipe)
    return prepare(items, encode, str(recipe), recipe.tokenizer, corpus, assign, config, unread)


def finish(
    pieces: Sequence[Piece],
    dropped: list[tuple[str, str]],
    tokenizer: Tokenizer,
    corpus: Corpus,
    assign: Assign,
    config: PrepareConfig,
) -> Manifest:
    """Pieces -> splits -> a store with its report."""
    leader = group([piece.signature for piece in pieces])
    key_of = {i: content_key(pieces[i].ids, tokenizer) for i in set(leader)}
    keys = [key_of[i] for i in leader]
    split_of = assign(pieces, keys)  # of each piece
    splits = {s: [p for p, own in zip(pieces, split_of, strict=True) if own == s] for s in SPLITS}
    if isinstance(config, PrepareMidiConfig) and config.tokenizer.bpe_vocab:
        # merges are learned from the training pieces only
        training = (piece.ids for piece in splits["train"])
        tokenizer = with_merges = train_bpe(tokenizer.name, training, config.tokenizer.bpe_vocab)
        splits = {s: [replace(p, ids=with_merges.apply_bpe(p.ids)) for p in split] for s, split in splits.items()}
    by_key: dict[str, list[int]] = defaultdict(list)
    for i, key in enumerate(keys):
        by_key[key].append(i)
    duplicates = [members for members in by_key.values() if len(members) > 1]
    report = {
        "files": len(pieces) + len(dropped),
        "kept": len(pieces),
        "dropped_by_reason": dict(Counter(cause(reason) for _, reason in dropped).most_common()),
        "near_duplicates": [[pieces[i].name for i in members] for members in duplicates],
        "near_duplicates_across_splits": sum(len({split_of[i] for i in members}) > 1 for members in duplicates),
        **({"seed": config.random_seed} if isinstance(config, SplitConfig) else {}),
    }
    return write_store(Path(config.out), tokenizer, corpus, splits, dropped, report, config.overwrite)


def cause(reason: str) -> str:
    """A reason without its details, which follow a colon or stand in brackets."""
    return re.split(r": | \(", reason)[0]


def check_bpe(tokenizer: TokenizerConfig) -> None:
    """Raises ConfigError for merges of a tokenizer that learns none, and for too few."""
    if tokenizer.bpe_vocab is None:
        return
    if tokenizer.name not in KINDS:
        why, hint = f"{tokenizer.name} learns no merges", f"give TokenizerConfig.name= one of {', '.join(KINDS)}"
        raise ConfigError("bpe_vocab", got=tokenizer.bpe_vocab, why=why, hint=hint)
    check_size(tokenizer.name, tokenizer.bpe_vocab)


def print_summary(out: Path, manifest: Manifest) -> None:
    """Prints pieces, tokens and hours of each split, and the counts of files."""
    extra = manifest.extra
    say(f"{out}: {manifest.corpus.name}, tokenizer {manifest.tokenizer}, licence {manifest.corpus.licence}")
    for name, info in manifest.splits.items():
        hours = info.seconds / 3600
        pieces, tokens = counted(len(info.pieces), "piece"), counted(info.tokens, "token")
        say(f"  {name:<10} {pieces:>16} {tokens:>20} {hours:>9,.2f} hours")
    if not COUNTED.keys() <= extra.keys():
        return
    say(f"{counted(extra['files'], 'file')} in, {extra['kept']:,} kept, {len(manifest.dropped):,} left out")
    reasons = list(extra["dropped_by_reason"].items())
    for reason, count in reasons[:12]:
        say(f"  {count:>6,}  {reason}")
    if manifest.dropped:
        say(f"  each file with its reason: {out / 'manifest.json'}")
    if groups := extra["near_duplicates"]:
        across = extra["near_duplicates_across_splits"]
        spans = counted(across, "group spans", "groups span")
        place = f"{spans} several official splits" if across else "each within one split"
        say(f"{sum(map(len, groups)):,} pieces are near-duplicates in {counted(len(groups), 'group')}, {place}")


def content_key(ids: Ids, tokenizer: Tokenizer) -> str:
    """A hash that transposition does not change."""
    span = tokenizer.pitch_range(ids)
    return sha256(tokenizer.transpose(ids, tokenizer.lo - span[0]).tobytes() if span else ids.tobytes()).hexdigest()


def check_fractions(validation_fraction: float, test_fraction: float, random_seed: int) -> None:
    """Raises ConfigError for fractions without training or validation, and for a negative seed."""
    if not (validation_fraction > 0 and test_fraction >= 0 and validation_fraction + test_fraction < 1):  # refuses NaN
        allowed = f"a share above 0 that leaves some to train on, with test_fraction={test_fraction}"
        raise ConfigError("validation_fraction", got=validation_fraction, allowed=allowed)
    if random_seed < 0:
        raise ConfigError("random_seed", got=random_seed, allowed="0 or more")


def by_piece(config: SplitConfig) -> Assign:
    """Splits by the fractions of the settings; near-duplicates share one."""
    return lambda _, keys: assign_splits(keys, config.validation_fraction, config.test_fraction, config.random_seed)


def assign_splits(keys: Sequence[str], validation_fraction: float, test_fraction: float, random_seed: int) -> list[str]:
    """A split for each key, one for equal keys; none with a fraction above 0 is empty. Raises StoreError for too few
    different keys."""
    groups = sorted(set(keys))
    n_validation, n_test = (max(round(f * len(groups)), 1) if f else 0 for f in (validation_fraction, test_fraction))
    if (held_out := n_validation + n_test) >= len(groups):
        raise StoreError(
            f"{counted(len(groups), 'different piece')} cannot fill the splits, {held_out} would go to validation and "
            "test, and none to training",
            f"give more files, or less than validation_fraction={validation_fraction} test_fraction={test_fraction}",
        )
    names = ["validation"] * n_validation + ["test"] * n_test + ["train"] * (len(groups) - held_out)
    order = np.random.default_rng(random_seed).permutation(len(groups))
    split_of = {groups[i]: name for i, name in zip(order, names, strict=True)}
    return [split_of[key] for key in keys]
