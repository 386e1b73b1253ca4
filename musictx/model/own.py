"""Parts of a model from a person's own script: a bundle names the script, and never runs it."""

import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from musictx.errors import BundleError
from musictx.files import fits
from musictx.model.header import AGAIN, BundleHeader
from musictx.model.onnx.settings import can_play, can_play_source

ADDED_BY = "added_by"  # the note of a header: the script of each part
OURS = __name__.partition(".")[0]


def scripts_of(model: Any, tokenizer: object) -> dict[str, dict[str, str]]:
    """The header's note with the script of each part that is not in musictx; empty where all are."""
    from musictx.model.build import KINDS, kind_of
    from musictx.model.position import FORMS

    form = FORMS.get(getattr(model.config, "position", ""))
    parts = {"kind": KINDS[kind_of(model)].config, "position": form, "tokenizer": type(tokenizer)}
    scripts = {name: _script(part.__module__) for name, part in parts.items() if part and not is_ours(part)}
    return {ADDED_BY: scripts} if scripts else {}


def is_ours(part: Any) -> bool:
    return bool(part.__module__.partition(".")[0] == OURS)


def _script(module: str) -> str:
    """The file name of a module, "" where it has none, as in a notebook."""
    return Path(getattr(sys.modules.get(module), "__file__", None) or "").name


def maker(header: BundleHeader) -> str:
    """The musictx that made a bundle, in words."""
    own_version = version("musictx")
    return (
        "the older musictx that made it"
        if header.version == own_version
        else f"musictx {header.version}, which made it"
    )


def check_parts(path: object, header: Any, tokenizers: Mapping[str, object] | None = None) -> None:
    """Raises BundleError for an unknown kind of model, form of position or tokenizer."""
    ours = can_play(header) or can_play_source(header)  # no PyTorch is needed to see it
    parts = {} if ours else _model_parts(header)
    if tokenizers is not None:
        parts["tokenizer"] = header.tokenizer, tokenizers
    for name, (value, table) in parts.items():
        if isinstance(value, str) and value not in table:
            script = header.notes.get(ADDED_BY, {})
            script = script.get(name, "") if fits(script, dict[str, str]) else ""
            hint = f"{script} adds it: run that script with these words, or import it first"
            otherwise = f"run the script that adds it, or use {maker(header)}"
            what = f"{path} has {name}={value}, which is not in musictx"
            raise BundleError(what, hint if script else otherwise)


def _model_parts(header: Any) -> dict[str, tuple[object, Mapping[str, object]]]:
    """The header's kind and form of position, each with its table."""
    from musictx.model.build import KINDS
    from musictx.model.position import FORMS

    kind = header.model.get("kind", "transformer")
    parts: dict[str, tuple[object, Mapping[str, object]]] = {"kind": (kind, KINDS)}
    if not isinstance(kind, str):
        raise BundleError(f"kind={str(kind)[:50]} is no kind of model", AGAIN)
    if kind in KINDS and is_ours(KINDS[kind].config):
        parts["position"] = header.model.get("position", "none"), FORMS
    return parts
