"""The wheel with the piano model or, from a checkout, without: MUSICTX_WITHOUT_PIANO=1 python -m build --wheel

The weights of the piano model are under CC BY-NC-SA 4.0, those of the score model under CC BY 4.0, all else under MIT:
a wheel without the piano model is free for any use, in its metadata too.
"""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

WEIGHTS = "musictx/bundles/piano.safetensors"
WITHOUT = os.environ.get("MUSICTX_WITHOUT_PIANO", "") not in ("", "0")


class Licence(MetadataHookInterface):
    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        metadata["license"] = "MIT AND CC-BY-4.0" if WITHOUT else "MIT AND CC-BY-4.0 AND CC-BY-NC-SA-4.0"
        files = ["LICENSE", "LICENSE-score-weights"]
        metadata["license-files"] = files if WITHOUT else [*files, "LICENSE-piano-weights"]


class Weights(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if WITHOUT and self.target_name == "sdist":  # it would hold the weights, and say that it does not
            raise SystemExit("error: MUSICTX_WITHOUT_PIANO=1 is for a wheel: python -m build --wheel")
        if WITHOUT or version == "editable" or self.target_name == "sdist":
            return
        if not Path(self.root, WEIGHTS).is_file():
            raise SystemExit(f"error: {WEIGHTS} is not here: MUSICTX_WITHOUT_PIANO=1 makes the wheel without it")
        build_data["force_include"][str(Path(self.root, WEIGHTS))] = WEIGHTS
