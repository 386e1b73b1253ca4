"""One person's session: nothing that they chose goes away when something else arrives."""

from hypothesis import given
from hypothesis import strategies as st

from musictx.generate.continuation import Continuation
from musictx.music.score import Meter, Score
from musictx.web.session import PageMusic, Session, Step, Visit, are_same


def music(name):
    return PageMusic(name, Score([0.0], [1.0], [60], [80]), Meter(0.5))


def drawn(session, name="new"):
    """Two continuations of the newest step."""
    take = Continuation(session.now.music.score, 1.0)
    return Step(session.now.music._replace(name=name), (take, take))


def names(session):
    return [step.music.name for step in session.steps]


A = Session().push(Step(music("a")))


def test_music_that_was_chosen_meanwhile_stays_and_undo_leads_to_what_arrived():
    meanwhile = A.push(Step(music("b")))
    after = meanwhile.arrive(drawn(A), A)
    assert names(after) == ["a", "new", "b"]
    assert names(after.undo()) == ["a", "new"]


def test_of_music_that_was_undone_meanwhile_nothing_arrives():
    two = A.push(Step(music("b")))
    assert two.undo().arrive(drawn(two), two) == two.undo()
    assert A.undo().arrive(drawn(A), A) == Session()
    assert names(A.undo().arrive(Step(music("file")), A)) == ["file"]


def test_another_variation_chosen_meanwhile_is_kept_below():
    first = A.push(drawn(A))
    after = first.choose(1).arrive(drawn(first, "more"), first)
    assert names(after) == ["a", "new", "more"]
    assert after.undo() == first.choose(1)


@given(st.lists(st.sampled_from(["pick", "undo", "choose", "go on"]), max_size=8), st.booleans())
def test_whatever_is_done_meanwhile_stays_as_it_was_done(meanwhile, uploads):
    visit = Visit(A)
    before, step = visit.session, Step(music("file")) if uploads else drawn(A)
    for k, what in enumerate(meanwhile):
        other = Step(music(str(k)))
        if what == "pick":
            visit.change(lambda session, other=other: session.push(other))  # type: ignore[misc]
        elif what == "choose":
            visit.change(lambda session: session.choose(1))
        else:
            visit.change(Session.undo if what == "undo" else Session.go_on)
    mine = visit.session
    after = visit.change(lambda session: session.arrive(step, before))
    assert [each for each in after.steps if each is not step] == list(mine.steps)
    if not are_same(mine.now, before.now):
        assert after.now is (mine.now or after.now)
    there = any(each is step for each in after.steps)
    assert there == (uploads or any(are_same(each, before.now) for each in mine.steps))
