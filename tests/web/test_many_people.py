"""Several people at one page, whose music takes long."""

import json
from importlib.util import find_spec
from threading import Thread
from typing import Any, cast

import numpy as np
import pytest
from serving import Served, Visitor, as_input, hosted, upload

from musictx.generate.open_bundle import open_bundle
from musictx.music.score import Score
from musictx.music.write import write_midi
from musictx.web import stage
from musictx.web.studio import Studio

pytestmark = pytest.mark.skipif(find_spec("gradio") is None, reason="needs the extra web: pip install 'musictx[web]'")


def music(folder, n):
    onset_s = np.arange(n) * 0.02
    write_midi(Score(onset_s, onset_s + 0.01, 40 + np.arange(n) % 40, np.full(n, 80)), folder / "music.mid")
    return (folder / "music.mid").read_bytes()


def drop(server, visitor, data):
    path = json.loads(upload(server, data)[1])[0]
    return visitor.all_done(visitor.join("upload", [None, as_input(path)]))[-1]["success"]


def test_nobody_waits_for_others_whose_music_takes_long(world, tmp_path):
    """Also where many of these wait for one another."""
    (tmp_path / "made").mkdir()
    studio = Studio({"piano": open_bundle(world.bundle)}, tmp_path / "made")
    with hosted(studio, tmp_path / "uploads") as address:
        server = Served(address, cast(Any, None), tmp_path)  # the page is in this process
        people = [Visitor(server) for _ in range(4)]
        with stage.LONG:
            long = music(tmp_path, stage.LONG_NOTES + 1)
            waiting = [Thread(target=drop, args=(server, each, long)) for each in people[1:]]
            for thread in waiting:
                thread.start()
            while sum(people for _, people in stage.SHOWING.values()) < 2:
                waiting[0].join(0.01)
            assert drop(server, people[0], music(tmp_path, 20))
            assert all(thread.is_alive() for thread in waiting)
        for thread in waiting:
            thread.join()
