"""New music in scores: what is given stays, and what is drawn is bars of parts. The models know nothing."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from projects import band, project, track
from projects import note as strike
from strategies import notations
from stubs import Said, Saying
from untrained import write_score_model

import musictx
from musictx.errors import BundleError, ConfigError, PerformanceError, TokenError, UserError
from musictx.generate.control import Control
from musictx.generate.primer import Part as Region
from musictx.generate.requests import Accompany, Continue, Fill, Length, Sampling
from musictx.generate.score_music import fitted
from musictx.generate.score_seeds import bars_of, meter_of_rest, read_score
from musictx.generate.score_tasks import task_of
from musictx.generate.scores import FREE, Script
from musictx.model.packaged import seed_path
from musictx.music.midi_file import TEXT, Event, EventFile, EventTrack, notes_of, read_events, write_events
from musictx.music.notation.midi import from_midi, to_midi
from musictx.music.notation.notation import Bar, Notation, Note, Part, Tempo
from musictx.music.notation.write import to_musicxml
from musictx.music.read import score_of
from musictx.tokenizers import with_added
from musictx.tokenizers.gap import ADDED
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.score import ScoreTokenizer
from musictx.tokenizers.score.slots import LEFT, RIGHT, TUNE

SCORE, FILLS = ScoreTokenizer(), with_added(ScoreTokenizer(), ADDED)
PLAIN = Sampling(guard=False, seed_guidance=None)
TUNE_NOTES = (Note(0, 24, 67), Note(24, 48, 72), Note(72, 24, 71), Note(96, 72, 67))
SONG = Notation(
    (
        Part("Voice", 52, TUNE_NOTES),
        Part("Piano", 0, (Note(24, 24, 64), Note(24, 24, 67), Note(24, 72, 60), Note(96, 72, 64))),
        Part("Piano", 0, (Note(24, 72, 48), Note(48, 8, 43), Note(96, 72, 48))),
    ),
    (Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4)),  # an upbeat
    168,
    tempi=(Tempo(0, 60.0),),
)


def player(window=None, tokenizer=SCORE):
    liked = np.where(np.arange(tokenizer.vocab.size) < tokenizer.at0, 3.0, 0.0)
    liked[tokenizer.bar] = 3.0

    def say(length, rows):
        noise = np.random.default_rng(length).normal(size=tokenizer.vocab.size)
        return np.tile((1.5 * noise + liked).astype(np.float32), (rows, 1))

    said = Said(say)
    said.window = window
    return said


def in_file(notation, folder, division=480):
    path, file = folder / "seed.mid", read_events(to_midi(notation))
    tracks = [
        EventTrack([e._replace(tick=e.tick * division // 480) for e in events], end * division // 480)
        for events, end in file.tracks
    ]
    path.write_bytes(write_events(EventFile(division.to_bytes(2), tracks)))
    return path


def drawn(path, request, tokenizer=SCORE, window=None):
    return task_of(path, tokenizer, request).draw(player(window, tokenizer), tokenizer)


def sounds(data):
    """Each note of each track."""
    tracks = enumerate(read_events(data).tracks)
    return Counter((t, n.on, n.off, n.channel, n.pitch, n.velocity) for t, track in tracks for n in notes_of(track))


def keeps(music, template):
    """Whether the given notes come back, and the new ones are where they may be."""
    whole = template.notation
    for part, was, slot in zip(music.notation.parts, whole.parts, template.slots, strict=True):
        new = Counter(part.notes) - Counter(was.notes)
        assert not Counter(was.notes) - Counter(part.notes)
        for note in new:
            bar = next(n for n, (bar, end) in enumerate(whole.spans) if bar.onset <= note.onset < end)
            assert (slot, bar) in template.free
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scores")


@given(notations(), st.sampled_from([480, 96, 24]), st.integers(1, 3), st.sampled_from([None, 64]), st.integers(0, 99))
@settings(max_examples=20)
def test_a_continuation_keeps_every_note_of_the_file(folder, score, division, bars, window, k):
    path, unit = in_file(score, folder, division), division // 24
    seed, _ = from_midi(path.read_bytes())
    music, other = drawn(path, Continue(PLAIN, Length(bars=bars), random_seed=k, variations=2), window=window)
    assert not music.stopped
    meter = meter_of_rest(seed)
    assert music.notation.bars[: len(seed.bars)] == seed.bars
    assert [bar[1:] for bar in music.notation.bars[len(seed.bars) :]] == [meter[1:]] * bars
    assert music.notation.end == seed.end + bars * meter.full
    was, now = sounds(path.read_bytes()), sounds(music.midi())
    assert not was - now
    assert all(on >= unit * seed.end and on % unit == off % unit == 0 for _, on, off, *_ in now - was)
    assert {(t, channel) for t, _, _, channel, *_ in now} == {(t, channel) for t, _, _, channel, *_ in was}
    assert sum((now - was).values()) == len(music.new_notes)
    if meter[1:] == seed.bars[-1][1:]:
        assert read_events(music.midi()).tracks[0] == read_events(path.read_bytes()).tracks[0]
    assert keeps(music, task_of(path, SCORE, Continue(PLAIN, Length(bars=bars))).template)
    assert other.notation.bars == music.notation.bars


@given(notations(), st.integers(1, 4), st.integers(0, 99))
@settings(max_examples=20)
def test_the_first_bars_of_a_file_go_on_and_the_rest_is_gone(folder, score, bars, k):
    path = in_file(score, folder)
    old = read_score(path, SCORE).notation
    first = min(note.onset for part in old.parts for note in part.notes)
    silent = sum(end <= first for _, end in old.spans)
    count = min(bars + max(silent, old.has_upbeat), len(old.bars))
    end = old.spans[count - 1][1]
    request = Continue(PLAIN, Length(bars=2), random_seed=k, part=Region(bars=bars))
    (music,) = drawn(path, request)
    assert music.notation.bars[:count] == old.bars[:count]
    assert len(music.notation.bars) == count + 2
    for part, was in zip(music.notation.parts, old.parts, strict=True):
        assert [n for n in part.notes if n.onset < end] == [
            n._replace(length=min(n.length, end - n.onset)) for n in was.notes if n.onset < end
        ]
    now, was = sounds(music.midi()), sounds(path.read_bytes())
    assert sum(on < 20 * end for _, on, *_ in now.elements()) == sum(on < 20 * end for _, on, *_ in was.elements())
    assert sum(on >= 20 * end for _, on, *_ in now.elements()) == len(music.new_notes)


def test_a_cut_lies_at_the_bar_line_that_seconds_and_from_s_reach(tmp_path):
    path = in_file(SONG, tmp_path)  # bars at 0, 1 and 4 s, to 7 s
    for region, at_s in (
        (Region(seconds=0.5), 1),
        (Region(seconds=1.0), 1),
        (Region(seconds=1.1), 4),
        (Region(until_s=4.01), 4),
        (Region(bars=1), 4),  # bar 1 follows the upbeat
        (Region(bars=2), 7),
        (Region(seconds=99), 7),
        (Region(), 7),
    ):
        (music,) = drawn(path, Continue(PLAIN, Length(bars=1), part=region))
        assert music.new_from_s == at_s
    with pytest.raises(ConfigError, match=f"^{path}: from_s=7.5: give more than 0 and at most 7.00, where the music"):
        drawn(path, Continue(PLAIN, Length(bars=1), part=Region(until_s=7.5)))


def test_the_faults_of_a_file_are_said(tmp_path):
    path = in_file(SONG, tmp_path)
    path.write_bytes(path.read_bytes()[:-30])
    assert "it is cut short: what is there" in read_score(path, SCORE).remarks[0]


def test_bars_of_silence_before_a_song_are_none_of_the_seed(tmp_path):
    tune = Part("Tune", 0, tuple(Note(24 * k, 24, 60 + k % 5) for k in range(16, 32)))
    path = in_file(Notation((tune,), tuple(Bar(96 * k, 4, 4) for k in range(8)), 768), tmp_path)
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1), part=Region(bars=2)))
    assert music.template.span == (576, 672)
    with pytest.raises(UserError, match=f"^{path}: no notes to continue: raise seed_seconds="):
        task_of(path, SCORE, Continue(PLAIN, Length(bars=1), part=Region(seconds=0.1)))


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


def test_settings_that_no_score_can_keep_are_one_line(tmp_path):
    path = in_file(SONG, tmp_path)
    for request, says in (
        (Continue(PLAIN, Length(tokens=5)), "tokens=5: a score goes on by whole bars"),
        (Continue(PLAIN, Length(bars=1.5)), "bars=1.5: a score goes on by whole bars"),
        (Continue(PLAIN, part=Region(side="end")), "seed_from=end: a score is heard from its beginning"),
        (Continue(PLAIN, part=Region(start="beat")), "start=beat: new bars begin at a bar line"),
        (Continue(PLAIN, rules=Rules(voice_order=True)), "chorale models"),
        (Continue(PLAIN, rules=Rules(masks=False)), "bars and parts"),
        (Continue(PLAIN, rules=Rules(grid="swing")), "exact places"),
        (Continue(PLAIN, include_seed=False), "written behind the score"),
        (Continue(PLAIN, drums=True), "no drums"),
        (Accompany(Sampling(guard=False, seed_guidance=1)), "new hands have no seed"),
        (Fill(PLAIN, from_s=1.0, to_s=2.0), "whole bars"),
        (Fill(PLAIN, from_bar=1, to_bar=9), "bars from 1 to 2"),
        (Fill(PLAIN, from_bar=1, to_bar=1, only="Flute"), "1 Voice, 2 Piano, 3 Piano"),
        (Accompany(transpose=2), "models of chorales"),
    ):
        with pytest.raises(ConfigError, match=says) as refused:
            drawn(path, request)
        assert "\n" not in str(refused.value)


def test_files_that_are_no_scores_are_one_line(tmp_path):
    request = Continue(PLAIN)
    with pytest.raises(PerformanceError, match="give bundle=piano"):
        drawn(seed_path("elise"), request)
    crowd = tuple(Part("Strings", 48, (Note(0, 24, n), Note(0, 24, n + 40))) for n in range(64))
    with pytest.raises(TokenError, match=r"seed\.mid: 40 parts beside a tune and two hands: give at most 13"):
        drawn(in_file(replace(SONG, parts=crowd[:40]), tmp_path), request)
    with pytest.raises(UserError, match="256 staves"):
        drawn(
            in_file(
                replace(SONG, parts=tuple(replace(part, name=str(n)) for part in crowd for n in range(4))), tmp_path
            ),
            request,
        )
    long = Notation(SONG.parts, (Bar(0, 40, 4),), 960)
    with pytest.raises(TokenError, match=r"seed\.mid: bar 1 is in 40/4"):
        drawn(in_file(long, tmp_path), request)
    empty = tmp_path / "empty.abc"
    empty.write_text("X:1\nM:4/4\nL:1/4\nK:C\nz4|z4|\n")
    with pytest.raises(UserError, match="no notes"):
        drawn(empty, request)


def test_lengths_are_whole_bars_of_the_last_meter():
    bar = SONG.bars[-1]
    assert bars_of(Length(), SONG, bar) == 7  # 20 s of bars of 3 s
    assert bars_of(Length(seconds=0.1), SONG, bar) == 1
    assert bars_of(Length(bars=5), SONG, bar) == 5


def test_notation_goes_on_from_a_bar_line_in_midi_and_musicxml(tmp_path):
    path = tmp_path / "tune.abc"
    tune = "A|d2f|e2c|d2|"  # an upbeat, and a last bar without it
    path.write_text(f"X:1\nT:A tune\nM:3/4\nL:1/4\nQ:1/4=90\nK:D\n{tune}\n")
    (music,) = drawn(path, Continue(PLAIN, Length(bars=2)))
    seed = read_score(path, SCORE).notation
    assert [bar.onset for bar in music.notation.bars[-3:]] == [168, 240, 312]  # rests fill the last bar
    assert music.notation.end == 384
    assert music.notation.keys == seed.keys
    assert sounds(to_midi(seed)) - sounds(music.midi()) == Counter()
    assert music.write(tmp_path / "out.musicxml") == ""
    again, _ = score_of((tmp_path / "out.musicxml").read_bytes(), "out.musicxml")
    assert again.bars == music.notation.bars
    assert [part.notes for part in again.parts] == [part.notes for part in music.notation.parts]


def test_a_file_whose_last_bar_completes_the_upbeat_goes_on_in_its_meter(tmp_path):
    bars = Bar(0, 3, 4), Bar(24, 3, 4), Bar(96, 3, 4)
    short = replace(SONG, parts=(Part("Voice", 52, (*TUNE_NOTES[:3], Note(96, 48, 67))),), bars=bars, end=144)
    path = in_file(short, tmp_path)
    assert from_midi(path.read_bytes())[0].bars[-1][1:] == (2, 4)  # MIDI says that it is another meter
    (music,) = drawn(path, Continue(PLAIN, Length(bars=1)))
    assert music.notation.bars[-1] == Bar(144, 3, 4)
    more = [
        e
        for e in read_events(music.midi()).tracks[0].events
        if e not in read_events(path.read_bytes()).tracks[0].events
    ]
    assert [(e.tick, e.data[3:5]) for e in more] == [(2880, b"\x03\x02")]


def test_new_notes_are_as_loud_as_those_before(tmp_path):
    path = in_file(SONG, tmp_path)
    path.write_bytes(path.read_bytes().replace(b"\x90C\x50", b"\x90C\x21").replace(b"\x90H\x50", b"\x90H\x21"))
    (music,) = drawn(path, Continue(PLAIN, Length(bars=4)))
    new = sounds(music.midi()) - sounds(path.read_bytes())
    assert {velocity for t, *_, velocity in new if t == 1} == {33}
    assert {velocity for t, *_, velocity in new if t > 1} == {80}
    assert Counter(music.score.velocity.tolist()) == Counter(n[-1] for n in sounds(music.midi()).elements())


def test_a_variation_does_not_depend_on_the_others(tmp_path):
    path = in_file(SONG, tmp_path)
    three = drawn(path, Continue(PLAIN, Length(bars=2), variations=3))
    one_by_one = drawn(path, Continue(PLAIN, Length(bars=2), variations=3, rows_at_once=1))
    assert [len(music.new_notes) for music in three] == [len(music.new_notes) for music in one_by_one]
    assert three[0].notation != three[1].notation


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


def test_python_has_the_same(tmp_path):
    model = musictx.load(write_score_model(tmp_path / "score.safetensors"))
    path = in_file(SONG, tmp_path)
    (music,) = model.continue_midi(path, bars=1, humanize=True)
    assert music.bars is not None
    assert music.seed == path
    (music,) = model.fill(path, from_bar=1, to_bar=1)
    assert music.is_new is not None
    (music,) = model.accompany_score(
        in_file(replace(SONG, parts=SONG.parts[:1]), tmp_path), control=Control(chords="C | F")
    )
    assert len(music.notation.parts) == 3
    assert [chord.name for chord in music.chords] == ["C", "F"]
    with pytest.raises(BundleError, match="accompany_score"):
        model.accompany(path)
    with pytest.raises(ConfigError, match="bars and parts"):
        model.continue_midi(None)


def test_all_events_of_a_project_stay(tmp_path):
    """Tempo map, drums, markers, bends and a pedal."""
    path = tmp_path / "band.mid"
    path.write_bytes(band().data)
    was = read_events(path.read_bytes()).tracks
    (music,) = drawn(path, Continue(PLAIN, Length(bars=6)))
    now = read_events(music.midi("a remark")).tracks
    assert len(now) == len(was)
    for old, new in zip(was, now, strict=True):
        assert not Counter(old.events) - Counter(new.events)
    assert [e.data[1] for e in now[0].events if e not in was[0].events] == [TEXT]
    new = sounds(music.midi()) - sounds(path.read_bytes())
    assert {(t, channel) for t, _, _, channel, *_ in new} == {(1, 0), (2, 1)}
    assert all(on >= 768 for _, on, *_ in new)
    assert music.new_from_s == 7.0  # two quarters of half a second, then six of one
    (music,) = drawn(path, Fill(PLAIN, from_bar=2, to_bar=2, only="cello"))
    now = read_events(music.midi()).tracks
    assert [now[n] for n in (0, 1, 3)] == [was[n] for n in (0, 1, 3)]
    assert [n.on for n in notes_of(now[2]) if n.on < 384] == [0, 192]
    assert len(notes_of(now[2])) - 2 == len(music.new_notes)


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


def test_meters_behind_the_last_bar_are_said(tmp_path):
    path = tmp_path / "later.mid"
    meter = Event(384, bytes([0xFF, 0x58, 4, 3, 2, 24, 8]))
    path.write_bytes(project(track(meter), track(strike(0, 384, 60))).data)
    assert "new bars are in 4/4" in task_of(path, SCORE, Continue(PLAIN)).remarks[0]
    assert task_of(in_file(SONG, tmp_path), SCORE, Continue(PLAIN)).remarks == ()


def test_a_file_without_a_tune_and_a_right_hand_is_said(tmp_path):
    for part in (SONG.parts[2], Part("Strings", 48, SONG.parts[1].notes)):
        path = in_file(replace(SONG, parts=(part,)), tmp_path)
        assert "no tune and no right hand" in task_of(path, SCORE, Accompany()).remarks[0]


def test_a_note_without_an_end_stays_as_long(tmp_path):
    path = tmp_path / "hangs.mid"
    path.write_bytes(project(track(Event(0, b"\x90\x3c\x50"), strike(0, 384, 64))).data)
    (music,) = drawn(path, Continue(PLAIN, Length(bars=4)))
    assert not sounds(path.read_bytes()) - sounds(music.midi())


def played(data):
    """The velocities of each track with notes."""
    tracks = [[note.velocity for note in sorted(notes_of(track))] for track in read_events(data).tracks]
    return [each for each in tracks if each]


def test_humanize_says_how_loud_new_notes_are_and_nothing_of_old_ones(tmp_path):
    file = tmp_path / "song.mid"
    file.write_bytes(to_midi(SONG))
    plain, human = (
        task_of(file, SCORE, Continue(PLAIN, Length(bars=8), humanize=humanize)).draw(player(), SCORE)[0]
        for humanize in (False, True)
    )
    assert plain.notation == human.notation
    new = set[int]()
    for part, before, after in zip(SONG.parts, played(plain.midi()), played(human.midi()), strict=True):
        assert set(before) == {80}
        assert after[: len(part.notes)] == before[: len(part.notes)]
        new |= {*after[len(part.notes) :]}
    assert len(new) > 1
    assert {*human.score.velocity.tolist()} == {80, *new}


def test_humanize_plays_all_of_a_score_that_had_no_loudness(tmp_path):
    file = tmp_path / "song.musicxml"
    file.write_bytes(to_musicxml(SONG)[0])
    (human,) = task_of(file, SCORE, Continue(PLAIN, Length(bars=1), humanize=True)).draw(player(), SCORE)
    assert all(len({*each}) > 1 for each in played(human.midi()))


class Listener(Said):
    """Keeps each prompt, and likes the pitches that it has read there."""

    window = None

    def __init__(self):
        self.prompts, said = [], player().say
        super().__init__(said)

    def begin(self, room, rolling=False):
        return Listening(self.say, self.prompts)

    def join(self, parts, of_row):
        return Listening(self.say, self.prompts, [parts[k].liked[0] for k in of_row])


class Listening(Saying):
    def __init__(self, say, prompts, liked=()):
        super().__init__(say, len(liked))
        self.prompts, self.liked = prompts, liked

    def prefill(self, ids):
        if not len(self.liked):
            self.prompts.append(ids[0].tolist())
            self.rows, self.liked = 1, [np.isin(np.arange(SCORE.vocab.size), ids[0]) & (SCORE.pitch >= 0)]
        return super().prefill(ids) + np.array(self.liked, np.float32)


def test_seed_guidance_compares_with_the_last_bar_alone(tmp_path):
    early = Part("Piano", 0, (*(Note(24 * k, 24, 60 + k % 3) for k in range(9)), Note(240, 72, 80)))
    bars = tuple(Bar(72 * k, 3, 4) for k in range(5))
    path = in_file(Notation((early,), bars[:4], 312), tmp_path)
    few, counts = Rules(max_polyphony=2), list[float]()
    for strength in (None, 0, 4):
        model, sampling = Listener(), replace(PLAIN, seed_guidance=strength)
        (music,) = task_of(path, SCORE, Continue(sampling, Length(bars=24), rules=few)).draw(model, SCORE)
        assert len(model.prompts) == (1 if strength is None else 2)
        counts.append(float(np.isin(music.new_notes.pitch, [60, 61, 62]).mean()))
    whole, last = model.prompts
    assert last == [SCORE.bar, *whole[len(whole) - len(last) + 1 :]]
    assert last.count(SCORE.bar) == 2
    assert counts[2] > counts[0] + 0.2


def test_the_guidance_of_a_bundle_is_for_continuations_alone(tmp_path):
    path, own = in_file(SONG, tmp_path), {"seed_guidance": 1.0}
    auto = Sampling(guard=False)
    for request, prompts in (
        (Continue(auto, Length(bars=1)), 2),
        (Fill(auto, from_bar=1, to_bar=1), 1),
        (Fill(auto, from_bar=2, to_bar=2), 1),
    ):
        model = Listener()
        task_of(path, SCORE, request).draw(model, SCORE, own=own)
        assert len(model.prompts) == prompts
