"""What `make quick` leaves out: a test ends as skipped when it would start a process, train, interpret a kernel of
Triton, or read a whole corpus."""

import multiprocessing.process
import os
import subprocess
import zipfile
from contextlib import contextmanager
from importlib.util import find_spec
from threading import current_thread, main_thread

import pytest

PROCESSES = (subprocess.Popen, "__init__"), (multiprocessing.process.BaseProcess, "start"), (os, "fork")


def leave_out(what):
    def instead(*_, **__):
        if current_thread() is not main_thread():  # where a skip would end the thread, and the test wait for it
            raise RuntimeError(f"it {what} in a thread: name in {__file__} what it begins with")
        pytest.skip(f"not quick: it {what}")

    return instead


def small(opened):
    """Opens archives of at most a megabyte."""

    def instead(self, file, *args, **kwargs):
        if isinstance(file, str | os.PathLike) and os.path.exists(file) and os.path.getsize(file) > 1e6:
            leave_out("reads a whole corpus")()
        opened(self, file, *args, **kwargs)

    return instead


@contextmanager
def only_quick():
    """A rule without a list: it covers tests that are yet to be written. Where a fixture of many tests does such a
    thing, all of them are skipped at once."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in PROCESSES:
            patch.setattr(owner, name, leave_out("starts a process"))
        patch.setattr("musictx.data.parallel.pool.ThreadPool", leave_out("starts a process"))  # in its threads
        if find_spec("playwright"):  # whose loop would go on and be in the way of others
            patch.setattr("playwright.sync_api.PlaywrightContextManager.__enter__", leave_out("starts a process"))
        for step in ("lightning.Trainer.fit", "torch.optim.Optimizer.zero_grad"):
            patch.setattr(step, leave_out("trains"))
        if find_spec("triton"):
            patch.setattr("triton.runtime.interpreter.GridExecutor.__call__", leave_out("interprets a kernel"))
        patch.setattr(zipfile.ZipFile, "__init__", small(zipfile.ZipFile.__init__))
        yield
