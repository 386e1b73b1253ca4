"""Voices below the music at the page, and arcs from a note to what the model looked at while it made it."""

import copy
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from musictx.analysis.heads import attention_to_melody, attention_to_past, ids_by_height, repeats
from musictx.config.web import Limits
from musictx.errors import ConfigError, UserError
from musictx.generate.accompanying import Accompanied, accompany_melody, guided, nearest_within, take_melody
from musictx.generate.requests import Accompany, Sampling
from musictx.model.build import can
from musictx.model.bundle import BundleHeader
from musictx.music.melody import together, top_line
from musictx.music.score import Score
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.rules import AUTO, VOICE_RANGES
from musictx.tokenizers.tokenizer import Trace
from musictx.viz.arcs import Head, plot_arcs
from musictx.web.draw import check_most
from musictx.web.session import Heard, PageMusic

MOST_TOKENS = 1024  # that the model sees before the note
MOTIF_NOTES = 4


class Point(NamedTuple):
    """A place in a roll."""

    seconds: float
    pitch: float


class AttentionReader:
    """Reads attention out of a separate model, since the read-out hangs hooks into it that drawing must not meet."""

    def __init__(self, model: object, tokenizer: Tokenizer) -> None:
        self.model: Any = copy.deepcopy(model) if can(model, "readout") else None
        self.tokenizer = tokenizer

    @property
    def layers(self) -> int:
        n: int = self.model.config.n_layers if self.model else 0
        return n

    def _check(self, layer: int | None) -> None:
        if layer is not None and not 0 <= layer < self.layers:
            raise ConfigError("layer", got=layer, allowed=f"0 to {self.layers - 1}")

    def plot(self, score: Score, name: str, note: int, layer: int | None, path: Path) -> None:
        """Arcs of the note number `note`, of all heads' mean or of each head of a layer. Raises UserError."""
        if self.model is None:
            raise UserError("this model has no attention over its past to look at")
        self._check(layer)
        traced = self.traced(score)
        note = int(np.clip(note, 1, max(len(traced.score) - 1, 1)))
        if note >= len(traced.score):
            raise UserError("there is one note only, which has nothing before it to look at")
        ids = self.tokenizer.encode(score)
        most = self.model.reach or MOST_TOKENS
        seen = attention_to_past(self.model, self.tokenizer, ids, traced, note, max_tokens=min(most, MOST_TOKENS))
        heads = [Head("mean of all heads", seen.weight.mean((0, 1)))]
        if layer is not None:
            heads = [Head(f"head {h}", weight) for h, weight in enumerate(seen.weight[layer])]
        runs = repeats(traced.score, MOTIF_NOTES).get(note)
        where = f"note {note + 1} of {len(traced.score)}, at {traced.score.onset_s[note]:.2f} s"
        plot_arcs(f"{name}: {where}", traced.score, note, heads, [] if runs is None else list(runs), path)

    def traced(self, score: Score) -> Trace:
        return self.tokenizer.trace(self.tokenizer.encode(score), score.quarter_s)

    def nearest(self, score: Score, at: Point) -> int:
        """The note at a place, or the one closest to it; a semitone counts as much as a twentieth of a second."""
        notes = self.traced(score).score
        away_s = np.maximum(np.maximum(notes.onset_s - at.seconds, at.seconds - notes.offset_s), 0)
        return int((away_s + 0.05 * np.abs(notes.pitch - at.pitch)).argmin())


HOW_CLOSE_MELODY = "how close to the melody"  # the name of its slider
ReportOf = Callable[[float, float], None]  # gets seconds of the melody that have their voices, and all of them


class Harmoniser(NamedTuple):
    """The model that writes voices, and what its bundle says of it."""

    model: Any
    tokenizer: Tokenizer
    header: BundleHeader


class VoicesWish(NamedTuple):
    """What a person sets before pressing Accompany."""

    temperature: float = Sampling.temperature
    seed_guidance: float | str = AUTO  # guidance by the melody, 0 for none
    variations: int = 2


class Harmonised(NamedTuple):
    """What came of it, and what a person should know of the melody."""

    takes: tuple[Accompanied, ...]
    note: str


def harmonise(
    music: PageMusic,
    wish: VoicesWish,
    harmoniser: Harmoniser,
    limits: Limits,
    chance: int,
    report: ReportOf,
    ending: Callable[[], bool] = lambda: False,
) -> Harmonised:
    """Raises UserError for what cannot be, and where the time does not suffice: half an accompaniment is none."""
    check_most("variations", wish.variations, limits.variations)
    score, meter = music.written or music.played or Heard(music.score, music.meter)
    line, said = "highest" if len(together(score)) else "only", list[str]()
    melody = top_line(score) if line == "highest" else score
    transpose = nearest_within(melody.pitch, *VOICE_RANGES[0]) or 0
    request = Accompany(
        Sampling(wish.temperature, guard=False, seed_guidance=wish.seed_guidance),
        line=line,
        transpose=transpose,
        random_seed=chance,
        variations=int(wish.variations),
    )
    request = guided(request, harmoniser.header, harmoniser.tokenizer, "the model here")
    say = lambda what: said.append(f"{what}.")  # noqa: E731
    heard = take_melody(score, "The melody", request, harmoniser.tokenizer, meter, music.name, say=say)
    if transpose:
        said.append(f"The model hears it {abs(transpose)} semitones {'higher' if transpose > 0 else 'lower'}.")
    deadline_s, whole_s = time.monotonic() + limits.seconds, heard.score.duration_s

    def watch(done: int, of: int) -> None:
        if time.monotonic() > deadline_s or ending():
            raise UserError(f"{limits.seconds:g} s went by before the voices were whole", "give a shorter melody")
        report(done / of * whole_s, whole_s)

    made = accompany_melody(heard, harmoniser.model, harmoniser.tokenizer, request, watch)
    return Harmonised(tuple(made), " ".join(said))


class MelodyReader(AttentionReader):
    """Reads out of a harmoniser what a note looks at in the melody above it."""

    def __init__(self, model: object, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer, self.transposed = copy.deepcopy(model), tokenizer, 0

    def hearing(self, transposed: int) -> "MelodyReader":
        """The same model, for a melody that it heard so many semitones higher; people share the page."""
        other = copy.copy(self)
        other.transposed = transposed
        return other

    def plot(self, score: Score, name: str, note: int, layer: int | None, path: Path) -> None:
        """Arcs of the note number `note`. Raises UserError, for a note of the melody too."""
        self._check(layer)
        traced = self.traced(score)
        ids = ids_by_height(self.tokenizer, score.transpose(self.transposed))
        note = int(np.clip(note, 0, len(traced.score) - 1))
        if traced.struck_by[note] % self.tokenizer.voices == 0:
            raise UserError("this note is one of the melody, which was given", "click one below it")
        looks = attention_to_melody(self.model, self.tokenizer, ids, traced, note, "cpu")
        heads = [Head("mean of all heads", looks.weight.mean((0, 1)))]
        if layer is not None:
            heads = [Head(f"head {h}", weight) for h, weight in enumerate(looks.weight[layer])]
        where = f"note {note + 1} of {len(traced.score)}, at {traced.score.onset_s[note]:.2f} s"
        plot_arcs(f"{name}: {where}, and the melody", traced.score, note, heads, [], path)

    def traced(self, score: Score) -> Trace:
        return self.tokenizer.trace(ids_by_height(self.tokenizer, score), score.quarter_s)
