"""The model inside the package: what its card says, and that it plays."""

import json
import re
from hashlib import sha256

import pytest
from conftest import ROOT, ok

from musictx.errors import BundleError
from musictx.model.bundle import read_header
from musictx.notes.grid import score_to_grid
from musictx.notes.read import read_midi
from musictx.open import SHIPPED, open_bundle, shipped_bundle


def test_the_card_tells_what_the_bundle_says_of_itself():
    model, tokenizer, header = open_bundle(shipped_bundle(), "cpu", "auto")
    card = (ROOT / "docs" / "models.md").read_text()
    assert f"validation **{header.val_nll:.3f}**" in card
    parameters = sum(p.numel() for p in model.parameters())
    assert f"{parameters / 1e6:.1f} million parameters" in card
    size_mb = SHIPPED.stat().st_size / 1e6
    assert f"{size_mb:.1f} MB" in card
    assert size_mb <= 10
    assert tokenizer.name == "chorale"
    assert header.corpus.startswith("JSB chorales")


def test_readme_card_and_log_tell_what_evaluate_found_of_this_very_bundle():
    """Where another one lies: `benchmarks/chorales.py` writes both files, as `musictx evaluate out=…` does."""
    told = []
    for split, pieces, tokens in (("validation", 76, 73_632), ("test", 77, 75_600)):
        found = json.loads((ROOT / "benchmarks" / "results" / f"chorale-{split}.json").read_text())
        assert found["bundle_sha256"] == sha256(SHIPPED.read_bytes()).hexdigest()
        assert (found["split"], found["pieces"], found["tokens"]) == (split, pieces, tokens)
        assert (found["segment"], found["weights"]) == (None, "float32")
        told.append(found["per_token"])
    (nll, low, high), (test_nll, test_low, test_high) = told
    assert read_header(SHIPPED).val_nll == pytest.approx(nll, abs=1e-5)
    readme, card, log = ((ROOT / name).read_text() for name in ("README.md", "docs/models.md", "docs/log.md"))
    assert f"| **{nll:.3f}** (test {test_nll:.3f}), the model inside the package |" in readme
    assert f"validation **{nll:.3f}** nats a token ({low:.3f} to {high:.3f}, resampled pieces)" in card
    assert f"test {test_nll:.3f} ({test_low:.3f} to {test_high:.3f}), read once" in card
    assert f"**{nll:.4f}** ({low:.3f} to {high:.3f})" in log
    assert f"Test, read once: **{test_nll:.3f}** ({test_low:.3f} to {test_high:.3f})" in log


def test_it_plays_when_no_bundle_is_named_and_says_so(tmp_path):
    seed = SHIPPED.with_suffix(".mid")
    told = ok(["musictx", "generate", f"seed_midi={seed}", "out=o", "length_bars=1"], tmp_path).stdout
    assert re.search("no bundle= is given: the model inside musictx, trained on JSB chorales", told)
    grid = score_to_grid(read_midi(tmp_path / "o" / "chorale-1.mid"))
    assert len(grid) == 48  # two bars of seed and one more
    told = ok(["musictx", "attend", "midi=o/chorale-1.mid", "out=o"], tmp_path).stdout
    assert told.startswith("no bundle= is given: the model inside musictx, trained on JSB chorales")
    assert (tmp_path / "o" / "chorale-1-heads.png").exists()


def test_a_package_without_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr("musictx.open.SHIPPED", tmp_path / "none.safetensors")
    with pytest.raises(BundleError, match="built without its model: name one with bundle=FILE"):
        shipped_bundle()
