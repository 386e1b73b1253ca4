"""The `musictx` command: a screenful of help, and one Hydra app per subcommand."""

import sys
from importlib import import_module

from musictx.app import guarded
from musictx.errors import UserError

COMMANDS = {
    "train": "musictx.train",
    "generate": "musictx.generate",
    "evaluate": "musictx.evaluate",
    "bench tokens": "musictx.bench.tokens",
    "demo": "musictx.demo",
}

HELP = """\
musictx: language models of symbolic music. MIDI -> tokens -> relative Transformer -> continued MIDI

usage: musictx COMMAND [KEY=VALUE ...]      musictx COMMAND --help      shows every setting

  train          fit a model to a token store, keep the best as a bundle
  generate       continue a seed MIDI file
  evaluate       nats per token of a split, beside uniform and unigram baselines
  bench tokens   files and events per second of reading, encoding, decoding
  demo           all of it on Bach chorales, in about four minutes on two cores

examples
  musictx train experiment=chorales trainer.max_epochs=5 model.d_model=128
  musictx train data=performances data.path=my_store logger=wandb
  musictx generate bundle=outputs/demo/model.safetensors seed_midi=my.mid out=continued variations=3
  musictx evaluate bundle=outputs/demo/model.safetensors data=chorales

Token stores are made by scripts, from a checkout of the project:
  python data_prep/folder.py path=my_midi_files out=my_store tokenizer=performance
  python data_prep/chorales.py        python data_prep/maestro.py path=maestro-v3.0.0-midi.zip
"""


def main() -> None:
    """Hands the words after the subcommand to its Hydra app."""
    args = sys.argv[1:]
    if not args or args[0] in ("-h", "--help", "help"):
        print(HELP, end="")
        return
    for words in (2, 1):
        name = " ".join(args[:words])
        if name in COMMANDS:
            sys.argv = [f"musictx {name}", *args[words:]]
            import_module(COMMANDS[name]).main()
            return
    guarded(lambda: _unknown(args[0]))


def _unknown(word: str) -> None:
    raise UserError(f"{word!r} is not a command: choose one of {', '.join(COMMANDS)}; musictx --help explains")


if __name__ == "__main__":
    main()
