"""Where tensors live: asked for by name, refused when it is not there."""

import torch

from musictx.errors import ConfigError


def check_device(device: str) -> str:
    """The device, if this machine has it. Raises ConfigError otherwise."""
    if device == "cpu":
        return device
    if device != "cuda":
        raise ConfigError(f"device={device}: choose cpu or cuda")
    if not torch.cuda.is_available():
        raise ConfigError("device=cuda, but this machine has no CUDA device: use device=cpu")
    return device
