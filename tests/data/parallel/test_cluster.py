import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from conftest import ROOT, ok, write_tunes

from musictx.config.prepare import PrepareFolderConfig, WorkConfig
from musictx.config.train import TokenizerConfig
from musictx.data.corpora.folder import prepare_folder
from musictx.data.parallel import cluster
from musictx.data.parallel.journal import Journal
from musictx.data.source import open_source
from musictx.errors import ConfigError, StoreError, UserError

# what a reader does with some files: planted in every Python process by way of sitecustomize
MISCHIEF = """
import os, signal, time
import musictx.music.read as read
honest = read.read_tracks
def read_tracks(data, *args, **options):
    if b"SEGFAULT" in data: os.kill(os.getpid(), signal.SIGSEGV)
    if b"HANG" in data: time.sleep(1000)
    if b"EAT" in data: bytearray(2**32)
    time.sleep(float(os.environ.get("SLOW", 0)))
    return honest(data, *args, **options)
read.read_tracks = read_tracks
"""


@pytest.fixture
def planted(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(MISCHIEF)
    return {"PYTHONPATH": f"{tmp_path / 'site'}{os.pathsep}{ROOT}"}


@pytest.fixture
def tunes(tmp_path):
    write_tunes(tmp_path / "midi", 80)
    return tmp_path


def content(store):
    return {path.name: path.read_bytes() for path in sorted(store.iterdir())}


def settings(path, out, **changes):
    return PrepareFolderConfig(path=str(path), out=str(out), tokenizer=TokenizerConfig("performance"), **changes)


ARGS = ["data_prep/folder.py", "path=midi"]


def test_files_that_kill_hang_or_eat_are_named_and_the_run_continues(tunes, planted):
    for word in ("SEGFAULT", "HANG", "EAT"):
        (tunes / "midi" / f"{word.lower()}.mid").write_text(word)
    done = ok([*ARGS, "out=store", "file_seconds=2", "workers=2"], tunes, **planted)
    manifest = (tunes / "store" / "manifest.json").read_text()
    for expected in (
        '"segfault.mid",\n   "kills its reader: SIGSEGV"',
        '"hang.mid",\n   "takes too long: more than 2 s; file_seconds=… allows more"',
        '"eat.mid",\n   "needs too much memory: more than 1024 MB; memory_mb=… allows more"',
    ):
        assert expected in manifest
    assert "83 files in, 80 kept, 3 left out" in done.stdout
    assert "Traceback" not in done.stderr + done.stdout


def test_a_killed_run_continues_and_ends_with_the_same_bytes(tunes, planted):
    ok([*ARGS, "out=whole", "workers=1"], tunes)
    command = [sys.executable, str(ROOT / "data_prep/folder.py"), "path=midi", "out=cut", "workers=2"]
    running = subprocess.Popen(
        command, cwd=tunes, env=os.environ | planted | {"SLOW": "0.05"}, stderr=subprocess.DEVNULL
    )
    journal = tunes / ".cut.work"
    while not list(journal.glob("*.json")) and running.poll() is None:
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    assert running.wait() == -signal.SIGKILL
    assert not (tunes / "cut").exists()
    done = ok([*ARGS, "out=cut", "workers=2"], tunes)
    assert re.search("(32|64) of 80 files", done.stdout)
    assert content(tunes / "cut") == content(tunes / "whole")
    assert not journal.exists()


def test_where_no_file_is_music_nothing_stays(tmp_path):
    for name in ("a.mid", "b.mid"):
        (tmp_path / name).write_text("not music")
    with pytest.raises(StoreError, match="none of the 2 files"):
        prepare_folder(settings(tmp_path, tmp_path / "store", workers=1))
    assert not list(tmp_path.glob(".store*"))


def test_work_with_other_signatures_is_not_continued(tmp_path, monkeypatch, capsys):
    write_tunes(tmp_path / "midi", 2)
    config = settings(tmp_path / "midi", tmp_path / "store", workers=1)

    def going_on():
        with pytest.raises(StoreError, match="2 different pieces"):  # after all files are read
            prepare_folder(config)
        return "resuming an earlier run: 2 of 2 files are done" in capsys.readouterr().out

    with monkeypatch.context() as older:
        older.setattr("musictx.data.parallel.cluster.rules", lambda: "older")
        assert [going_on(), going_on()] == [False, True]
    assert [going_on(), going_on()] == [False, True]


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
        yield client.scheduler.address
    for process in processes:
        process.kill()
        process.wait()


def test_any_dask_cluster_gives_the_same_bytes(tunes, dask):
    ok([*ARGS, "out=here", "workers=1"], tunes)
    ok([*ARGS, "out=there", f"scheduler={dask}"], tunes)
    assert content(tunes / "there") == content(tunes / "here")


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("scheduler", "tcp://127.0.0.1:9", "not answer"),
        ("scheduler", "nonsense://x", "Dask address"),
        ("workers", 0, "1 to "),
        ("file_seconds", -1, "from 0.1"),
        ("file_seconds", 1e-9, "from 0.1"),
        ("memory_mb", 0, "from 1 "),
        ("file_mb", float("nan"), "from 0.001"),
    ],
)
def test_what_cannot_work(tmp_path, monkeypatch, field, value, why):
    monkeypatch.setattr(cluster, "ANSWER_S", 0.5)
    write_tunes(tmp_path / "midi", 1)
    with pytest.raises(ConfigError, match=why) as refused:
        prepare_folder(settings(tmp_path / "midi", tmp_path / "out", **{field: value}))
    assert (refused.value.field, refused.value.got) == (field, pytest.approx(value, nan_ok=True))
    assert [p.name for p in tmp_path.iterdir()] == ["midi"]


def test_a_store_below_the_files_it_is_made_of(tunes):
    ok(["data_prep/folder.py", "path=.", "out=store", "workers=1"], tunes)
    first = content(tunes / "store")
    assert [name for name, _ in json.loads(first["manifest.json"])["dropped"]] == []
    ok(["data_prep/folder.py", "path=.", "out=store", "workers=1", "overwrite=true"], tunes)
    assert content(tunes / "store") == first


def test_odd_names_of_folders_and_files_in_the_way(tunes):
    odd = os.fsencode(tunes) + b"/mi\xff"
    os.rename(os.fsencode(tunes / "midi"), odd)
    (tunes / "pickle.py").write_text("raise SystemExit('not this one')")
    command: list[str | bytes]
    command = [sys.executable, str(ROOT / "data_prep/folder.py"), b"path=mi\xff", "out=store", "workers=1"]
    done = subprocess.run(command, cwd=tunes, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"name": "mi\\\\xff"' in (tunes / "store" / "manifest.json").read_text()


def test_a_cluster_that_loses_its_workers_ends_the_run_in_one_line(tunes, dask, monkeypatch):
    from distributed import Client

    monkeypatch.setattr(cluster, "ANSWER_S", 1)
    monkeypatch.setattr(cluster, "PATIENCE_S", 2)
    with Client(dask, set_as_default=False) as client:
        pids = client.run(os.getpid).values()
    with open_source(tunes / "midi") as items:
        journal = Journal(tunes / "store", "r")
        with journal.locked(), pytest.raises(UserError, match="no workers left"):
            cluster.encode_all(items, partial(_then_kill, pids=list(pids)), journal, WorkConfig(scheduler=dask))


def _then_kill(data, pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    return "gone"
