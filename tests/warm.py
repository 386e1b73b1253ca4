"""A process that has imported everything once and forks for every command: a tenth of the time of a new one.

A line of JSON comes in: what to run, where, with which environment and files for its output; a line with the exit
status goes out. A child shares with the others what Python settles at its start: the seed of hashes, the threads of
libraries. A test of chance of that kind asks for a fresh process (`run` in conftest.py). What only an interpreter's end
does, such as closing a file that was left open, is seen by tests/test_wheel.py.
"""

import atexit
import gc
import json
import os
import runpy
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

gc.disable()  # until all is imported, of which nothing is garbage
ended = []  # the status of a process that comes to its end


@atexit.register  # before all others, so that it is called last
def leave():
    """To free all that was imported takes a second, in a child with a copy of every page of it."""
    if ended:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(ended[0])


# ruff: noqa: E402 - what is imported from here on has its own exit handlers
import numpy as np

from musictx.cli import names
from musictx.config.app import compose


def serve():
    """Returns in the child, with its order; never in the parent."""
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            return order
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    ended.append(0)
    sys.exit()


# what Hydra 1.3.2 does not have yet is left out
LATE = "hydra._internal.logging_config", "matplotlib.backends.backend_svg", "rich._emoji_codes"
for name in (*(f"musictx.commands.{name}" for name in names()), "musictx.training.fit", *filter(find_spec, LATE)):
    import_module(name)
compose("train", ["trainer.lr=1e-3"])  # Hydra looks for its plugins and learns its grammar once

gc.collect()
gc.enable()
gc.freeze()  # or every collection in a child would copy those pages too
gc.set_threshold(20_000)  # as in conftest.py
order = serve()
np.random.seed()  # noqa: NPY002  # the state that all children would share
os.chdir(order["cwd"])
os.environ.clear()
os.environ.update(order["env"])
for stream, path in enumerate((os.devnull, order["out"], order["err"])):
    os.dup2(os.open(path, os.O_RDWR), stream)
program, *sys.argv[1:] = order["args"]
sys.path[0] = ""
try:
    if program.startswith("musictx"):
        if "." in program:
            sys.modules.pop(program)  # runpy warns of a module that is there already
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.argv[0], sys.path[0] = program, str(Path(program).parent)
        runpy.run_path(program, run_name="__main__")
    ended.append(0)
except SystemExit as end:
    ended.append(end.code if isinstance(end.code, int) else int(end.code is not None))
    raise
except Exception:
    ended.append(1)
    raise
