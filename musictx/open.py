"""A bundle as a person uses it: the model together with the tokenizer it was trained on, checked against each other."""

from pathlib import Path
from typing import NamedTuple

from musictx.errors import BundleError
from musictx.model.build import Model
from musictx.model.bundle import BundleHeader, load_bundle
from musictx.tokenizers import Tokenizer, build_tokenizer

SHIPPED = Path(__file__).parent / "bundles" / "chorale.safetensors"


def shipped_bundle() -> Path:
    """The chorale model inside the package. Raises BundleError where the package was built without it."""
    if not SHIPPED.is_file():
        raise BundleError("this musictx was built without its model: name one with bundle=FILE")
    return SHIPPED


def bundle_path(bundle: str | None) -> Path:
    """What `bundle=` says; null is the model inside the package. Raises BundleError."""
    return Path(bundle) if bundle is not None else shipped_bundle()


class Opened(NamedTuple):
    model: Model
    tokenizer: Tokenizer
    header: BundleHeader


def open_bundle(path: Path, device: str = "cpu", attention: str = "auto") -> Opened:
    """Raises BundleError for a file that is no bundle, or whose tokens this version does not make."""
    model, header = load_bundle(path, device, attention)
    tokenizer = build_tokenizer(header.tokenizer, header.tokenizer_state)
    if tokenizer.vocab.fingerprint != header.vocab_fingerprint:
        raise BundleError(
            f"{path} was trained on {header.tokenizer} tokens {header.vocab_fingerprint}, this version makes "
            f"{tokenizer.vocab.fingerprint}: use musictx {header.version}"
        )
    if header.model["vocab_size"] != tokenizer.vocab.size:
        raise BundleError(
            f"{path} is damaged: its model has {header.model['vocab_size']} tokens, its tokenizer "
            f"{tokenizer.vocab.size}; copy or train it again"
        )
    return Opened(model, tokenizer, header)
