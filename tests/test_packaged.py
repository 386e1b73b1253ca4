"""The models inside the package: what is said of them, their names everywhere, and that they play."""

import json
import re
import sys
from hashlib import sha256

import pytest
import torch
from conftest import ROOT, ok, refused
from safetensors import safe_open

from musictx.commands import open_and_print
from musictx.errors import BundleError
from musictx.generate.humanize import WEIGHTS
from musictx.generate.open_bundle import open_bundle
from musictx.generate.tune_chords import TABLE
from musictx.model.header import read_header
from musictx.model.packaged import FOLDER, NAMES, bundle_path, packaged_bundle
from musictx.model.tensors import tensors_hash
from musictx.music.grid import score_to_grid
from musictx.music.read import read_midi
from musictx.tokenizers.gap import knows_gaps

sys.path.insert(0, str(ROOT / "studies"))
import guidance

CHORALE_IS = "chorale: trained on JSB chorales, 16th grid, licence public domain"  # and what the words of that day were
PIANO_IS = "piano: trained on MAESTRO v3.0.0 and ASAP and POP909, licence CC BY-NC-SA 4.0 (POP909: MIT)"


def chosen(name, reason):
    """How the line begins that says which model plays where no bundle is given."""
    return f"no bundle= is given: the {name} model .* since {re.escape(reason)}"


PIANO_MUSIC = ("performance", "MAESTRO v3.0.0 and ASAP and POP909", "CC BY-NC-SA 4.0 (POP909: MIT)")
SCORES = ("score", "scores that are free for any use", "CC BY 4.0")
CHORALES = ("chorale", "JSB chorales, 16th grid", "public domain (the scores)")
RESULTS = ROOT / "studies" / "results"


def row_of(key):
    """The row of a figure."""
    (row,) = (row for row in json.loads((ROOT / "studies" / "results.json").read_text()) if row.get("key") == key)
    return row


def card_of(name):
    """What docs/results/models.md says of a model."""
    (card,) = re.findall(
        rf"^## The {name} .*?(?=^## |\Z)",
        (ROOT / "docs" / "results" / "models.md").read_text(),
        re.DOTALL | re.MULTILINE,
    )
    return card


@pytest.mark.parametrize(
    ("name", "known", "largest"),
    [
        ("chorale", CHORALES, 10e6),
        ("piano", PIANO_MUSIC, 24e6),
        ("score", SCORES, 16e6),
        ("harmoniser", CHORALES, 10e6),
    ],
)
def test_the_card_says_what_a_bundle_says_of_itself(name, known, largest):
    path, card = packaged_bundle(name), card_of(name)
    model, tokenizer, header = open_bundle(path, continues=False)
    parameters, size = sum(p.numel() for p in model.parameters()), path.stat().st_size
    assert f"{header.val_nll:.3f}" == f"{row_of(f'{name}-validation')['figure']:.3f}"
    said = (f"{name}-validation)", f"{parameters / 1e6:.1f} million parameters", f"{size / 1e6:.1f} MB")
    assert [text for text in said if text not in card] == []
    assert size <= largest
    assert (tokenizer.name, header.corpus, header.licence) == known
    assert knows_gaps(tokenizer.vocab) is (name in NAMES)
    with safe_open(path, "pt") as file:
        kinds = {name: file.get_tensor(name).dtype for name in file.keys()}  # noqa: SIM118 - not a dict
    tables = {f"keyboard.{name}" for name in ("key", "act", "wait_us")}
    assert {kind for name, kind in kinds.items() if name not in tables} == {torch.float16}


@pytest.mark.parametrize(
    ("name", "segment", "counts"),
    [
        ("chorale", None, [(76, 73_632), (77, 75_600)]),
        ("piano", 2048, [(137, 2_592_043), (177, 2_989_995)]),
        ("score", 1024, [(246, 608_711)]),  # its test split was not read
        ("harmoniser", None, [(76, None), (77, None)]),
    ],
)
def test_readme_and_card_say_what_evaluate_found_of_this_very_bundle(name, segment, counts):
    """Where another one lies: the script that made it writes both into its `--out`. `studies/report.py` writes the
    figures of their rows into the links of these keys."""
    path, card = packaged_bundle(name), card_of(name)
    for split, (pieces, tokens) in zip(("validation", "test"), counts, strict=False):
        found = json.loads((RESULTS / f"{name}-{split}.json").read_text())
        assert found["bundle_sha256"] == sha256(path.read_bytes()).hexdigest()
        assert (found["split"], found["pieces"], found.get("segment")) == (split, pieces, segment)
        assert tokens is None or found["tokens"] == tokens
        row = row_of(f"{name}-{split}")
        assert [row["figure"], row["low"], row["high"]] == pytest.approx(found["per_token"], abs=1e-6)
        page = "likelihood.md" if name == "score" else "../results.md"
        assert f"({page}#{name}-{split})" in card
    assert name in ("harmoniser", "score") or f"(docs/results.md#{name}-validation)" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize(("name", "file"), [("chorale", "chosen"), ("piano", "three")])
def test_a_bundle_keeps_as_close_to_seeds_as_validation_chose(name, file):
    printed = json.loads((RESULTS / "guidance" / f"{file}.json").read_text())[name]
    stores = [printed["validation"], *printed.get("beside", {}).values()]
    for store in stores:
        for row in store["rows"]:
            assert row["against"] == guidance.against(row["draws"], store["rows"][0]["draws"], store["composers"])
    chosen = guidance.choose(*(store["rows"] for store in stores))
    assert read_header(packaged_bundle(name)).seed_guidance == printed["chosen"] == chosen
    if name == "chorale":
        assert [row["strength"] for row in printed["test"]["rows"]] == [None, chosen]


def test_the_pianos_figures_are_of_these_tensors():
    found = [json.loads((RESULTS / f"piano-{split}.json").read_text()) for split in ("validation", "test")]
    found.append(json.loads((RESULTS / "alive.json").read_text())["piano, default"]["all"])
    found.append(json.loads((RESULTS / "guidance" / "three.json").read_text())["piano"])
    for each in found:
        assert each["tensors_sha256"] == tensors_hash(packaged_bundle("piano"))


def test_the_pianos_last_weights_are_those_that_the_hour_of_maestro_likes_best():
    rows = json.loads((RESULTS / "piano-shares.json").read_text())["rows"]
    best = min(rows, key=lambda row: row["hour"])
    assert read_header(packaged_bundle("piano")).notes["averaged"] == [1 - best["share"], best["share"]]
    assert row_of("piano-pop")["figure"] == pytest.approx(best["pop"], abs=1e-6)
    assert "(likelihood.md#piano-pop)" in card_of("piano")


def test_the_piano_bundle_says_whose_it_is():
    header = read_header(packaged_bundle("piano"))
    for said in ("Hawthorne et al., ", "ICLR 2019; Foscarin et al., ASAP", "Wang et al., POP909", "ISMIR 2020"):
        assert said in header.notes["citation"]
    assert header.notes["sampler"] == {"top_p": None, "min_p": 0.01}


@pytest.mark.parametrize(
    ("seed", "plays", "reason", "who"),
    [
        ("elise", "piano", "elise.mid is a performance, not a score", PIANO_IS),
        ("chorale", "chorale", "chorale.mid is four voices ", CHORALE_IS),
        ("null", "piano", "there is no seed", PIANO_IS),
    ],
)
def test_without_a_bundle_one_line_says_which_and_why(tmp_path, seed, plays, reason, who):
    printed = ok(["musictx", "generate", f"seed_midi={seed}", "out=o", "length_seconds=2.4"], tmp_path).stdout
    assert re.match(chosen(plays, reason), printed)
    assert printed.splitlines()[1].startswith(who)
    (made,) = (tmp_path / "o").iterdir()
    assert made.name == {"null": "new-1.mid"}.get(seed, f"{seed}-1.mid")
    own, guided = "sampler.top_p=null sampler.min_p=0.01", "sampler.seed_guidance="
    said = {"elise": f"{own} {guided}0.25", "chorale": f"{guided}1.25", "null": own}
    assert f"\n{said[seed]}, as its bundle says\n" in printed
    if seed == "chorale":
        assert len(score_to_grid(read_midi(made))) == 48  # two bars of seed and one more


def test_the_chorale_model_fills_gaps_on_the_grid(tmp_path):
    printed = ok(["musictx", "generate", "infill=chorale", "from_s=1.8", "to_s=3", "out=o"], tmp_path).stdout
    assert re.match(chosen("chorale", "chorale.mid is four voices "), printed)
    assert " of them new, from 1.80 to 3.00 s\n" in printed
    seed, made = (score_to_grid(read_midi(path)) for path in (FOLDER / "chorale.mid", tmp_path / "o" / "chorale-1.mid"))
    assert len(made) == len(seed) == 32
    for kept in (slice(0, 12), slice(20, 32)):
        assert [sorted(step) for step in made[kept].tolist()] == [sorted(step) for step in seed[kept].tolist()]


def test_the_piano_model_fills_gaps_in_all_other_music_and_between(tmp_path):
    printed = ok(["musictx", "generate", "infill=elise", "from_s=4", "to_s=5.5", "out=o"], tmp_path).stdout.splitlines()
    assert re.match(chosen("piano", "elise.mid is a performance, not a score"), printed[0])
    assert printed[1] == PIANO_IS
    assert printed[-1].endswith(" of them new, from 4.00 to 5.50 s")
    seed, made = read_midi(FOLDER / "elise.mid"), read_midi(tmp_path / "o" / "elise-1.mid")
    for beside in (lambda s: s.select(s.offset_s < 3.99), lambda s: s.select(s.onset_s > 5.51)):
        kept, was = beside(made), beside(seed)
        assert len(was) > 15
        assert kept.pitch.tolist() == was.pitch.tolist()
        assert kept.onset_s == pytest.approx(was.onset_s, abs=1e-3)
    inside = made.select((made.onset_s > 3.99) & (made.onset_s < 5.5))
    assert len(inside) > 1
    assert inside.pitch.tolist() != seed.select((seed.onset_s > 3.99) & (seed.onset_s < 5.5)).pitch.tolist()
    words = ["between=chorale,elise", "length_seconds=1", "out=o"]
    printed = ok(["musictx", "generate", *words], tmp_path).stdout.splitlines()  # one of two that is no chorale
    assert re.match(chosen("piano", "the model of scores cannot keep between=chorale,elise"), printed[0])
    assert printed[-1].endswith(" of them new, from 4.80 to 6.00 s")  # two beats are nearest to a second


def test_the_score_bundle_says_whose_it_is():
    said = read_header(packaged_bundle("score")).notes["citation"]
    for source in ("OpenScore Lieder", "Fryderyk Chopin Institute (CC BY 4.0)", "OpenEWLD", "Open Hymnal", "POP909"):
        assert source in said
    assert not re.search("maestro|asap", said, re.IGNORECASE)


@pytest.mark.parametrize(("table", "owner"), [(TABLE, "00sapo"), (WEIGHTS, "POP909")])
def test_small_weights_say_whose_they_are(table, owner):
    with safe_open(table, "np") as file:
        about = file.metadata()
    assert about["licence"].startswith("MIT")
    assert owner in about["citation"]


def test_a_name_is_known_to_every_command(world, tmp_path):
    looked = ok(["musictx", "attend", f"midi={world.hymn}", "bundle=chorale", "out=o"], tmp_path).stdout
    assert looked.startswith(CHORALE_IS)
    played = ok(["musictx", "jam", "input=elise", "reply_seconds=1", "output=a.mid"], tmp_path).stdout.splitlines()
    assert re.match(chosen("piano", "elise.mid is not "), played[0])
    compare = ["musictx", "compare", "runs=[piano,chorale]", f"store={world.store}", "out=o"]
    assert "chorale.safetensors " in refused(compare, tmp_path)
    for words in (
        ["attend", "midi=elsie"],
        ["render", "midi=elsie", "out=a.png"],
        ["jam", "input=elsie", "output=b.mid"],
    ):
        assert "elise, gymnopedie or chorale" in refused(["musictx", *words], tmp_path)
    train = ["init_from=piano", f"data.path={world.hymn_store}", "tokenizer=chorale", "data=chorales"]
    assert "init_from=piano: " in refused(["musictx", "train", *train], tmp_path)


def test_what_is_no_bundle_is_said(world, tmp_path):
    for wrong in ("pinao", "encoder", ""):
        with pytest.raises(BundleError, match=f"^{wrong}: .* piano, chorale, score or harmoniser, .* train one, "):
            bundle_path(wrong)
    for words in (["inspect", "bundle=encoder"], ["train", "init_from=encoder", f"data.path={world.store}"]):
        assert "encoder: no such bundle: " in refused(["musictx", *words], tmp_path)


def test_a_run_is_its_model_once_it_has_one(tmp_path):
    run = tmp_path / "run"
    (run / "checkpoints").mkdir(parents=True)
    with pytest.raises(BundleError, match="run .*model.safetensors: "):
        bundle_path(str(run))
    (run / "checkpoints" / "last.ckpt").touch()
    unfinished = "run .*model.safetensors, .* resume=.*run, "
    with pytest.raises(BundleError, match=f"{unfinished}.*/run/checkpoints/last.ckpt$"):
        bundle_path(str(run))
    (run / "checkpoints" / "best.ckpt").touch()
    with pytest.raises(BundleError, match=f"{unfinished}.*/run/checkpoints/best.ckpt$"):
        bundle_path(str(run))
    (run / "model.safetensors").touch()
    assert bundle_path(str(run)) == run / "model.safetensors"


def test_a_package_without_one_says_where_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr("musictx.model.packaged.FOLDER", tmp_path)
    text = r" piano .* \d+\.\d+\.\d+, .* python -m build --wheel, .* bundle=$"
    with pytest.raises(BundleError, match=text):
        open_and_print("piano")
    with pytest.raises(BundleError, match=" chorale "):
        packaged_bundle("chorale")
