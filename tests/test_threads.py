"""Several calls from Python at a time, in the threads of one process."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from conftest import QUICK, TINY, write_tunes
from safetensors.numpy import load_file

import musictx
from musictx.config.app import settings

TOGETHER = 4


def at_once(calls):
    """What each call returns, all of them begun at one moment."""
    barrier = Barrier(len(calls))

    def begun(call):
        barrier.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        return [each.result() for each in [threads.submit(begun, call) for call in calls]]


def test_settings_are_those_of_the_own_call():
    def asked(n):
        return [settings("train", f"model.d_model={8 * n + 8}", out=f"{n}").model.d_model for _ in range(5)]

    found = at_once([lambda n=n: asked(n) for n in range(TOGETHER)])
    assert found == [[8 * n + 8] * 5 for n in range(TOGETHER)]


def test_a_preparation_that_ends_leaves_the_readers_of_another_alone(tmp_path):
    write_tunes(tmp_path / "few", 4)
    write_tunes(tmp_path / "many", 60)

    def prepared(name, n):
        return musictx.prepare("folder", path=tmp_path / name, out=tmp_path / f"{name} {n}", workers=1).manifest

    found = at_once([lambda n=n, name=name: prepared(name, n) for n in range(2) for name in ("few", "many")])
    assert [manifest.dropped for manifest in found] == [[]] * 4
    assert [manifest.splits for manifest in found[:2]] == [manifest.splits for manifest in found[2:]]


def test_a_training_beside_others_is_the_training_alone(world, tmp_path, no_curves, capsys):
    words = [f"data.path={world.store}", "trainer.progress_bar=false", *TINY, *QUICK]

    def trained(seed, out):
        bundle = musictx.train(*words, random_seed=seed, out=tmp_path / out)
        assert bundle is not None
        return load_file(bundle)["embed.weight"]

    alone = trained(0, "alone")
    together = at_once([lambda n=n: trained(n, f"{n}") for n in range(2)])
    assert (together[0] == alone).all()
    assert (together[1] != alone).any()
    assert "this one begins when it ends" in capsys.readouterr().out


def test_scores_beside_others_are_the_scores_alone(world):
    def scored():
        return musictx.evaluate(bundle=world.bundle, data={"path": world.store}).per_token

    assert at_once([scored] * TOGETHER) == [scored()] * TOGETHER
