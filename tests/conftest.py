"""A tiny trained world, made once by the real scripts and commands: a folder of MIDI, stores, bundles."""

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import quick
from filelock import FileLock
from hypothesis import HealthCheck, settings

from musictx.music.grid import grid_to_score
from musictx.music.score import Score
from musictx.music.write import write_midi

# a shell starts its background jobs deaf to Ctrl-C, which tests send, and their children inherit that
signal.signal(signal.SIGINT, signal.default_int_handler)

# how many examples a test draws where it names no number; one that is slow on a busy machine is no mistake
settings.register_profile("usual", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=30)
settings.register_profile("quick", settings.get_profile("usual"), max_examples=10)
settings.register_profile("nightly", settings.get_profile("usual"), max_examples=100, derandomize=False)
settings.load_profile("usual")

ROOT = Path(__file__).parents[1]
BENCHMARKS = ROOT / "benchmarks"
TINY = ["model.d_model=16", "model.n_layers=1", "model.n_heads=2", "model.d_ff=32", "model.max_distance=16"]
QUICK = ["data.length=32", "trainer.batch_size=4", "trainer.max_steps=4", "trainer.validate_every=2"]
SELDOM = 20_000  # objects from one look for garbage to the next; Python's own number is 700
AT_START = {"PYTHONPATH", "PYTHONHASHSEED"}  # what a process reads when it starts: no warm one will do


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="leave out tests that start a process or train: quick.py")


def pytest_configure(config):
    if config.option.quick:
        settings.load_profile("quick")


@pytest.fixture(scope="session", autouse=True)
def only_quick(request):
    with quick.only_quick() if request.config.option.quick else nullcontext():
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    gc.disable()  # nothing of what is imported is garbage
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items):
    """The longest tests come first, each with another process: at the end, the others would wait for them. xdist cuts
    the list into as many equal parts as there are processes."""
    pages = [item for item in items if item.originalname == "test_commands_of_a_page_run_in_order"]
    items[:] = [item for item in items if item not in pages]
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    part = -(-(len(items) + len(pages)) // processes)
    for k, page in enumerate(reversed(pages)):  # the last has the most commands
        items.insert(k % processes * part, page)


def pytest_collection_finish():
    """What was imported and collected stays: to look for garbage in it, again and again, took a tenth of the time. To
    look for it among what a test makes, as often as Python does, took a twentieth."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(SELDOM)


def pytest_unconfigure():
    gc.unfreeze()  # or libraries report at the end that it is still there


class Warm:
    """One process of `warm.py`, started with the first command."""

    process: subprocess.Popen[str] | None = None

    @classmethod
    def run(cls, args: list[str], cwd: Path, env: dict[str, str], out: Path, err: Path) -> int:
        if cls.process is None:
            command = [sys.executable, str(ROOT / "tests" / "warm.py")]
            cls.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert cls.process.stdin is not None
            atexit.register(cls.process.stdin.close)
        stdin, stdout = cls.process.stdin, cls.process.stdout
        assert stdin is not None
        assert stdout is not None
        order = {"args": args, "cwd": str(cwd), "env": env, "out": str(out), "err": str(err)}
        stdin.write(json.dumps(order) + "\n")
        stdin.flush()
        answer = stdout.readline()
        assert answer, f"warm.py has ended with status {cls.process.wait()}"
        return int(answer)


def plan_of(target: str) -> str:
    """What `make` would run for a target, also when `make test` is what runs the tests."""
    command = ["make", "--no-print-directory", "-n", "-B", target]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def run(args: Sequence[object], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A command as a person would type it: `musictx …`, `python -m musictx.… …` or `python data_prep/….py …`."""
    program, *others = map(str, args)
    program = program if program.startswith("musictx") else str(ROOT / program)
    words = [program, *others]
    whole = os.environ | {"COLUMNS": "200", "WANDB_SILENT": "true"} | env
    if AT_START.intersection(env):
        fresh = [sys.executable, *(["-m"] if program.startswith("musictx") else []), *words]
        return subprocess.run(fresh, cwd=cwd, capture_output=True, text=True, check=False, env=whole)
    with TemporaryDirectory() as folder:
        out, err = (Path(folder) / name for name in ("out", "err"))
        out.touch()
        err.touch()
        status = Warm.run(words, cwd, whole, out, err)
        return subprocess.CompletedProcess(words, status, out.read_text("utf-8"), err.read_text("utf-8"))


def ok(args: Sequence[object], cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    done = run(args, cwd, **env)
    assert done.returncode == 0, done.stderr
    return done


def refused(args: Sequence[object], cwd: Path, **env: str) -> str:
    """The one line that a mistake gets; nothing else may be printed, and the status is 2."""
    done = run(args, cwd, **env)
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def write_tunes(folder: Path, count: int) -> None:
    """Seeded little piano pieces, every one different."""
    rng = np.random.default_rng(7)
    for k in range(count):
        onset = np.cumsum(rng.choice([0.0, 0.125, 0.25, 0.5], 60))
        pitch = 60 + rng.choice([0, 2, 4, 5, 7, 9, 11], 60) + 12 * rng.integers(-1, 2, 60)
        score = Score(onset, onset + rng.choice([0.2, 0.4, 0.9], 60), pitch, rng.integers(40, 110, 60))
        write_midi(score, folder / f"sub{k % 2}" / f"tune {k}.mid")


def write_hymns(folder: Path, count: int) -> None:
    rng = np.random.default_rng(8)
    for k in range(count):
        chords = np.array([72, 67, 64, 48]) + rng.integers(-3, 4, (12, 4))
        write_midi(grid_to_score(np.repeat(chords, 4, axis=0).astype(np.int16)), folder / f"hymn{k}.mid")


@dataclass(frozen=True)
class World:
    """Paths; `store` and `bundle` speak performance, the hymns chorale."""

    midi: Path
    store: Path
    bundle: Path
    hymns: Path
    hymn_store: Path
    hymn_bundle: Path

    @property
    def seed(self) -> Path:
        return self.midi / "sub0" / "tune 0.mid"

    @property
    def hymn(self) -> Path:
        return self.hymns / "hymn0.mid"


@pytest.fixture(scope="session")
def once(tmp_path_factory):
    """`once(name, make)` is a folder that all processes of the tests share: the first that needs it makes it, and any
    other waits. Nothing may be written there later."""
    own = tmp_path_factory.getbasetemp()
    of_all = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def once(name: str, make: Callable[[Path], object]) -> Path:
        place = of_all / name  # a file that says where the folder is
        with FileLock(f"{place}.lock"):
            if not place.exists():  # nor does it where another process has failed
                folder = tmp_path_factory.mktemp(name)
                make(folder)
                place.write_text(str(folder))
        return Path(place.read_text())

    return once


def make_world(root: Path) -> None:
    write_tunes(root / "midi", 8)
    write_hymns(root / "hymns", 5)
    ok(["data_prep/folder.py", "path=midi", "out=store", "workers=2"], root)
    ok(["data_prep/folder.py", "path=hymns", "out=hymn_store", "tokenizer=chorale", "workers=1"], root)
    common = [*TINY, *QUICK, "trainer.progress_bar=false"]
    ok(["musictx", "train", "data.path=store", "out=run", *common], root)
    chorale = ["data=chorales", "tokenizer=chorale", "data.path=hymn_store", "out=hymn_run"]
    ok(["musictx", "train", *chorale, *common], root)


@pytest.fixture(scope="session")
def world(once):
    root, model = once("world", make_world), "model.safetensors"
    return World(
        root / "midi",
        root / "store",
        root / "run" / model,
        root / "hymns",
        root / "hymn_store",
        root / "hymn_run" / model,
    )


@pytest.fixture
def no_curves(monkeypatch):
    """No picture of the losses of a training in this process, which takes longer than all of its steps."""
    monkeypatch.setattr("musictx.training.fit.plot_losses", lambda *_: None)


@contextmanager
def signalled(at, number=signal.SIGTERM):
    """A run gets a signal when it begins its batch number `at`."""
    from musictx.training.module import LanguageModelTraining

    begin, handler = LanguageModelTraining.on_train_batch_start, signal.getsignal(signal.SIGINT)

    def send(self, batch, batch_idx):
        begin(self, batch, batch_idx)
        if self.trainer.fit_loop.total_batch_idx == at:
            os.kill(os.getpid(), number)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(LanguageModelTraining, "on_train_batch_start", send)
        yield
    signal.signal(signal.SIGINT, handler)  # Lightning leaves it ignored


@pytest.fixture(scope="session")
def voices(tmp_path_factory):
    """The bundle of a harmoniser that has learned nothing."""
    from untrained import write_harmoniser  # PyTorch is imported where it is needed: one file of tests starts sooner

    return write_harmoniser(tmp_path_factory.mktemp("untrained") / "voices.safetensors")


@pytest.fixture(scope="session")
def filling(world, once):
    """The bundle of a model that fills: it speaks chorale, and hears the whole of a short hymn."""
    chorale = ["data=chorales", "tokenizer=chorale", f"data.path={world.hymn_store}", "objective=infill"]
    quick = [*TINY, *QUICK, "data.length=192", "trainer.max_steps=2", "trainer.progress_bar=false"]
    words = ["musictx", "train", *chorale, "out=run", *quick]
    return once("filling", lambda root: ok(words, root)) / "run" / "model.safetensors"
