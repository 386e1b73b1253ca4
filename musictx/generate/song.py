"""The rest of a song, in windows as long as in training; each continues the second half of the last."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError, UserError
from musictx.generate.batch import Batch, Progress
from musictx.generate.choir import Report
from musictx.generate.engine import ByChance, Stream
from musictx.generate.requests import Accompany, Length
from musictx.generate.steering import Steering, steer_accompaniment
from musictx.model.steps import SourcePlayer
from musictx.music.score import Meter, Score
from musictx.tokenizers.gap import split_at
from musictx.tokenizers.performance import MelodyTokenizer
from musictx.tokenizers.performance.rules import EventRules
from musictx.tokenizers.rules import AUTO, Rules
from musictx.tokenizers.vocab import Ids

WINDOW_S = 20.0  # what 512 ids of POP909 last, where a model does not name its training windows
MOST_PER_S = 100.0  # ids; POP909 has 25
STEP_S = 0.01


@dataclass
class Windows:
    """The ids of an accompaniment so far; `melody` (T,) has those of its melody."""

    melody: Ids
    player: SourcePlayer
    tokenizer: MelodyTokenizer
    rules: Rules
    chance: ByChance
    steer: Callable[[Ids], Steering | None] = lambda ids: None
    ids: Ids = field(default_factory=lambda: np.zeros(0, np.uint16))
    log_p: list[float] = field(default_factory=list)

    def extend(self, start_s: float, end_s: float) -> None:
        """Draws a window from `start_s` to `end_s`, but for a wait at its end.

        Raises NanError, and UserError for a model that hardly lets time pass, or that ends."""
        tokenizer = self.tokenizer
        self.ids = self.until(start_s)
        melody_ids = split_at(tokenizer, self.melody, start_s)[1]
        if tokenizer.seconds(melody_ids) > end_s - start_s + STEP_S / 2:  # it continues behind this window
            melody_ids = tokenizer.certain(split_at(tokenizer, melody_ids, end_s - start_s)[0])
        source = one_row(melody_ids if len(melody_ids) else [tokenizer.vocab.pad])
        before, here = split_at(tokenizer, self.ids, start_s)
        prompt = one_row([before[-1] if len(before) else tokenizer.vocab.bos, *here])
        most, clock_s = int(MOST_PER_S * (end_s - start_s)) + 1, tokenizer.seconds(here)
        steps = self.player.begin(source, prompt.shape[1] + most)
        logits = steps.prefill(prompt)
        grammar = EventRules(tokenizer, self.rules, [self.ids])
        self.chance.steering = self.steer(self.ids)
        stream = Stream(steps, logits, grammar, self.chance)
        meter = Meter()
        progress = Progress(Length(tokens=most), meter, tokenizer, here, meter.quarter_s)
        batch, n = Batch(stream, [progress], most), 0
        assert tokenizer.pace is not None
        for each in batch:
            clock_s += float(tokenizer.pace[each.ids[0]])
            if clock_s > end_s - start_s - STEP_S / 2:
                break
            n += 1
        else:
            if batch.stopped:
                what = f"{batch.stopped}; {end_s - start_s:.1f} seconds of music need more"
                raise UserError(what, "give a model that has more, or position=relative")
            what = f"the model wrote {n} tokens for {clock_s:.1f} of {end_s - start_s:.1f} seconds"
            raise UserError(what, "lower temperature=, or train it for longer")
        (take,) = batch.takes()
        new_ids = take.ids[:n]
        self.log_p += take.log_p[:n].tolist()
        last = max((n for n, i in enumerate(new_ids, 1) if not tokenizer.pace[i]), default=0)
        self.ids = np.concatenate([self.ids, new_ids[:last]])

    def until(self, end_s: float) -> Ids:
        """The ids so far, and silence up to `end_s`."""
        missing_s = end_s - self.tokenizer.seconds(self.ids)
        return np.concatenate([self.ids, self.tokenizer.silence(missing_s)])


def one_row(ids: NDArray[np.integer] | list[int]) -> NDArray[np.int64]:
    return np.array(ids, np.int64)[None]  # (1, T)


def draw_rest(
    melody: Score,
    player: SourcePlayer,
    tokenizer: MelodyTokenizer,
    request: Accompany,
    *,
    window_s: float = WINDOW_S,
    meter: Meter | None = None,
    report: Report = lambda done, of: None,
) -> list[tuple[Score, float]]:
    """The rest of a song, once a variation: its notes, and their mean log-probability in nats a token.

    Variation k depends on melody, seed and k alone. `report` gets the windows drawn and their total, and may raise.
    Raises ConfigError, NanError, UserError."""
    rules = replace(request.rules, voice_order=False, voice_ranges=False, no_parallels=False)  # these are for chorales
    if not rules.masks:
        raise ConfigError("masks", got=False, why="the model would write notes of the melody", hint="leave it out")
    if (several := request.control.particles) not in (AUTO, 1):
        raise ConfigError("particles", got=several, why="a song is written window by window", allowed="1, or auto")
    ids = tokenizer.encode(tokenizer.as_melody(melody))
    hop_s = max(round(window_s / 2 / STEP_S), 1) * STEP_S
    end_s = tokenizer.seconds(ids)
    starts = np.arange(0, max(end_s - hop_s, STEP_S), hop_s).tolist()
    steer = partial(steer_accompaniment, request.control, tokenizer, meter=meter or Meter(melody.quarter_s))
    out = []
    for k in range(request.variations):
        chance = ByChance(request.sampling, [(request.random_seed, k)])
        music = Windows(ids, player, tokenizer, rules, chance, steer)
        for n, start_s in enumerate(starts, 1):
            music.extend(start_s, min(start_s + 2 * hop_s, end_s))
            report(k * len(starts) + n, request.variations * len(starts))
        rest = tokenizer.decode(music.until(end_s), melody.quarter_s)
        out.append((rest, float(np.mean(music.log_p)) if music.log_p else 0.0))
    return out
