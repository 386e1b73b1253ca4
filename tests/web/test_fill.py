"""A region of what is heard, written again: asked without a page."""

from dataclasses import replace

import numpy as np
import pytest
from stubs import whole
from wishes import HYMN, more, now, quiet, region

from musictx.config.web import Limits
from musictx.errors import UserError
from musictx.generate.open_bundle import open_bundle
from musictx.web.fit import fit
from musictx.web.session import Session, Step
from musictx.web.studio import Studio


@pytest.fixture(scope="module")
def able(filling):
    return open_bundle(filling)


@pytest.fixture
def studio(able, tmp_path):
    return Studio({"able": able}, tmp_path)


def outside(score, from_s, to_s):
    """The notes that no border touches: onsets, ends and pitches."""
    beside = (score.offset_s < from_s - 1e-6) | (score.onset_s > to_s + 1e-6)
    assert beside.sum() > 4
    return np.stack([score.onset_s[beside], score.offset_s[beside], score.pitch[beside]]).tolist()


def test_a_region_becomes_new_and_the_rest_stays(studio):
    said: list[tuple[float, float]] = []
    begun = studio.example(Session(), HYMN)
    after, what = whole(studio.fill(begun, region(1.26, 2.9), lambda *of: said.append(of)))
    assert said[-1][1] == pytest.approx(1.65)
    assert what.startswith("2 variations of Old Hundredth from 1.20 to 2.85 s, in ")
    assert what.endswith(" s. The rest is kept.")
    for take in now(after).takes:
        assert (take.new_from_s, take.new_to_s) == pytest.approx((1.2, 2.85))
        assert outside(take.score, 1.2, 2.85) == outside(now(begun).score, 1.2, 2.85)
        assert len(take.new_notes)
    assert now(after).takes[0].score != now(after).takes[1].score


def test_what_is_heard_is_filled_and_gone_on_from(studio):
    begun, _ = whole(studio.go_on(studio.example(Session(), HYMN), more(), quiet))
    chosen = begun.choose(1)
    after, _ = whole(studio.fill(chosen, region(3.0, 4.0), quiet))
    assert now(after).music.score == now(chosen).takes[1].score
    again, _ = whole(studio.fill(after.choose(1), region(1.0, 2.0), quiet))
    assert now(again).music.score == now(after).takes[1].score
    assert now(after).name == now(again).name == "Old Hundredth-2-1"
    further = studio.begin_from_take(again)
    assert (now(further).score, now(further).name) == (now(again).score, "Old Hundredth-2-1")


def test_what_is_filled_is_continued_and_a_continuation_is_drawn_once_more(studio):
    filled, _ = whole(studio.fill(studio.example(Session(), HYMN), region(1.26, 2.9), quiet))
    heard = now(filled.choose(1)).takes[1].score
    after, said = whole(studio.go_on(filled.choose(1), more(from_s=3.6), quiet))
    assert now(after).music.score == heard != now(filled).music.score
    assert " of Old Hundredth-2, " in said
    for take in now(after).takes:
        assert take.new_from_s == pytest.approx(3.6)
    again, _ = whole(studio.go_on(after.choose(1), more(from_s=3.6), quiet))
    assert now(again).music is now(after).music


def test_what_has_grown_too_long_is_not_taken(studio):
    filled, _ = whole(studio.fill(studio.example(Session(), HYMN), region(1.26, 2.9), quiet))
    studio.limits = Limits(music_s=5.0)
    with pytest.raises(UserError, match=r"^more than 5 s are not taken here: "):
        whole(studio.go_on(filled, more(from_s=3.6), quiet))


@pytest.mark.parametrize(
    ("borders", "reason"),
    [
        ((1.0, None), "there is no region to fill:"),
        (("1", [2]), "from_s=1: it is text: give a number"),
        ((1.0, 10**400), "there is no region to fill"),
        ((3.0, 5.4), "to_s=5.4: .* 5.40 s"),
        ((0.5, 4.25), "length_s=.* at most 3"),
    ],
)
def test_wrong_regions(able, tmp_path, borders, reason):
    studio = Studio({"able": able}, tmp_path, Limits(length_s=3.0))
    begun = studio.example(Session(), HYMN)
    with pytest.raises(UserError, match=f"^{reason}") as error:
        whole(studio.fill(begun, region(*borders), quiet))
    assert "\n" not in str(error.value)


def test_a_model_that_never_learned_it_names_one_that_did(able, world, tmp_path):
    plain = open_bundle(world.hymn_bundle)
    both, alone = Studio({"able": able, "plain": plain}, tmp_path), Studio({"plain": plain}, tmp_path)
    for studio, advice in ((both, "choose able"), (alone, "one that was trained to")):
        begun = Session().push(Step(fit(studio.examples[HYMN], plain.tokenizer)._replace(model="plain")))
        with pytest.raises(UserError, match=f"^the model plain .*{advice}$"):
            whole(studio.fill(begun, region(1.0, 2.0), quiet))
    after, said = whole(both.fill(begun, region(1.0, 2.0), quiet, "able"))
    assert now(after).music.model == "able"
    assert said.endswith("The rest is kept.")


def test_the_window_of_training_is_what_is_heard(able, tmp_path):
    header = replace(able.header, objective=able.header.objective | {"length": 64})
    studio = Studio({"able": able._replace(header=header)}, tmp_path)
    begun = studio.example(Session(), HYMN)
    with pytest.raises(UserError, match="2.7 s is about 72 tokens, .* 64"):
        whole(studio.fill(begun, region(0.6, 3.3), quiet))
