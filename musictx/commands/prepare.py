"""musictx prepare: MIDI files, or a corpus of the literature, as a token store."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from musictx.config import SCHEMAS
from musictx.config.app import hydra_app, in_one_line, settings
from musictx.config.fields import in_keys
from musictx.data.corpora.chorales import prepare_chorales
from musictx.data.corpora.folder import prepare_folder
from musictx.data.corpora.jsb import prepare_jsb
from musictx.data.corpora.maestro import prepare_maestro
from musictx.data.corpora.pop909 import prepare_pop909
from musictx.data.prepare import print_summary
from musictx.data.store import Manifest, Store
from musictx.errors import ConfigError
from musictx.setting import about

CORPORA: dict[str, Callable[[Any], Manifest]] = {
    "folder": prepare_folder,
    "maestro": prepare_maestro,
    "jsb": prepare_jsb,
    "pop909": prepare_pop909,
    "chorales": prepare_chorales,
}
HELP = """\
musictx prepare: MIDI files, or a corpus of the literature, as a token store.

usage: musictx prepare CORPUS KEY=VALUE …      musictx prepare CORPUS --help      shows every setting

  musictx prepare folder path=my_midi_files out=my_store
"""


def prepare(corpus: str, /, *words: str, **values: Any) -> Store:
    """`musictx prepare` from Python: `prepare("folder", "filters=piano", path="my_midi_files", out="my_store")`.

    `corpus` is what is prepared, `words` are settings as the command takes them, `values` the same as Python has them.
    Returns the store.

    Raises:
        UserError: as the command does, in one line.
    """
    with in_keys(f"prepare_{known(corpus)}"):
        return run(corpus, settings(f"prepare_{corpus}", *words, **values))


def run(corpus: str, config: Any) -> Store:
    print_summary(Path(config.out), CORPORA[corpus](config))
    return Store(Path(config.out))


def known(corpus: str) -> str:
    """Raises ConfigError for a corpus that does not exist."""
    if corpus not in CORPORA:
        raise ConfigError(f"prepare {corpus}: choose one of {', '.join(CORPORA)}; musictx prepare explains each")
    return corpus


def command(corpus: str) -> Callable[[], None]:
    """`musictx prepare CORPUS`, and the script of that name in data_prep/."""
    return hydra_app(f"prepare_{corpus}", partial(run, corpus))


def overview() -> str:
    """A sentence for each corpus."""
    rows = [f"  {name:<10} {about(SCHEMAS[f'prepare_{name}']).partition(': ')[2]}" for name in CORPORA]
    return "\n".join([HELP, *rows])


def main() -> None:
    corpus, *words = sys.argv[1:] or ["--help"]
    if corpus in ("-h", "--help"):
        print(overview())
        return
    in_one_line(lambda: known(corpus))
    sys.argv = [f"musictx prepare {corpus}", *words]
    command(corpus)()


if __name__ == "__main__":
    main()
