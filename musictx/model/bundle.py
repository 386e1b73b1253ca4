"""A bundle: a model as one `.safetensors` file with the header that `generate` needs. Nothing is unpickled."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from musictx.errors import BundleError, UserError
from musictx.files import replacing
from musictx.model.build import KINDS, Model, build_model, meta_model, model_config, training_fields
from musictx.model.header import AGAIN, DAMAGE, KEY, BundleHeader, read_header, reason
from musictx.model.own import check_parts, maker
from musictx.model.tensors import checkpoint_tensors, is_checkpoint, shape_difference, shapes


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
    """Adds notes to a bundle's header; its tensors stay the same, bit for bit."""
    header = read_header(path)
    write_header(path, replace(header, notes=header.notes | notes))


def write_header(path: Path, header: BundleHeader) -> None:
    """Replaces a bundle's header; its tensors stay the same, bit for bit."""
    content = save(_tensors(path), {KEY: header.to_json()})
    with replacing(path) as partial:
        partial.write_bytes(content)


def _tensors(path: Path) -> dict[str, Tensor]:
    if is_checkpoint(path):
        return checkpoint_tensors(path)
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


def load_bundle(path: Path, device: str = "cpu", attention: str | None = None) -> Bundle:
    """The model, ready to evaluate, and its header. `attention` chooses another kernel than in training. Raises
    BundleError, also where a person's own part is missing; ConfigError for an unknown kernel."""
    header = read_header(path)
    check_parts(path, header)
    kind = header.model.get("kind", "transformer")
    settings = {name: value for name, value in header.model.items() if name != "kind"}
    for name in sorted(settings.keys() - {each.name for each in fields(KINDS[kind].config)}):
        if (value := settings.pop(name)) != KINDS[kind].former_settings.get(name, ...):
            what = f"{path}: kind={kind} has no {f'{name}={value}'[:50]} in musictx"
            raise BundleError(what, f"use {maker(header)}")
    try:
        config = model_config(kind, settings)
    except (TypeError, ValueError, AttributeError, UserError) as error:
        raise BundleError(f"{path}: its model config is damaged ({error})", AGAIN) from None
    if attention:
        config = replace(config, **training_fields(config, {"attention": attention}))
    try:
        expected = {name: [*x.shape] for name, x in meta_model(config).state_dict().items()}
        if wrong := shape_difference(expected, shapes(path)):
            raise ValueError(wrong)
        model = build_model(config)
        model.load_state_dict(_tensors(path))
    except (*DAMAGE, UserError) as error:
        raise BundleError(f"{path}: its weights are damaged ({reason(error)})", AGAIN) from None
    return Bundle(model.to(device).eval(), header)
