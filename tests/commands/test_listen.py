"""musictx listen, through the real command; the page is read back."""

import io
import json
import re
import shutil
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from conftest import ok

from musictx.commands import listen as command
from musictx.config.app import settings
from musictx.config.fields import setting_keys
from musictx.errors import UserError
from musictx.viz.sheet import loudness

SMALL = ["split=train", "pieces=2", "seed_seconds=2", "length_seconds=1"]


class Page:
    """Its players in order, (label, sound), its questions with their answers, and its key."""

    def __init__(self, path):
        self.text = path.read_text("utf-8")
        players = re.findall(r'<audio controls aria-label="([^"]+)" src="data:audio/mpeg;base64,([^"]+)">', self.text)
        self.players = [(label, b64decode(sound, validate=True)) for label, sound in players]
        assert len(players) == self.text.count("<audio")
        self.questions: dict[str, list[str]] = {}
        for name, value in re.findall(r'type="radio" name="([^"]+)" value="([^"]+)"', self.text):
            self.questions.setdefault(name, []).append(value)
        (key,) = re.findall(r'<script id="key"[^>]*>([^<]+)<', self.text)
        self.key = json.loads(b64decode(key))


def listen(world, cwd, *args):
    copy = shutil.copy(world.hymn_bundle, cwd / "other.safetensors")
    bundles = f"bundles=[{world.hymn_bundle.parent},{copy}]"
    words = ["musictx", "listen", bundles, "names=[mine,'théirs']", f"store={world.hymn_store}", *SMALL, *args]
    return ok(words, cwd).stdout


@pytest.fixture(scope="module")
def page(world, tmp_path_factory):
    cwd = tmp_path_factory.mktemp("listen")
    out = listen(world, cwd, "out=sheets/a.html")
    assert re.search(r"sheets/a.html: 2 pieces with 3 continuations each, 0\.\d MB; open it in a browser", out)
    assert "split=train: " in out
    assert re.findall(r"^(\w+): trained on hymns, licence not stated$", out, re.M) == ["mine", "théirs"]
    return Page(cwd / "sheets" / "a.html")


def test_every_piece_has_its_beginning_and_its_letters(page):
    parts = ("the beginning", "continuation A", "continuation B", "continuation C")
    assert [label for label, _ in page.players] == [f"Piece {n}, {part}" for n in (1, 2) for part in parts]
    rating = ["1", "2", "3", "4", "5"]
    one = {"rating-1-A": rating, "rating-1-B": rating, "rating-1-C": rating, "choice-1": ["A", "B", "C"]}
    assert list(page.questions) == [name.replace("-1", f"-{n}") for n in (1, 2) for name in one]
    assert {name: page.questions[name] for name in one} == one


def test_nothing_but_music_differs_between_the_letters(page):
    for n in range(2):
        files = [sound for _, sound in page.players[4 * n + 1 : 4 * n + 4]]
        assert len({len(file) for file in files}) == 1
        heard = [soundfile.read(io.BytesIO(file))[0] for file in files]
        assert {sound.shape for sound in heard} == {(44_100,)}
        assert np.ptp([loudness(sound) for sound in heard]) < 0.2
        assert all(np.abs(sound).max() > 0.05 for sound in heard)
    said, _, rest = re.sub(r"(?<=base64,)[^\"]*", "", page.text).partition('<script id="key"')
    assert "<audio" not in rest
    assert not re.search(r"mine|théirs|safetensors|https?:", said)
    sections = re.findall(r'<section aria-labelledby="piece-(\d)">(.*?)</section>', said, re.DOTALL)
    assert [n for n, _ in sections] == ["1", "2"]
    assert len({re.sub(rf"(?<=[- ]){n}\b(?=[-,\" ])(?!, badly)", "#", text) for n, text in sections}) == 1


def test_the_key_says_the_true_order(page):
    """Both bundles are one and the same model: what two letters share is theirs, and the third is the piece's own."""
    orders = page.key["sources"]
    assert all(sorted(order) == ["mine", "the composer", "théirs"] for order in orders)
    for n, order in enumerate(orders):
        files = [sound for _, sound in page.players[4 * n + 1 : 4 * n + 4]]
        (own,) = [k for k in range(3) if files.count(files[k]) == 1]
        assert order[own] == "the composer"
    assert page.key["composer"] == "the composer"
    assert "train split of " in page.key["about"]
    assert "random_seed=0, temperature=1.0, top_p=0.98, guard=True." in page.key["about"]


def test_the_same_seed_is_the_same_file_and_another_is_other_music(world, page, tmp_path):
    listen(world, tmp_path, "out=a.html")
    assert (tmp_path / "a.html").read_text("utf-8") == page.text
    words = ["out=a.html", "overwrite=true", "random_seed=1", "rules.voice_order=true", "pieces=1"]
    listen(world, tmp_path, *words)
    other = Page(tmp_path / "a.html")
    assert other.key["about"].endswith("random_seed=1, temperature=1.0, top_p=0.98, guard=True, voice_order=True.")
    assert other.players[0] == page.players[0]  # the same beginning
    assert {sound for _, sound in other.players[1:]} != {sound for _, sound in page.players[1:4]}


def test_the_key_says_which_models_have_settings_of_their_bundles():
    config = settings("listen", "bundles=[x]", "store=x", "sampler.top_p=null", "sampler.seed_guidance=null")
    plain, guided = config.sampler, replace(config.sampler, seed_guidance=1.25)
    assert command.drawn_with(config, {"a": plain, "b": plain}) == "random_seed=0, temperature=1.0, guard=True"
    said = command.drawn_with(config, {"a": plain, "b": guided})
    assert said == "random_seed=0, a: temperature=1.0, guard=True; b: temperature=1.0, guard=True, seed_guidance=1.25"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["bundles=[nothing]"], "bundles=nothing: no model.safetensors there"),
        (["store={store}"], "chorale tokens"),
        (["pieces=0"], "pieces=0: give 1 or more"),
        (["pieces=9"], "in the train split last for seed_seconds=2, length_seconds=1 and 3 s more:"),
        (["length_seconds=0"], "length_seconds=0.0: give more than 0 and at most 86400"),
        (["seed_seconds=nan"], "seed_seconds=nan: give more than 0"),
        (["names=[a,b]"], "names=[a,b]: bundles= has 1 bundle:"),
        (["soundfont=none.sf2"], "soundfont=none.sf2: no such file: give a .sf2 file"),
        (["out=a.pdf"], "out=a.pdf: "),
        (["out=there.html"], "there.html exists already: give another out= or overwrite=true"),
        (["out=folder.html", "overwrite=true"], "out=folder.html: "),
    ],
)
def test_mistakes_are_said_before_anything_is_drawn(world, tmp_path, monkeypatch, words, text):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("musictx.commands.listen.continue_beginnings", lambda *_: pytest.fail("it was drawn"))
    (tmp_path / "there.html").write_text("a page")
    (tmp_path / "folder.html").mkdir()
    usual = [f"bundles=[{world.hymn_bundle}]", f"store={world.hymn_store}", "out=a.html", *SMALL]
    words = [word.format(store=world.store) for word in words]
    with pytest.raises(UserError) as said:
        command.listen(settings("listen", *usual, *words))
    assert text in (line := said.value.line(setting_keys("listen")))
    assert "\n" not in line
    assert {p.name for p in tmp_path.iterdir()} == {"there.html", "folder.html"}
