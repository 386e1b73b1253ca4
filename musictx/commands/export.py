"""musictx export: write a model as an ONNX file, for programs without PyTorch."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from omegaconf import MISSING

from musictx.commands import print_table
from musictx.config.command import Command
from musictx.errors import ConfigError
from musictx.files import check_new, check_suffix, only_new
from musictx.model.onnx.graph import WEIGHTS
from musictx.model.onnx.position import FORMS
from musictx.model.onnx.settings import can_play_source
from musictx.setting import setting
from musictx.terminal import say


@dataclass
class ExportConfig:
    """musictx export: write a Transformer that reads from left to right as an ONNX file. Its graph takes ids, and the
    keys and values of those before. It gives logits after the last id, and the new keys and values."""

    bundle: str = setting(MISSING, "piano, chorale, a file that `musictx train` made or a run's folder", path=True)
    out: str = setting(MISSING, "the file, .onnx", path=True)
    weights: str = setting("float32", "float32 is exact; int8 makes a file of a third, for ONNX Runtime")
    overwrite: bool = setting(False, "replace an existing file")


def export(config: ExportConfig) -> None:
    """Raises ConfigError for a model that has no such graph, and BundleError."""
    out = Path(config.out)
    check_suffix("out", config.out, [".onnx"])
    if config.weights not in WEIGHTS:
        raise ConfigError("weights", got=config.weights, allowed=" or ".join(WEIGHTS))
    check_new(config.overwrite, out)
    from musictx.commands import open_and_print  # PyTorch and ONNX, after the words were checked
    from musictx.model.build import KINDS, can, kind_of
    from musictx.model.onnx.file import write_onnx

    model, _, header = open_and_print(config.bundle, continues=False)
    why, allowed = "", ""
    if not can(model, "onnx"):
        graphs = "two graphs, which musictx plays and does not export" if can_play_source(header) else "no graph"
        why = f"{kind_of(model)} models have {graphs}"
        allowed = f"a {' or '.join(name for name, kind in KINDS.items() if kind.onnx)}"
    elif (position := getattr(model.config, "position", "")) not in FORMS:
        why, allowed = f"position={position} has no graph", f"a model with one of {', '.join(FORMS)}"
    if why:
        raise ConfigError("bundle", got=config.bundle, why=why, allowed=allowed)
    full_header = replace(header, model={"kind": kind_of(model), **asdict(model.config)})
    tensors = {name: x.detach().numpy() for name, x in model.state_dict().items()}
    out.parent.mkdir(parents=True, exist_ok=True)
    graph = write_onnx(out, model.config, asdict(full_header), tensors, config.weights)
    rows = [
        (way, each.name, each.dtype, " ".join(map(str, each.shape)))
        for way, values in (("in", graph.inputs), ("out", graph.outputs))
        for each in values
    ]
    print_table(["", "name", "type", "shape"], rows)
    say(f"{out}: {out.stat().st_size / 1e6:.1f} MB, weights in {config.weights}, licence {header.licence}")


COMMAND = Command("export", only_new(export), ExportConfig, main="bundle")
