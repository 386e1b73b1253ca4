"""Every command as Hydra composes it, by name."""

from musictx.cli import names
from musictx.commands.prepare import CORPORA
from musictx.config.command import find

APPS = [
    *(name for name in names() if name != "prepare"),
    *(f"prepare_{corpus}" for corpus in CORPORA),
]
SCHEMAS = {name: find(name).schema for name in APPS}
