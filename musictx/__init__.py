"""Language models of symbolic music.

    import musictx

    model = musictx.load("chorale")
    for music in model.continue_midi("seed.mid", variations=3, seconds=20):
        music.write(f"{music.name}.mid")

Nothing else is imported before one of these names is used: to import PyTorch takes seconds.
"""

from musictx.threads import set_thread_policy

set_thread_policy()  # before PyTorch is imported

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest of this

PLACES = {  # in the order of the reference
    "load": "musictx.generate.load",
    "Model": "musictx.generate.model",
    "Music": "musictx.generate.result",
    "Score": "musictx.music.score",
    "read_midi": "musictx.music.read",
    "write_midi": "musictx.music.write",
    "Rules": "musictx.tokenizers.rules",
    "Control": "musictx.generate.control",
    "UserError": "musictx.errors",
    "prepare": "musictx.commands.prepare",
    "train": "musictx.commands.train",
    "evaluate": "musictx.commands.evaluate",
}
__all__ = [*PLACES, "__version__"]

if TYPE_CHECKING:
    from musictx.commands.evaluate import evaluate as evaluate
    from musictx.commands.prepare import prepare as prepare
    from musictx.commands.train import train as train
    from musictx.errors import UserError as UserError
    from musictx.generate.control import Control as Control
    from musictx.generate.load import load as load
    from musictx.generate.model import Model as Model
    from musictx.generate.result import Music as Music
    from musictx.music.read import read_midi as read_midi
    from musictx.music.score import Score as Score
    from musictx.music.write import write_midi as write_midi
    from musictx.tokenizers.rules import Rules as Rules

    __version__: str
else:

    def __getattr__(name):
        from importlib import import_module, metadata

        if name == "__version__":
            return metadata.version("musictx")
        if name not in PLACES:
            raise AttributeError(f"module 'musictx' has no attribute {name!r}")
        return getattr(import_module(PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
