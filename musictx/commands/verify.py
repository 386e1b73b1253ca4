"""musictx verify: read a store again: fingerprint, offsets, ids, music."""

from dataclasses import dataclass
from pathlib import Path

from omegaconf import MISSING

from musictx.config.command import Command
from musictx.data.store import Store, verify_split
from musictx.errors import StoreError
from musictx.setting import setting


@dataclass
class VerifyConfig:
    """musictx verify: read a store again and check its fingerprint, offsets, ids and music."""

    store: str = setting(MISSING, "the folder of a token store")


def verify(config: VerifyConfig) -> None:
    """Raises StoreError for a store that is not as it was written, or that is empty."""
    store = Store(Path(config.store))
    if not store.manifest.splits:
        raise StoreError(f"{config.store} has no splits", "prepare the data again")
    lines = [verify_split(store, name) for name in store.manifest.splits if store.manifest.splits[name].pieces]
    print("\n".join([*lines, f"{config.store} is sound"]))


COMMAND = Command("verify", verify, VerifyConfig)
