"""Players of bundles: ONNX Runtime for our decoders and encoder-decoders on a CPU, else PyTorch."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from musictx.errors import BundleError, ConfigError
from musictx.generate.requests import Own, Sampling
from musictx.model.header import BundleHeader, read_header
from musictx.model.onnx.graph import WEIGHTS
from musictx.model.onnx.player import OnnxSourcePlayer, open_player, open_source_player
from musictx.model.onnx.settings import SOURCE_KIND, can_play, can_play_source
from musictx.model.own import check_parts, maker
from musictx.model.settings import AUTO
from musictx.model.steps import Player, SourcePlayer
from musictx.objectives import NEXT_TOKEN, find_objective
from musictx.tokenizers import TOKENIZERS, Tokenizer, build_tokenizer

if TYPE_CHECKING:
    from musictx.model.protocol import LanguageModel

Playable: TypeAlias = "LanguageModel | Player | SourcePlayer"  # a model in PyTorch, or its player
INT8_REMARK = "weights: int8, which are faster; weights=float32 for the exact ones"


class Playing(NamedTuple):
    """The player of a model that continues music."""

    player: Player
    tokenizer: Tokenizer
    header: BundleHeader
    remarks: tuple[str, ...]


def open_playing(
    path: Path, *, device: str = "cpu", weights: str = AUTO, graph: bool = False, attention: str = AUTO
) -> Playing:
    """Opens a bundle that continues music. Raises BundleError for any other file, ConfigError for impossible
    settings."""
    header = read_header(path)
    if on_onnx(header, device, weights, graph, attention):
        check_task(header, path)
        player, tokenizer = open_player(path, onnx_weights(weights), header=header), tokenizer_of(path, header)
        return Playing(player, tokenizer, header, (str(player), *[INT8_REMARK] * (weights == AUTO)))
    from musictx.generate.open_bundle import open_bundle, torch_player  # PyTorch

    opened = open_bundle(path, device, attention)
    pytorch_player, remarks = torch_player(opened.model, weights, graph, device)
    return Playing(pytorch_player, opened.tokenizer, header, remarks)


class Accompanying(NamedTuple):
    """The player of a model that accompanies a melody."""

    player: SourcePlayer
    tokenizer: Tokenizer
    header: BundleHeader
    remarks: tuple[str, ...]


def open_accompanying(
    path: Path, bundle: object, *, device: str = "cpu", weights: str = AUTO, attention: str = AUTO
) -> Accompanying:
    """Opens a bundle that accompanies, called `bundle`. Raises as `open_playing`."""
    header = read_header(path)
    check_accompanies(header, bundle)
    if on_onnx(header, device, weights, attention=attention, able=can_play_source):
        player, tokenizer = open_source_player(path, onnx_weights(weights), header=header), tokenizer_of(path, header)
        return Accompanying(player, tokenizer, header, (str(player), *[INT8_REMARK] * (weights == AUTO)))
    from musictx.generate.open_bundle import open_bundle, torch_source_player  # PyTorch

    opened = open_bundle(path, device, attention, continues=False)
    pytorch_player, remarks = torch_source_player(opened.model, weights, device)
    return Accompanying(pytorch_player, opened.tokenizer, header, remarks)


def player_of(model: Playable, device: str = "cpu") -> Player:
    """The player of a model that continues music."""
    if isinstance(model, Player):
        return model
    from musictx.model.torch_steps import TorchPlayer

    pytorch_model: Any = model
    return TorchPlayer(pytorch_model, device)


def source_player_of(model: Playable, device: str = "cpu") -> SourcePlayer:
    """The player of a model that accompanies a melody."""
    if isinstance(model, OnnxSourcePlayer):
        return model
    from musictx.model.torch_steps import TorchSourcePlayer

    pytorch_model: Any = model
    return TorchSourcePlayer(pytorch_model, device)


def onnx_weights(weights: str) -> str:
    """The weights for ONNX Runtime; int8 was faster on every CPU that was tried."""
    return "int8" if weights == AUTO else weights


def on_onnx(
    header: BundleHeader,
    device: str,
    weights: str,
    graph: bool = False,
    attention: str = AUTO,
    able: Callable[[BundleHeader], bool] = can_play,
) -> bool:
    """Whether ONNX Runtime plays a bundle; `able` tests its kind."""
    return able(header) and device == "cpu" and not graph and attention == AUTO and weights in (AUTO, *WEIGHTS)


def tokenizer_of(path: Path, header: BundleHeader) -> Tokenizer:
    """A bundle's tokenizer. Raises BundleError for tokens that this version does not have."""
    check_parts(path, header, TOKENIZERS)
    tokenizer = build_tokenizer(header.tokenizer, header.tokenizer_state, header.added)
    if tokenizer.vocab.without_added.fingerprint != header.vocab_fingerprint:
        raise BundleError(
            f"{path} was trained on {header.tokenizer} tokens {header.vocab_fingerprint}, this version makes "
            f"{tokenizer.vocab.without_added.fingerprint}",
            f"use {maker(header)}",
        )
    if header.model["vocab_size"] != tokenizer.vocab.size:
        raise BundleError(
            f"{path} is damaged: its model has {header.model['vocab_size']} tokens, its tokenizer "
            f"{tokenizer.vocab.size}",
            "copy or train it again",
        )
    return tokenizer


def check_task(header: BundleHeader | None, bundle: object) -> None:
    """Raises BundleError for a model that was not trained to continue music."""
    task = header.objective.get("name", NEXT_TOKEN) if header is not None else NEXT_TOKEN
    if ":" not in task and not objective_of(task, bundle).continues:
        raise BundleError(f"{bundle} was trained for objective {task}, and cannot continue music", "give another")


def check_goes_on(model: Playable, header: BundleHeader | None) -> None:
    """Raises BundleError for a model that cannot continue music."""
    if isinstance(model, Player):
        check_task(header, "this model")
    elif isinstance(model, OnnxSourcePlayer):
        what = f"this model: {SOURCE_KIND} models take source and ids, and cannot continue music"
        raise BundleError(what, "give another")
    else:
        from musictx.generate.open_bundle import check_continues  # PyTorch

        check_continues(model, header, "this model")


def objective_of(task: str, bundle: object) -> type[Any]:
    """The class of a bundle's objective. Raises BundleError for one that is not in musictx."""
    try:
        return find_objective(task)
    except ConfigError:
        what = f"{bundle} was trained for objective {task}, which this musictx does not have"
        raise BundleError(what, "give another") from None


def check_accompanies(header: BundleHeader | None, bundle: object, model: object = None) -> None:
    """Raises BundleError for a model that was not trained to accompany."""
    task = header.objective.get("name", NEXT_TOKEN) if header is not None else "voices"
    if not _takes_source(header, model) or task != "voices":
        raise BundleError(
            f"{bundle} was trained for objective {task}, and accompanies no melody",
            "give bundle=harmoniser, or one that was trained with objective=voices",
        )


def _takes_source(header: BundleHeader | None, model: object) -> bool:
    if header is not None and (can_play(header) or can_play_source(header)):
        return can_play_source(header)
    if isinstance(model, OnnxSourcePlayer):
        return True
    from musictx.model.build import KINDS, SOURCE, inputs_of  # PyTorch

    if header is None:
        return inputs_of(model) == SOURCE
    return any(kind == header.model.get("kind") and row.inputs == SOURCE for kind, row in KINDS.items())


def own_settings(sampling: Sampling, own: Own) -> str:
    """A remark on the settings that come from the bundle, `own`; "" for none."""
    whole = sampling.suited(own)
    remarks = [
        f"sampler.{name}={'null' if value is None else f'{value:g}'}"
        for name, value in own.items()
        if getattr(whole, name) == value != getattr(sampling, name) and (value is not None or name == "top_p")
    ]
    return f"{' '.join(remarks)}, as its bundle says" if remarks else ""


def check_device(device: str) -> str:
    """The device. Raises ConfigError for one that this machine lacks."""
    if device == "cpu":
        return device
    if device != "cuda":
        raise ConfigError("device", got=device, allowed="cpu or cuda")
    import torch

    if not torch.cuda.is_available():
        raise ConfigError("device", got=device, why="this machine has no CUDA device", allowed="cpu")
    return device
