"""The header of a bundle: all that `generate` needs beside the weights, read without PyTorch and never unpickled. A
training's checkpoint has the same header."""

from __future__ import annotations

import json
import pickle
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from musictx.errors import BundleError
from musictx.files import all_printable
from musictx.model.tensors import is_checkpoint, read_checkpoint

FORMAT = 1
KEY = "musictx"
# what the libraries make of a damaged file
DAMAGE = (
    *(SafetensorError, zipfile.BadZipFile, OSError, RuntimeError, ValueError, TypeError, EOFError, AssertionError),
    *(LookupError, AttributeError, ArithmeticError),
)
AGAIN, OURS = "copy or train it again", "give a file that `musictx train` wrote"
MOST_GUIDANCE = 10.0
FREE = ("MIT", "CC0 1.0", "CC BY 4.0", "public domain")  # weights that people may sell
OWN_FILTERS = ("top_p", "min_p")  # of the sampler, which a bundle may name


@dataclass(frozen=True)
class BundleHeader:
    """The header of a bundle; `notes` is free for more."""

    model: dict[str, Any]
    tokenizer: str
    vocab_fingerprint: str
    corpus: str
    licence: str
    val_nll: float | None
    version: str
    format: int = FORMAT
    notes: dict[str, Any] = field(default_factory=dict)
    tokenizer_state: str = ""  # the tokenizer's state: BPE merges
    objective: dict[str, Any] = field(default_factory=dict)  # name, settings, added ids; empty for the next token

    @property
    def origin(self) -> str:
        """The corpus of the training, and its licence."""
        return f"trained on {self.corpus}, licence {self.licence}"

    @property
    def is_free(self) -> bool:
        """Whether the licence is one of `FREE`."""
        return self.licence.partition(" (")[0] in FREE

    @property
    def added(self) -> list[list[Any]]:
        """The ids that the objective adds to the tokenizer's, (type, min, max) each."""
        return [[str(type), int(lo), int(hi)] for type, lo, hi in self.objective.get("added", [])]

    @property
    def seed_guidance(self) -> float | None:
        """The model's default strength of seed guidance; None: no default."""
        own = self.notes.get("seed_guidance")
        return None if own is None else float(own)

    @property
    def sampling(self) -> dict[str, float | None]:
        """The sampler's settings that the model plays best with. Raises ValueError for others than seed_guidance, top_p
        and min_p, and for impossible numbers."""
        own = dict(self.notes.get("sampler", {}))
        for name, share in own.items():
            if name not in OWN_FILTERS or not (share is None or 0 < share <= 1):
                raise ValueError(f"sampler: {name}={share}")
        if (strength := self.seed_guidance) is not None and not 0 <= strength <= MOST_GUIDANCE:
            raise ValueError(f"seed_guidance={strength}")
        return own | {"seed_guidance": strength}

    @property
    def hides_source(self) -> bool:
        """Whether it was trained without a source too: guidance by a melody needs that."""
        return bool(self.notes.get("hide_source"))

    def to_json(self) -> str:
        return json.dumps(asdict(self))


TYPES: dict[str, tuple[type, ...]] = {  # of the header's fields
    **dict.fromkeys(("model", "notes", "objective"), (dict,)),
    **dict.fromkeys(("tokenizer", "vocab_fingerprint", "corpus", "licence", "version", "tokenizer_state"), (str,)),
    "val_nll": (int, float, type(None)),
    "format": (int,),
}


def read_header(path: Path) -> BundleHeader:
    """Reads only the header. Raises BundleError for a file that is missing, damaged, or not a musictx bundle."""
    if not path.is_file():
        raise BundleError(f"{path}: no such bundle", "`musictx train` writes one as model.safetensors")
    try:
        if is_checkpoint(path):
            metadata = read_checkpoint(path)
        else:
            with safe_open(path, "np") as file:
                metadata = file.metadata() or {}
    except pickle.UnpicklingError:
        what = f"{path} has more than tensors and plain values, which could run code, and is not opened"
        raise BundleError(what, OURS) from None
    except DAMAGE as error:
        raise BundleError(f"{path} is damaged or not a bundle ({reason(error)})", AGAIN) from None
    if KEY not in metadata:
        kind = "checkpoint" if is_checkpoint(path) else "safetensors file"
        raise BundleError(f"{path} is a {kind}, but not a musictx bundle", OURS)
    try:
        raw = {key: x if key == "tokenizer_state" else all_printable(x) for key, x in json.loads(metadata[KEY]).items()}
        if raw["format"] > FORMAT:
            what = f"{path} has bundle format {raw['format']}, this version reads up to {FORMAT}"
            raise BundleError(what, "upgrade musictx")
        header = BundleHeader(**raw)
        for name, kinds in TYPES.items():
            if type(value := getattr(header, name)) not in kinds:
                raise ValueError(f"{name} is {value!r}")
        if not isinstance(name := header.objective.get("name", ""), str):
            raise ValueError(f"objective is {name!r}")
        _ = header.added, header.sampling  # raise here if unreadable
        return header
    except DAMAGE as error:
        raise BundleError(f"{path}: its header is damaged ({repr(error)[:200]})", AGAIN) from None


def reason(error: Exception) -> str:
    """A library's message about a damaged file, as one short line."""
    return " ".join(str(error).split())[:200]
