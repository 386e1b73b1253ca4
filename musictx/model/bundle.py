"""A bundle: a model as one `.safetensors` file whose header has all that `generate` needs. Nothing is unpickled.

A training's checkpoint has the same header and is read in the same way: only tensors and plain values.
"""

import json
import pickle
import zipfile
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from musictx.errors import BundleError, UserError
from musictx.files import all_printable, replacing
from musictx.model.build import Model, asked, build_model, model_config
from musictx.model.own import check_parts
from musictx.model.sizes import differing, without_memory

FORMAT = 1
KEY = "musictx"
# what the libraries make of a damaged file
DAMAGE = (
    *(SafetensorError, zipfile.BadZipFile, OSError, RuntimeError, ValueError, TypeError, EOFError, AssertionError),
    *(LookupError, AttributeError, ArithmeticError),
)
AGAIN, OURS = "copy or train it again", "give a file that `musictx train` wrote"
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
        """The corpus that the weights were trained on, and its licence."""
        return f"trained on {self.corpus}, licence {self.licence}"

    @property
    def added(self) -> list[list[Any]]:
        """The ids that the objective adds to the tokenizer's, (type, min, max) each."""
        return [[str(type), int(lo), int(hi)] for type, lo, hi in self.objective.get("added", [])]

    @property
    def seed_guidance(self) -> float | None:
        """The model's default strength of seed guidance, as the header says; None: no default."""
        own = self.notes.get("seed_guidance")
        return None if own is None else float(own)

    @property
    def sampling(self) -> dict[str, float | None]:
        """The sampler's settings that the model plays best with, for a person who leaves them to the bundle. Raises
        ValueError for others than seed_guidance, top_p and min_p, and for impossible shares."""
        own = dict(self.notes.get("sampler", {}))
        for name, share in own.items():
            if name not in OWN_FILTERS or not (share is None or 0 < share <= 1):
                raise ValueError(f"sampler: {name}={share}")
        return own | {"seed_guidance": self.seed_guidance}

    @property
    def hides_source(self) -> bool:
        """Whether it was trained without a source too: guidance by a melody needs that."""
        return bool(self.notes.get("hide_source"))

    def to_json(self) -> str:
        """The header as JSON."""
        return json.dumps(asdict(self))


TYPES: dict[str, tuple[type, ...]] = {  # of the header's fields
    **dict.fromkeys(("model", "notes", "objective"), (dict,)),
    **dict.fromkeys(("tokenizer", "vocab_fingerprint", "corpus", "licence", "version", "tokenizer_state"), (str,)),
    "val_nll": (int, float, type(None)),
    "format": (int,),
}


class Bundle(NamedTuple):
    model: Model
    header: BundleHeader


def save_bundle(path: Path, model: nn.Module, header: BundleHeader, dtype: torch.dtype | None = None) -> None:
    """Writes the whole bundle or nothing. `dtype` stores the weights in fewer bits; loading makes them float32."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    if dtype is not None:
        tensors = {name: t.to(dtype) if t.is_floating_point() else t for name, t in tensors.items()}
    with replacing(path) as partial:  # save_file would write a file that others may not read
        partial.write_bytes(save(tensors, {KEY: header.to_json()}))


def add_notes(path: Path, **notes: Any) -> None:
    """Writes more notes into a bundle's header; its tensors stay the same, bit for bit."""
    header = read_header(path)
    write_header(path, replace(header, notes=header.notes | notes))


def write_header(path: Path, header: BundleHeader) -> None:
    """Gives a bundle another header; its tensors stay the same, bit for bit."""
    content = save(_tensors(path), {KEY: header.to_json()})
    with replacing(path) as partial:
        partial.write_bytes(content)


def read_header(path: Path) -> BundleHeader:
    """Reads only the header. Raises BundleError for a file that is missing, damaged, or not a musictx bundle."""
    if not path.is_file():
        raise BundleError(f"{path}: no such bundle", "`musictx train` writes one as model.safetensors")
    try:
        if _is_checkpoint(path):
            metadata = _checkpoint(path)
        else:
            with safe_open(path, "pt") as file:
                metadata = file.metadata() or {}
    except pickle.UnpicklingError:
        what = f"{path} has more than tensors and plain values, which could run code, and is not opened"
        raise BundleError(what, OURS) from None
    except DAMAGE as error:
        raise BundleError(f"{path} is damaged or not a bundle ({reason(error)})", AGAIN) from None
    if KEY not in metadata:
        kind = "checkpoint" if _is_checkpoint(path) else "safetensors file"
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
    """What a library says of a damaged file, as one short line."""
    return " ".join(str(error).split())[:200]


def _is_checkpoint(path: Path) -> bool:
    """Whether torch.save wrote the file, as a zip archive."""
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def _checkpoint(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as file:  # torch.save packs nothing, so that its tensors can be mapped
        if any(entry.file_size > entry.compress_size for entry in file.infolist()):
            raise ValueError("it is packed, and torch.save packs nothing")
    content = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    return content if isinstance(content, dict) else {}


def _tensors(path: Path) -> dict[str, Tensor]:
    if _is_checkpoint(path):
        with zipfile.ZipFile(path) as file:
            if broken := file.testzip():  # compares with the checksums inside, which torch.load does not
                raise ValueError(f"{broken} has changed since it was written")
        found = _checkpoint(path)["state_dict"]
        if not all(isinstance(name, str) and isinstance(x, Tensor) for name, x in found.items()):
            raise ValueError("its state_dict is no dict of tensors")
        return {name.removeprefix("model."): x for name, x in found.items()}
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


def _shapes(path: Path) -> dict[str, list[int]]:
    """Those of all tensors; of a bundle none is read for it, since a stranger's file may be larger than the memory."""
    if _is_checkpoint(path):
        return {name: [*x.shape] for name, x in _tensors(path).items()}
    with safe_open(path, "pt") as file:
        return {name: file.get_slice(name).get_shape() for name in file.keys()}  # noqa: SIM118 - not a dict


def tensors_hash(path: Path) -> str:
    """The SHA-256 of all tensors, by name: what stays when a header changes."""
    found = sha256()
    for name, tensor in sorted(_tensors(path).items()):
        found.update(name.encode() + tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def load_bundle(path: Path, device: str = "cpu", attention: str | None = None) -> Bundle:
    """The model, ready to evaluate, and its header. `attention` chooses another implementation than in training: all
    share weights. Raises BundleError, also for a part of a person's own that is not here; ConfigError for an unknown
    implementation."""
    header = read_header(path)
    check_parts(path, header)
    try:
        settings = dict(header.model)
        config = model_config(settings.pop("kind", "transformer"), settings)
    except (TypeError, ValueError, AttributeError, UserError) as error:
        raise BundleError(f"{path}: its model config is damaged ({error})", AGAIN) from None
    if attention:
        config = replace(config, **asked(config, {"attention": attention}))
    try:
        if wrong := differing(without_memory(lambda: build_model(config)), _shapes(path)):
            raise ValueError(wrong)
        model = build_model(config)
        model.load_state_dict(_tensors(path))
    except (*DAMAGE, UserError) as error:
        raise BundleError(f"{path}: its weights are damaged ({reason(error)})", AGAIN) from None
    return Bundle(model.to(device).eval(), header)
