"""Opens what `bundle=` says, and prints what a person should know of it."""

from musictx.generate.open_bundle import Opened, open_bundle
from musictx.model.packaged import bundle_path


def open_and_print(bundle: str, device: str = "cpu", attention: str = "auto", continues: bool = True) -> Opened:
    """Opens a name or a path; prints its corpus and licence."""
    opened = open_bundle(bundle_path(bundle), device, attention, continues)
    print(f"{bundle}: {opened.header.origin}")
    return opened
