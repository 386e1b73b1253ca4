"""A seed that is quantised is continued and filled on its own grid, tick for tick, from a bar line on."""

import mido
import numpy as np
import pytest
from conftest import ok, refused
from stubs import restless

from musictx.generate.model import Model
from musictx.music.midi_file import read_events
from musictx.music.read import read_bytes, whole
from musictx.tokenizers import build_tokenizer, with_added
from musictx.tokenizers.gap import ADDED, with_gap_clock

QUARTER = 480
TEMPOS = ((0, 400_000), (4 * QUARTER, 545_454), (9 * QUARTER, 612_345))  # of no whole number of steps


def quantised(path, places=(0, 240), quarters=14, signature=(4, 4), late=0, lasts=100):
    """Notes on places of each quarter, through changes of tempo, the last one short of its bar line."""
    midi = mido.MidiFile(type=1, ticks_per_beat=QUARTER)
    events = [(tick, mido.MetaMessage("set_tempo", tempo=tempo)) for tick, tempo in TEMPOS]
    numerator, denominator = signature
    events += [(0, mido.MetaMessage("time_signature", numerator=numerator, denominator=denominator))]
    for k in range(quarters * len(places)):
        tick = QUARTER * (k // len(places)) + places[k % len(places)] + (late * (-1) ** k if k else 0)
        events += [
            (tick, mido.Message("note_on", note=60 + k % 5)),
            (tick + lasts, mido.Message("note_off", note=60 + k % 5)),
        ]
    now, track = 0, mido.MidiTrack()
    for tick, message in sorted(events, key=lambda event: (event[0], event[1].type)):
        track.append(message.copy(time=tick - now))
        now = tick
    midi.tracks.append(track)
    midi.save(path)
    return path


def new_ticks(path):
    """When notes of the track that is new begin and end, in ticks."""
    track = read_events(whole(read_bytes(path), path)).tracks[-1]
    assert track.name == "musictx"
    begins = [event.tick for event in track.events if event.begins]
    return np.array(begins), np.array([event.tick for event in track.events if event.ends])


@pytest.fixture
def generate(world, tmp_path):
    def run(*words):
        return ok(["musictx", "generate", f"bundle={world.bundle}", "out=o", "overwrite=true", *words], tmp_path)

    return run


@pytest.mark.parametrize(
    ("places", "name"),
    [((0, 240), "1/8"), ((0, 120, 240, 360), "1/16"), ((0, 160, 320), "1/8t"), ((0, 310), "swing")],
)
def test_new_notes_lie_on_the_ticks_of_the_seeds_grid(generate, tmp_path, places, name):
    quantised(tmp_path / "seed.mid", places)
    done = generate("seed_midi=seed.mid", "length_seconds=4", "variations=2")
    assert f"a grid of {name}" in done.stdout
    for k in (1, 2):
        begins, ends = new_ticks(tmp_path / "o" / f"seed-{k}.mid")
        assert len(begins)
        assert set(begins % QUARTER) <= {*places}
        assert set(ends % QUARTER) - {*places}  # the seed's notes are shorter than its grid, and so may new ones be
        assert begins.min() >= 16 * QUARTER  # the bar line after fourteen quarters


def test_they_end_on_the_grid_where_the_seeds_notes_do(generate, tmp_path):
    quantised(tmp_path / "seed.mid", lasts=240)
    generate("seed_midi=seed.mid", "length_seconds=6")
    begins, ends = new_ticks(tmp_path / "o" / "seed-1.mid")
    assert set(ends % QUARTER) <= {0, 240}  # the last too, though six seconds end between
    assert set(begins % QUARTER) <= {0, 240}


def test_it_begins_at_a_bar_a_beat_or_the_end(generate, tmp_path):
    quantised(tmp_path / "seed.mid", quarters=13)
    said = {}
    for start in ("auto", "bar", "beat", "end"):
        done = generate("seed_midi=seed.mid", "length_seconds=1", f"start={start}")
        said[start] = float(done.stdout.split("new music from ")[1].split(" s")[0])
    quarters = [0.4] * 4 + [0.545454] * 5 + [0.612345] * 7
    assert said["auto"] == said["bar"] == pytest.approx(sum(quarters), abs=0.006)
    assert said["beat"] == pytest.approx(sum(quarters[:13]), abs=0.006)
    assert said["end"] < said["beat"] - 0.1
    middle = generate("seed_midi=seed.mid", "length_seconds=1", "from_s=2.0")
    assert f"new music from {sum(quarters[:5]):.2f} s" in middle.stdout  # the next beat
    assert refused(["musictx", "generate", "seed_midi=seed.mid", "start=now"], tmp_path) == (
        "error: start=now: give one of auto, bar, beat, end"
    )


@pytest.mark.parametrize("words", [["seed_seconds=3.1", "seed_from=end"], ["from_s=3.0"], []])
def test_new_notes_alone_lie_where_they_lie_beside_the_seed(generate, tmp_path, words):
    """The bar line is between two steps of the model's clock."""
    quantised(tmp_path / "seed.mid", quarters=13, lasts=240)

    def begins(with_seed):
        generate("seed_midi=seed.mid", "length_seconds=4", f"include_seed={with_seed}", *words)
        return new_ticks(tmp_path / "o" / "seed-1.mid")[0].tolist()

    assert (alone := begins("false"))
    assert alone == begins("true")


def test_the_musics_last_moment_is_all_of_it(generate, tmp_path):
    """As the page asks: a last note that ends just after a beat does not bring the new music there."""
    quantised(tmp_path / "seed.mid", quarters=13, lasts=252)  # 12 ticks over the beat
    whole, last = (
        generate("seed_midi=seed.mid", "length_seconds=1", *words).stdout.split("new music from ")[1].split(" s")[0]
        for words in ([], [f"from_s={0.4 * 4 + 0.545454 * 5 + 0.612345 * (4 + 12 / QUARTER):.2f}"])
    )
    assert whole == last == "8.61"


@pytest.mark.parametrize("chance", [0, 2, 3])
def test_a_fill_keeps_to_the_grid_too(tmp_path, chance):
    """Bar 3 begins between two steps of the model's clock; its first quarter is filled."""
    gapped = with_gap_clock(with_added(build_tokenizer("performance"), ADDED))
    seed = quantised(tmp_path / "seed.mid", (0, 120, 240, 360), quarters=20)
    (music,) = Model(restless(gapped), gapped).fill(seed, from_s=3.781816, to_s=4.32727, random_seed=chance)
    assert any("a grid of 1/16" in each for each in music.remarks)
    music.write(file := tmp_path / "filled.mid")
    events = [event for track in read_events(whole(read_bytes(file), file)).tracks for event in track.events]
    begins = np.array([event.tick for event in events if event.begins])
    inside = begins[(begins >= 8 * QUARTER) & (begins < 9 * QUARTER)]
    assert len(inside)
    assert set(inside % 120) == {0}


def test_off_is_as_free_as_a_performance_and_a_grid_can_be_asked_for(generate, tmp_path):
    quantised(tmp_path / "seed.mid")
    done = generate("seed_midi=seed.mid", "length_seconds=6", "rules.grid=off")
    assert "grid" not in done.stdout
    assert set(new_ticks(tmp_path / "o" / "seed-1.mid")[0] % QUARTER) - {0, 240}
    quantised(tmp_path / "free.mid", (0, 240), late=43)
    assert "a grid of" not in generate("seed_midi=free.mid", "length_seconds=2").stdout
    generate("seed_midi=free.mid", "length_seconds=6", "rules.grid=1/16t")
    assert set(new_ticks(tmp_path / "o" / "free-1.mid")[0] % 80) == {0}
    assert "grid=1/5: give one of auto, off, 1/8" in refused(
        ["musictx", "generate", "seed_midi=seed.mid", "rules.grid=1/5"], tmp_path
    )
