"""Bars and parts within a score: gaps, and the hands for a tune. What is given stays."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projects import note as strike
from projects import project, track
from small_scores import FILLS, PLAIN, SCORE, SONG, TUNE_NOTES, drawn, in_file, keeps, player, sounds
from strategies import notations
from stubs import Said, Saying

from musictx.errors import UserError
from musictx.generate.requests import Accompany, Fill
from musictx.generate.score_music import fitted
from musictx.generate.score_seeds import free_slots, read_score
from musictx.generate.score_tasks import task_of
from musictx.generate.score_templates import with_gap
from musictx.generate.scores import FREE, Script
from musictx.music.midi_file import Event, notes_of, read_events
from musictx.music.notation.midi import from_midi
from musictx.music.notation.notation import Notation
from musictx.music.notation.parts import Bar, Note, Part
from musictx.music.notation.write import to_musicxml
from musictx.tokenizers.score.slots import LEFT, OTHER, RIGHT, TUNE


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scores")


@given(notations(), st.sampled_from([SCORE, FILLS]), st.sampled_from([None, 64]), st.data())
@settings(max_examples=15)
def test_a_fill_changes_the_bars_of_the_gap_alone(folder, score, tokenizer, window, data):
    path = in_file(score, folder)
    seed, _ = from_midi(path.read_bytes())
    upbeat = int(len(seed.bars) > 1 and seed.bars[1].onset < seed.bars[0].full)
    borders = st.lists(st.integers(1, len(seed.bars) - upbeat), min_size=2, max_size=2)
    first, last = sorted(data.draw(borders))
    parts = [None, *(str(n + 1) for n in range(sum(bool(part.notes) for part in seed.parts)))]
    part = data.draw(st.sampled_from(parts))
    request = Fill(PLAIN, from_bar=first, to_bar=last, only=part)
    (music,) = drawn(path, request, tokenizer, window)
    assert not music.stopped
    template = task_of(path, tokenizer, request).template
    assert keeps(music, template)
    begin, end = (20 * at for at in (seed.bars[first - 1 + upbeat].onset, seed.spans[last - 1 + upbeat][1]))
    was, now = sounds(path.read_bytes()), sounds(music.midi())
    staff = None if part is None else int(part)  # its track
    assert not Counter(n for n in was.elements() if not begin <= n[1] < end or staff not in (None, n[0])) - now
    new = now - Counter(n for n in was.elements() if not begin <= n[1] < end)
    assert all(begin <= on < off <= end for t, on, off, *_ in new if staff in (None, t))
    assert (music.notation.bars, music.notation.end) == (seed.bars, seed.end)


@given(notations(), st.integers(0, 99))
@settings(max_examples=10)
def test_an_accompaniment_leaves_the_file_as_it_is(folder, score, k):
    path = in_file(score, folder)
    if {RIGHT, LEFT} <= set(read_score(path, SCORE).used):
        return
    (music,) = drawn(path, Accompany(random_seed=k))
    was, now = read_events(path.read_bytes()).tracks, read_events(music.midi()).tracks
    assert now[: len(was)] == was
    assert sum(len(notes_of(track)) for track in now[len(was) :]) == len(music.new_notes)
    assert all(n.on % 20 == n.off % 20 == 0 for track in now[len(was) :] for n in notes_of(track))
    assert keeps(music, music.template)
    assert not music.stopped


class Reader(Said):
    """Keeps the ids that its rows read."""

    window = None

    def __init__(self, say):
        super().__init__(say)
        self.read = []

    def begin(self, room, rolling=False):
        return Reading(self.say, 1, self.read)

    def join(self, parts, of_row):
        return Reading(self.say, len(of_row), self.read, parts[0].length)


class Reading(Saying):
    def __init__(self, say, rows, read, length=0):
        super().__init__(say, rows, length)
        self.read = read

    def prefill(self, ids):
        self.read += ids[0].tolist()
        return super().prefill(ids)


def test_given_ids_are_read_in_the_order_of_the_stream(tmp_path):
    """The tune's next bar, then the others' bar."""
    task = task_of(in_file(SONG, tmp_path), SCORE, Fill(PLAIN, from_bar=1, to_bar=1, only="2"))
    script = Script.of(task.template, SCORE)
    words = [SCORE.vocab.describe(i).replace(" ", "") if i != FREE else "…" for i in script.ids]
    assert " ".join(words) == (
        "METER_43 KEY7 AHEAD0 AT0 LENGTH72 PITCH67 PART1 … PART2 AT0 LENGTH72 PITCH48 AT24 LENGTH8 PITCH43 BAR"
    )
    model = Reader(player().say)
    (music,) = task.draw(model, SCORE)
    k = script.ids.index(FREE)
    read = model.read[1 + len(script.before) :]
    assert model.read[: 1 + len(script.before)] == [SCORE.vocab.bos, *script.before.tolist()]
    assert read[:k] == script.ids[:k]
    behind = read.index(script.ids[k + 1])
    assert read[behind : behind + len(words) - k - 2] == script.ids[k + 1 : -1]
    assert [len(part.notes) for part in music.notation.parts][::2] == [4, 3]


def test_a_model_that_fills_hears_the_bars_after_the_gap(tmp_path):
    path = in_file(SONG, tmp_path)
    request = Fill(PLAIN, from_bar=1, to_bar=1)
    heard, unheard = (task_of(path, tokenizer, request) for tokenizer in (FILLS, SCORE))
    assert heard.remarks == ()
    assert "not heard" in unheard.remarks[0]
    script = Script.of(heard.template, FILLS)
    context = [FILLS.vocab.describe(i) for i in script.context(FILLS, None, 1).tolist()]
    assert context[0] == "AFTER"
    begin = context.index("BEFORE")
    assert context[begin - 4 : begin] == ["EOS", "BACK_1024 0", "BACK_32 0", "BACK_1 4"]  # four BARs in all
    assert context[begin + 1] == "BOS"


def test_a_tune_gets_two_hands_and_a_right_hand_a_left_one(tmp_path):
    tune = in_file(replace(SONG, parts=SONG.parts[:1]), tmp_path)
    (music,) = drawn(tune, Accompany())
    assert [part.name for part in music.notation.parts] == ["Voice", "Piano", "Piano"]
    assert music.notation.parts[0].notes == TUNE_NOTES
    assert music.template.slots == (TUNE, RIGHT, LEFT)
    assert music.template.ahead == TUNE
    was, now = read_events(tune.read_bytes()), read_events(music.midi())
    assert now.tracks[: len(was.tracks)] == was.tracks
    assert all(track.name == "Piano" for track in now.tracks[len(was.tracks) :])
    assert len(music.new_notes) == sum(len(notes_of(track)) for track in now.tracks[len(was.tracks) :])
    right = replace(SONG, parts=SONG.parts[1:2])
    (music,) = drawn(in_file(right, tmp_path), Accompany())
    assert music.template.slots == (RIGHT, LEFT)
    assert music.template.ahead == RIGHT
    assert music.notation.parts[0].notes == SONG.parts[1].notes
    with pytest.raises(UserError, match="both hands already"):
        drawn(in_file(SONG, tmp_path), Accompany())
    (music,) = drawn(in_file(SONG, tmp_path), Accompany(only="1"))  # a person names the tune: the old piano stays
    assert music.template.slots == (TUNE, OTHER, OTHER + 1, RIGHT, LEFT)
    assert [part.notes for part in music.notation.parts[:3]] == [part.notes for part in SONG.parts]
    with pytest.raises(UserError, match="it plays several notes at once"):
        drawn(in_file(SONG, tmp_path), Accompany(only="2"))


def test_a_file_without_a_tune_and_a_right_hand_is_said(tmp_path):
    for part in (SONG.parts[2], Part("Strings", 48, SONG.parts[1].notes)):
        path = in_file(replace(SONG, parts=(part,)), tmp_path)
        assert "no tune and no right hand" in task_of(path, SCORE, Accompany()).remarks[0]


def test_one_part_of_a_doubled_line_changes_alone(tmp_path):
    """A track that has the notes of another is no staff of its own; no note of it is lost."""
    line, path = [strike(96 * k, 96 * k + 90, 60 + k) for k in range(8)], tmp_path / "double.mid"
    double = [Event(e.tick, bytes([e.data[0] | 1]) + e.data[1:]) for each in line for e in each]
    path.write_bytes(project(track(), track(*line), track(double)).data)
    was = read_events(path.read_bytes()).tracks
    for part, other in ((1, 2), (2, 1)):
        (music,) = drawn(path, Fill(PLAIN, from_bar=1, to_bar=1, only=str(part)))
        now = read_events(music.midi()).tracks
        assert now[other] == was[other]
        assert len(notes_of(now[part])) == len(music.new_notes) + 4


def test_two_tracks_of_one_channel_strike_no_key_twice(tmp_path):
    low, path = [strike(0, 500, 60)], tmp_path / "hands.mid"
    path.write_bytes(project(track(*low), track(*[strike(96 * k, 96 * k + 90, 60 + k % 2) for k in range(12)])).data)
    task = task_of(path, SCORE, Fill(PLAIN, from_bar=1, to_bar=1, only="2"))
    ((slot, _),) = task.template.free
    assert fitted(task.seed, task.template, {slot: [Note(24, 24, 60), Note(24, 24, 61)]}) == {slot: (Note(24, 24, 61),)}


LINE = tuple(Note(24 * n, 24, 72 + n % 3) for n in range(8))


def _file_of(folder, *parts):
    path = folder / "hands.musicxml"
    path.write_bytes(to_musicxml(Notation(parts, (Bar(0, 4, 4), Bar(96, 4, 4)), 192))[0])
    return path


@pytest.mark.parametrize("silent", [{1}, {2}, {1, 2}])
def test_new_hands_go_into_the_empty_staves_of_a_keyboard(folder, silent):
    staves = [(), LINE, tuple(note._replace(pitch=note.pitch - 24) for note in LINE)]
    hands = [Part("Piano", 0, () if n in silent else staves[n], group=1) for n in (1, 2)]
    voice = [Part("Voice", 52, LINE, group=0)]
    path = _file_of(folder, *voice, *hands, Part("Silence", 40, (), group=3))
    (music,) = drawn(path, Accompany())
    old, new = read_score(path, SCORE).notation.parts, music.notation.parts
    assert [(part.name, part.group) for part in new] == [(part.name, part.group) for part in old]
    assert {n for n in range(4) if new[n].notes != old[n].notes} <= silent
    assert [slot for slot in music.template.slots if slot in (RIGHT, LEFT)] == [RIGHT, LEFT]
    assert music.template.has_new_parts


def test_a_name_of_all_staves_of_an_instrument_means_them_all(folder):
    low = tuple(note._replace(pitch=note.pitch - 24) for note in LINE)
    hands = Part("Piano", 0, LINE, group=1), Part("Piano", 0, low, group=1)
    path = _file_of(folder, Part("Voice", 52, LINE, group=0), *hands)
    slots = [set(free_slots(read_score(path, FILLS, part))) for part in ("Piano", "2", "3", "Voice")]
    assert slots == [{RIGHT, LEFT}, {RIGHT}, {LEFT}, {TUNE}]
    two = _file_of(folder, *hands, *(replace(part, group=2) for part in hands))
    with pytest.raises(UserError, match="several parts have this name"):
        free_slots(read_score(two, FILLS, "Piano"))
    apart = in_file(Notation(hands, (Bar(0, 4, 4), Bar(96, 4, 4)), 192), folder)
    with pytest.raises(UserError, match="several parts have this name"):
        free_slots(read_score(apart, FILLS, "Piano"))


def test_bars_of_a_gap_have_the_numbers_of_the_page(folder):
    bars = Bar(0, 4, 4), Bar(96, 4, 4), Bar(168, 4, 4), Bar(192, 4, 4), Bar(288, 4, 4)  # a repeat sign within bar 2
    notation = Notation((Part("Flute", 73, tuple(Note(24 * n, 24, 72) for n in range(16))),), bars, 384)
    path = folder / "divided.musicxml"
    path.write_bytes(to_musicxml(notation)[0])
    seed = read_score(path, FILLS)
    free = [sorted({bar for _, bar in with_gap(seed, *gap).free}) for gap in ((2, 2), (3, 3), (3, 4))]
    assert free == [[1, 2], [3], [3, 4]]
    with pytest.raises(UserError, match="bars from 1 to 4"):
        with_gap(seed, 5, 5)
    path.write_bytes(to_musicxml(replace(notation, first=17))[0])  # an excerpt
    excerpt = read_score(path, FILLS)
    assert sorted({bar for _, bar in with_gap(excerpt, 18, 19).free}) == [1, 2, 3]
    assert excerpt.meter.numbered(1.0).numbers[0] == 17
    for gap in (1, 1), (17, 21):
        with pytest.raises(UserError, match="bars from 17 to 20"):
            with_gap(excerpt, *gap)
