"""The `musictx` command: a screenful of help, and one Hydra app per subcommand."""

import os
import signal
import sys
from importlib import import_module
from types import FrameType
from typing import Any

COMMANDS = {
    "prepare": "musictx.commands.prepare:main",
    "train": "musictx.commands.train:main",
    "runs": "musictx.commands.runs:main",
    "generate": "musictx.commands.generate:main",
    "accompany": "musictx.commands.accompany:main",
    "jam": "musictx.commands.jam:main",
    "evaluate": "musictx.commands.evaluate:main",
    "compare": "musictx.commands.compare:main",
    "inspect": "musictx.commands.inspect:inspect_main",
    "verify": "musictx.commands.inspect:verify_main",
    "attend": "musictx.commands.attend:main",
    "render": "musictx.commands.render:main",
    "listen": "musictx.commands.listen:main",
    "serve": "musictx.commands.serve:main",
    "bench tokens": "musictx.bench.tokens:main",
    "bench prepare": "musictx.bench.prepare:main",
    "bench attention": "musictx.bench.attention:main",
    "bench positions": "musictx.bench.positions:main",
    "bench sampling": "musictx.bench.sampling:main",
    "bench training": "musictx.bench.training:main",
    "check": "musictx.commands.check:main",
    "demo": "musictx.commands.demo:main",
}

HELP = """\
musictx: language models of symbolic music. MIDI -> tokens -> relative Transformer -> continued MIDI

usage: musictx COMMAND [KEY=VALUE ...]      musictx COMMAND --help      shows every setting      musictx --version

  prepare WHAT   make a token store of your MIDI files, or of a corpus: folder, maestro, jsb, pop909, chorales
  train          fit a model to a token store, keep the best as a bundle
  runs           list the training runs below a folder: state, steps, NLL
  generate       continue a seed MIDI file
  accompany      write alto, tenor and bass below a melody, or the rest of a song; the melody stays
  jam            continue what you play, whenever you pause: live, through MIDI ports
  evaluate       measure nats per token of a split, beside uniform and unigram baselines
  compare        measure several models on one store: a report with a table and pictures
  inspect        show a MIDI file's tracks and tokens, a store's contents and histograms, what a bundle says of itself
  verify         read a store again: fingerprint, offsets, ids, music
  attend         draw arcs over a piano roll to the notes that the model looks at; what each head does
  render         make a MIDI file a piano roll (.png .svg .pdf), film (.gif .mp4) or sound (.wav .flac)
  listen         make a blind listening sheet: one HTML page on which people tell models from composers
  serve          open a page in the browser: drop music, continue it, hear it, see what the model looks at
  bench WHAT     measure time and memory of tokens, prepare, attention, positions, sampling or training
  check          prove kernels, training and sampling on your machine, device=cpu or cuda: a report to paste
  demo           do all of it on Bach chorales, in about four minutes on two cores

examples
  musictx prepare folder path=my_midi_files out=my_store
  musictx train experiment=chorales trainer.max_epochs=5 model.d_model=128
  musictx generate seed_midi=elise out=continued                       the piano model inside musictx, and a seed
  musictx generate bundle=outputs/demo/model.safetensors seed_midi=my.mid out=continued variations=3
  musictx accompany melody=my_tune.mid out=harmonised variations=3 png=true
  musictx inspect midi=my.mid       musictx inspect store=my_store json=true   musictx verify store=my_store
"""


def main() -> None:
    """Passes the words after the subcommand to its Hydra app."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)
    run = _command(sys.argv[1:])
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, before)
    run()


def _leave(number: int, frame: FrameType | None) -> None:
    """Ends the process at once: libraries that are just being imported make a traceback of Ctrl-C."""
    os.write(2, b"interrupted\n")
    os._exit(130)


def _command(args: list[str]) -> Any:
    """What the words ask for, imported."""
    if not args or args[0] in ("-h", "--help", "help"):
        return lambda: print(HELP, end="")
    if args[0] == "--version":
        version = import_module("musictx").__version__
        return lambda: print(f"musictx {version}")
    for words in (2, 1):
        name = " ".join(args[:words])
        if name in COMMANDS:
            sys.argv = [f"musictx {name}", *args[words:]]
            module, _, function = COMMANDS[name].partition(":")
            return getattr(import_module(module), function)
    in_one_line = import_module("musictx.config.app").in_one_line
    return lambda: in_one_line(lambda: _unknown(args[0]))


def _unknown(word: str) -> None:
    from musictx.errors import UserError  # imports here take place while Ctrl-C ends the process

    if longer := [name for name in COMMANDS if name.startswith(f"{word} ")]:
        raise UserError(f"musictx {word} needs one more word: {', '.join(longer)}; musictx --help explains")
    raise UserError(f"{word!r} is not a command: choose one of {', '.join(COMMANDS)}; musictx --help explains")


if __name__ == "__main__":
    main()
