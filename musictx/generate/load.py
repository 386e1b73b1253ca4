"""`musictx.load`: opens a bundle as a model for Python."""

from pathlib import Path

from musictx.generate.model import Model
from musictx.generate.open_player import check_device, on_onnx, open_accompanying, open_playing
from musictx.model.header import read_header
from musictx.model.onnx.settings import can_play_source
from musictx.model.packaged import bundle_path
from musictx.model.settings import AUTO


def load(
    bundle: str | Path, *, device: str = "cpu", weights: str = AUTO, graph: bool = False, attention: str = AUTO
) -> Model:
    """Opens a model to continue, fill or accompany music.

    `bundle` is "piano", "chorale", "score" or "harmoniser", a file that `musictx train` made, or the folder of a run.
    `weights` are "float32", "bfloat16", "int8", or "auto": int8 where it is faster. `graph` takes steps of one shape in
    a CUDA graph. `attention` is a kernel, as in `musictx train attention.impl=`.

    Raises:
        BundleError: for a file that is missing, damaged or no bundle.
        ConfigError: for a setting that does not exist, or that this machine cannot meet.
    """
    path, device = bundle_path(str(bundle)), check_device(device)
    header = read_header(path)
    if on_onnx(header, device, weights, graph, attention):
        player, tokenizer, header, _ = open_playing(path, weights=weights)
        return Model(player, tokenizer, header)
    if on_onnx(header, device, weights, graph, attention, can_play_source):
        source_player, tokenizer, header, _ = open_accompanying(path, bundle, weights=weights)
        return Model(source_player, tokenizer, header)
    from musictx.generate.open_bundle import fast_model, open_bundle  # PyTorch

    opened = open_bundle(path, device, attention, continues=False)
    return Model(fast_model(opened.model, weights, graph, device), opened.tokenizer, opened.header, device)
