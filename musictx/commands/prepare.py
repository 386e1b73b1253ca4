"""musictx prepare WHAT: a token store of MIDI files, of scores, or of a corpus: maestro, jsb, pop909, chorales."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from musictx.config.app import settings
from musictx.config.command import Command
from musictx.config.prepare import (
    PrepareChoralesConfig,
    PrepareFolderConfig,
    PrepareJsbConfig,
    PrepareMaestroConfig,
    PreparePop909Config,
    PrepareScoresConfig,
)
from musictx.data.corpora.chorales import prepare_chorales
from musictx.data.corpora.folder import prepare_folder, prepare_scores
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.corpora.maestro import prepare_maestro
from musictx.data.corpora.pop909 import prepare_pop909
from musictx.data.prepare import print_summary
from musictx.data.store import Manifest, Store
from musictx.errors import UserError
from musictx.setting import about, find_setting

MIDI = {"tokenizer": "performance", "filters": "none"}
CORPORA: dict[str, tuple[Callable[[Any], Manifest], type[Any], dict[str, str]]] = {
    "folder": (prepare_folder, PrepareFolderConfig, MIDI),
    "scores": (prepare_scores, PrepareScoresConfig, {}),
    "maestro": (prepare_maestro, PrepareMaestroConfig, MIDI),
    "jsb": (prepare_jsb, PrepareJsbConfig, {}),
    "pop909": (prepare_pop909, PreparePop909Config, MIDI),
    "chorales": (prepare_chorales, PrepareChoralesConfig, {}),
}
HELP = """\
musictx prepare: MIDI files, scores, or a corpus of the literature, as a token store.

usage: musictx prepare CORPUS [PATH] KEY=VALUE …      musictx prepare CORPUS --help      shows every setting

  musictx prepare folder my_midi_files out=my_store
  musictx prepare scores my_scores out=my_scores_store
"""


def prepare(corpus: str, /, *words: str, **values: Any) -> Store:
    """`musictx prepare` from Python: `prepare("folder", "filters=piano", path="my_midi_files", out="my_store")`.

    `corpus` is `folder` or a corpus, `words` are settings as the command takes them, `values` the same as Python has
    them. Returns the store.

    Raises:
        UserError: as the command does, in one line.
    """
    return run(check_corpus(corpus), settings(f"prepare_{corpus}", *words, **values))


def run(corpus: str, config: Any) -> Store:
    print_summary(Path(config.out), CORPORA[corpus][0](config))
    return Store(Path(config.out))


def check_corpus(corpus: str) -> str:
    """The corpus. Raises UserError for an unknown one."""
    if corpus not in CORPORA:
        raise UserError(f"prepare {corpus}", f"give one of {', '.join(CORPORA)}; musictx prepare explains each")
    return corpus


def command(corpus: str) -> Command:
    """`musictx prepare CORPUS`, and the script of that name in data_prep/. Raises UserError."""
    _, schema, groups = CORPORA[check_corpus(corpus)]
    main = "path" if find_setting(schema, "path") else ""
    return Command(f"prepare_{corpus}", partial(run, corpus), schema, groups, main)


def overview() -> str:
    """A sentence for each corpus."""
    rows = [f"  {name:<10} {about(schema).partition(': ')[2]}" for name, (_, schema, _) in CORPORA.items()]
    return "\n".join([HELP, *rows])
