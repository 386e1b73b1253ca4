"""musictx evaluate: nats per token of a split under a bundle's model."""

from pathlib import Path

from musictx.app import hydra_app
from musictx.config.use import EvaluateConfig
from musictx.data.store import Store
from musictx.device import check_device
from musictx.errors import ConfigError, StoreError
from musictx.evaluation.likelihood import negative_log_likelihood, uniform_nll, unigram_nll
from musictx.model.attention import describe
from musictx.open import open_bundle


def evaluate(config: EvaluateConfig) -> None:
    device = check_device(config.device)
    bundle = open_bundle(Path(config.bundle), device, config.attention.impl)
    print(describe(bundle.model.config.position, config.attention.impl))
    store = Store(Path(config.data.path), bundle.header.tokenizer)
    if bundle.header.vocab_fingerprint != store.tokenizer.vocab.fingerprint:
        raise ConfigError(
            f"{config.bundle} was trained on other tokens than {store.path} holds: train or prepare again"
        )
    split, vocab = store.split(config.split), store.tokenizer.vocab
    if not len(split.ids):
        full = ", ".join(name for name, info in store.manifest.splits.items() if info.tokens)
        raise StoreError(f"{store.path}: its {config.split} split is empty; choose split= one of {full}")
    result = negative_log_likelihood(
        bundle.model, split, store.tokenizer, config.data.segment, config.data.score_batch_tokens, device
    )
    how = f"inputs of {config.data.segment} tokens" if config.data.segment else "whole pieces"
    print(f"{config.split} split of {store.path}: {len(split)} pieces, {result.tokens:,} tokens, {how}")
    print("negative log-likelihood, nats per token")
    print(f"  uniform  {uniform_nll(vocab):.4f}")
    print(f"  unigram  {unigram_nll(store.split('train').ids, split.ids, vocab):.4f}")
    print(f"  model    {result.nll:.4f}   {config.bundle}")


main = hydra_app("evaluate", evaluate)

if __name__ == "__main__":
    main()
