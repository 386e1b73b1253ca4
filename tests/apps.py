"""Every command as Hydra composes it, by name."""

from musictx.cli import names
from musictx.commands.bench import WHAT
from musictx.commands.prepare import CORPORA
from musictx.config.command import find

APPS = [
    *(name for name in names() if name not in ("prepare", "bench")),
    *(f"prepare_{corpus}" for corpus in CORPORA),
    *(f"bench_{what}" for what in WHAT),
]
SCHEMAS = {name: find(name).schema for name in APPS}
