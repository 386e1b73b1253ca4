import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from conftest import ROOT, write_tunes

from musictx.config.prepare import PrepareFolderConfig, WorkConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.parallel import cluster
from musictx.data.parallel.journal import CHUNK_FILES, Journal
from musictx.data.source import open_source
from musictx.errors import UserError


@pytest.fixture
def tunes(tmp_path):
    write_tunes(tmp_path / "midi", CHUNK_FILES + 8)  # two chunks
    return tmp_path


def prepared(path, out, **changes):
    """The bytes of the store that is made."""
    config = PrepareFolderConfig(path=str(path), out=str(out), tokenizer=TokenizerConfig("performance"), **changes)
    prepare_folder(config)
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


def test_an_interrupted_run_continues_and_ends_with_the_same_bytes(tunes, monkeypatch, capsys):
    whole = prepared(tunes / "midi", tunes / "whole", workers=1)
    write = Journal.write

    def write_and_stop(*args):
        write(*args)
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Journal, "write", write_and_stop)
        with pytest.raises(KeyboardInterrupt):
            prepared(tunes / "midi", tunes / "cut", workers=2)
    assert not (tunes / "cut").exists()
    assert prepared(tunes / "midi", tunes / "cut", workers=2) == whole
    assert re.search("(32|8) of 40 files", capsys.readouterr().out)
    assert sorted(path.name for path in tunes.iterdir()) == ["cut", "midi", "whole"]


def test_a_store_below_the_files_it_is_made_of(tmp_path):
    write_tunes(tmp_path, 4)
    first = prepared(tmp_path, tmp_path / "store", workers=1)
    assert b'"dropped": []' in first["manifest.json"]
    assert prepared(tmp_path, tmp_path / "store", workers=1, overwrite=True) == first


def test_odd_names_of_folders_and_files_in_the_way(tmp_path):
    write_tunes(tmp_path / "midi", 4)
    os.rename(tmp_path / "midi", os.fsencode(tmp_path) + b"/mi\xff")
    (tmp_path / "pickle.py").write_text("raise SystemExit('not this one')")
    command: list[str | bytes]
    command = [sys.executable, str(ROOT / "data_prep/folder.py"), b"path=mi\xff", "out=store", "workers=1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"name": "mi\\\\xff"' in (tmp_path / "store" / "manifest.json").read_text()


@pytest.fixture
def dask(tmp_path):
    """A real scheduler with two workers on the loopback interface."""
    processes = []

    def start(*args):
        command = [sys.executable, "-m", f"distributed.cli.dask_{args[0]}", *args[1:]]
        env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}  # this file, too
        quiet = subprocess.DEVNULL
        processes.append(subprocess.Popen(command, cwd=tmp_path, env=env, stdout=quiet, stderr=quiet))

    address_file = tmp_path / "scheduler.json"
    start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(address_file))
    for _ in range(2):
        start("worker", "--scheduler-file", str(address_file), "--nthreads", "1", "--no-dashboard", "--no-nanny")
    deadline = time.monotonic() + 60
    while not address_file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    from distributed import Client

    with Client(scheduler_file=str(address_file), set_as_default=False) as client:
        client.wait_for_workers(2, timeout=60)
        yield client
    for process in processes:
        process.kill()
        process.wait()


def test_any_dask_cluster_gives_the_same_bytes_and_without_workers_ends_in_one_line(tunes, dask, monkeypatch):
    address = dask.scheduler.address
    here = prepared(tunes / "midi", tunes / "here", workers=1)
    assert prepared(tunes / "midi", tunes / "there", scheduler=address) == here
    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    monkeypatch.setattr(cluster, "PATIENCE_S", 2)
    then_kill = partial(_then_kill, pids=list(dask.run(os.getpid).values()))
    with open_source(tunes / "midi") as items:
        journal = Journal(tunes / "store", "r")
        with journal.locked(), pytest.raises(UserError, match="no workers"):
            cluster.encode_all(items, then_kill, journal, WorkConfig(scheduler=address))


def _then_kill(data, pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return "gone"
