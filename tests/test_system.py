"""Where a system has no locks, limits and counts of memory, music is still read, learned, made and heard. What a
processor can do, and how many threads are polite."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from conftest import QUICK, ROOT, TINY, ok, write_tunes
from torch import nn

from musictx import system, threads
from musictx.config.train import TrainerConfig
from musictx.data.parallel.journal import Journal
from musictx.errors import ConfigError
from musictx.model.transformer import Transformer, TransformerConfig
from musictx.system import few_threads, processor
from musictx.threads import SPINS, quota, set_thread_policy, usable_cores
from musictx.training.precision import check_precision, emulation

HIDE = """
import builtins, os, signal, sys
before = builtins.__import__
def own(name, globals=None, *rest, **how):
    if name in ("fcntl", "resource") and (globals or {}).get("__name__", "").startswith("musictx"):
        raise ImportError(f"no module named {name}")
    return before(name, globals, *rest, **how)
builtins.__import__ = own
def no_proc(event, args):
    if event == "open" and str(args[0]).startswith("/proc"):
        if sys._getframe(1).f_globals.get("__name__", "").startswith("musictx"):
            raise FileNotFoundError(args[0])
sys.addaudithook(no_proc)
for module, name in ((os, "sched_getaffinity"), (signal, "setitimer")):
    if hasattr(module, name):
        delattr(module, name)
"""


# one process does all: most of its time goes into what it imports
DO = """
import sys
from pathlib import Path
import musictx.web.server
import musictx.system as system
from musictx.cli import main
from musictx.config.web import Limits
from musictx.web.uploads import Uploads, read_upload
for line in Path("commands").read_text().splitlines():
    sys.argv = line.split()
    main()
    print("---")
uploads = Uploads(Path("uploads"), Limits())
path = uploads.keep("tune.mid", Path("midi/sub0/tune 0.mid").read_bytes())
music = read_upload(uploads.take(path), path.name, Limits())
print(music.name, len(music.score), system.peak_gib(), system.LIMITS, system.processor().cores > 0)
"""
COMMANDS = f"""\
musictx prepare folder path=midi out=store test_fraction=0
musictx train data.path=store out=run {" ".join([*TINY, *QUICK])}
musictx generate seed_midi=chorale bundle=run/model.safetensors length_seconds=1 wav=true out=o
musictx jam input=elise bundle=run/model.safetensors reply_seconds=1 output=session.mid
"""


def test_a_store_is_made_and_learned_music_is_made_and_heard_and_the_page_reads_an_upload(tmp_path):
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden/sitecustomize.py").write_text(HIDE)
    (tmp_path / "do.py").write_text(DO)
    (tmp_path / "commands").write_text(COMMANDS)
    write_tunes(tmp_path / "midi", 2)
    done = ok([tmp_path / "do.py"], tmp_path, PYTHONPATH=f"{tmp_path / 'hidden'}:{ROOT}")
    prepared, trained, _, _, read = done.stdout.split("---\n")
    assert prepared.count("nothing keeps a bad file from taking too much time or memory") == 1
    assert "2 files in, 2 kept, 0 left out" in prepared
    assert "cannot be locked" in trained
    assert {path.suffix for path in (tmp_path / "o").iterdir()} == {".mid", ".wav"}
    assert (tmp_path / "session.mid").stat().st_size > 100
    said, *facts = read.splitlines()
    assert "nothing keeps a bad file from taking too much time or memory" in said, done.stderr
    assert facts == ["tune 60 None False True"], done.stderr


def test_a_preparation_that_cannot_be_locked_says_so_and_continues(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("musictx.system.fcntl", None)
    with Journal(tmp_path / "store", "recipe").lock():
        assert "cannot be locked" in capsys.readouterr().out


WEAKER = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}
ASK = """
import os, sys, musictx
print("torch" in sys.modules, os.environ["OMP_WAIT_POLICY"])
from musictx.system import processor
print(processor().bfloat16, processor().sets)
"""


def test_the_variables_of_a_lesser_processor_count_and_threads_sleep_before_pytorch_is_there():
    clean = {name: value for name, value in os.environ.items() if name not in SPINS}
    done = subprocess.run([sys.executable, "-c", ASK], env=clean | WEAKER, capture_output=True, text=True, check=True)
    first, second = done.stdout.splitlines()
    assert first == "False passive"
    assert second.split()[0] == "False"
    assert "bfloat16" not in second
    assert "AVX512" not in second


def test_bfloat16_is_in_hardware_only_where_pytorch_has_its_kernels():
    here = processor()
    assert 1 <= here.cores <= usable_cores()
    if os.environ.get("ONEDNN_MAX_CPU_ISA", "") == "AVX2":
        assert not here.bfloat16
    cells = nn.LSTM(8, 8).bfloat16()
    if here.bfloat16:
        assert cells(torch.ones(1, 1, 8, dtype=torch.bfloat16))[0].isfinite().all()


@pytest.mark.parametrize("name", sorted(SPINS))
def test_a_person_decides_how_threads_wait(monkeypatch, name):
    for each in SPINS:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, "active")
    set_thread_policy()
    assert {each: os.environ[each] for each in SPINS & os.environ.keys()} == {name: "active"}


def test_a_share_of_a_large_machine_is_no_more_threads_than_that_share(monkeypatch):
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    monkeypatch.setattr(threads, "visible_cores", lambda: 64)
    for share, cores, number in ((1.5, 2, "2"), (0.2, 1, "1"), (float("inf"), 64, None), (128.0, 64, None)):
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        monkeypatch.setattr(threads, "quota", lambda share=share: share)
        set_thread_policy()
        assert usable_cores() == cores
        assert os.environ.get("OMP_NUM_THREADS") == number
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setattr(threads, "quota", lambda: 2.0)
    set_thread_policy()
    assert os.environ["OMP_NUM_THREADS"] == "7"  # a person has said so


def test_emulated_numbers_cost_a_line_and_cells_without_a_kernel_are_refused(monkeypatch):
    trainer = replace(TrainerConfig(accelerator="cpu", precision="bf16-mixed"))
    for bfloat16 in (True, False):
        able = processor()._replace(bfloat16=bfloat16)
        monkeypatch.setattr("musictx.training.precision.processor", lambda able=able: able)
        monkeypatch.setattr("musictx.model.cells.EMULATES", not bfloat16)
        assert bool(emulation(trainer)) is not bfloat16
        assert not emulation(replace(trainer, precision="32-true"))
        assert not emulation(replace(trainer, accelerator="cuda"))
    check_precision(trainer, nn.LSTM(4, 4))
    exact = replace(trainer, precision="bf16-true")
    check_precision(exact, nn.Linear(4, 4))
    with pytest.raises(ConfigError, match="precision=bf16-true: "):
        check_precision(exact, nn.LSTM(4, 4))


def test_threads_are_counted_without_pytorch():
    code = (
        "import sys; from musictx.system import cores, few_threads, threads_for;"
        "print(1 <= threads_for(500) <= cores(), threads_for(31)); few_threads(8).__enter__();"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "True 1\nFalse\n", done.stderr


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (16, 1), (31, 1), (48, 3), (500, 4)])
def test_few_rows_take_one_thread_and_give_the_others_back(monkeypatch, rows, threads):
    monkeypatch.setattr(system, "cores", lambda: 8)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with few_threads(rows):
            assert torch.get_num_threads() == threads
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("place", "files", "share"),
    [
        ("0::/", {"cpu.max": "150000 100000"}, 1.5),
        ("0::/", {"cpu.max": "max 100000"}, math.inf),
        ("0::/a/b", {"a/cpu.max": "200000 100000", "a/b/cpu.max": "max 100000"}, 2.0),  # the group above has a limit
        ("3:cpu,cpuacct:/x", {"cpu/x/cpu.cfs_quota_us": "50000", "cpu/x/cpu.cfs_period_us": "100000"}, 0.5),
        ("3:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, math.inf),
        ("4:memory:/m", {"cpu.max": "50000 100000"}, math.inf),
        ("0::/gone", {}, math.inf),
    ],
)
def test_a_container_says_how_many_cores_it_has(monkeypatch, tmp_path, place, files, share):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    (tmp_path / "here").write_text(place + "\n")
    monkeypatch.setattr(threads, "GROUPS", str(tmp_path))
    assert quota(str(tmp_path / "here")) == share
    assert quota(str(tmp_path / "nothing")) == math.inf


def test_a_compiler_sees_one_graph_of_a_model_under_autocast():
    config = TransformerConfig(vocab_size=11, d_model=16, n_layers=2, n_heads=2, d_ff=32, position="rope")
    model, ids = Transformer(config).eval(), torch.randint(11, (2, 9))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch._dynamo.explain(model)(ids).graph_break_count == 0
