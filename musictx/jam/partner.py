"""The partner who replies: a model that reads while the player plays, and draws when its turn comes."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from musictx.errors import ConfigError
from musictx.generate.batch import Batch, Progress
from musictx.generate.engine import ByChance, Stream
from musictx.generate.primer import bare_prompt
from musictx.generate.requests import MOST_TOKENS, Length, Sampling
from musictx.model.steps import Logits, Player, Steps, newest
from musictx.music.score import Meter
from musictx.tokenizers import Ids, Tokenizer
from musictx.tokenizers.grammar import Grammar, build_grammar
from musictx.tokenizers.rules import Rules
from musictx.tokenizers.tokenizer import Idiom

WINDOW = 2048  # tokens, for a model whose memory has no limit
WARM_UP = 8  # tokens drawn and thrown away: the first ones of a process are slow

NOTHING: Ids = np.zeros(0, dtype=np.uint16)


class OpeningGrammar:
    """A `Grammar` whose next id may have to be one that does not wait."""

    def __init__(self, grammar: Grammar, waits: NDArray[np.bool_]) -> None:
        self.grammar, self.waits, self.at_once = grammar, waits, False
        self.update, self.move = grammar.update, grammar.move

    def legal(self) -> NDArray[np.bool_]:
        legal = self.grammar.legal()
        no_waits = legal & ~self.waits
        return no_waits if self.at_once and no_waits.any() else legal


class Partner:
    """The model reads phrases and replies in turn as one stream of ids, without the pauses between them.

    Reply k is a function of its past, `random_seed` and k.
    """

    def __init__(
        self,
        player: Player,
        tokenizer: Tokenizer,
        idiom: Idiom,
        quarter_s: float,
        sampling: Sampling,
        rules: Rules,
        random_seed: int = 0,
    ) -> None:
        """Raises ConfigError for rules that the encoding cannot keep."""
        self.player, self.tokenizer, self.quarter_s = player, tokenizer, quarter_s
        self.sampling, self.rules, self.random_seed, self.replies = sampling, rules, random_seed, 0
        self.window = player.window or WINDOW
        self.period = max(player.cycle, tokenizer.group)
        self.waits = idiom.waits
        self.steps: Steps
        self.logits: Logits
        self.past = self.phrase = NOTHING
        self.reply: list[int] = []
        self._recall()
        self._warm_up()

    def hear(self, phrase: Ids) -> None:
        """Takes the player's phrase so far and reads its new part at once."""
        n_old = len(self.phrase)
        is_extension = np.array_equal(phrase[:n_old], self.phrase)
        new_ids, self.phrase = phrase[n_old:], phrase
        if not is_extension:
            self._recall()
        elif len(new_ids):
            self._read(new_ids)

    def begin(self) -> None:
        """Begins a reply to the phrase so far."""
        self.chance = ByChance(self.sampling, [(self.random_seed, self.replies)])
        self.steps_before = self.steps
        grammar = build_grammar(self.tokenizer, self.rules, [NOTHING], [self.quarter_s])
        self.grammar = OpeningGrammar(grammar, self.waits)
        self._begin_batch()
        self.replies += 1

    def draw(self, opening: bool) -> int:
        """Draws the next id; `opening`: not one that waits. Raises NanError."""
        self.grammar.at_once = opening
        step = next(self.batch, None)
        if step is None:  # a model of learned positions ends with its table: it begins again
            self._recall()
            self._begin_batch()
            step = next(self.batch)
        self.reply.append(int(step.ids[0]))
        return self.reply[-1]

    def _begin_batch(self) -> None:
        """Begins to draw; without seed guidance if no music is before the bare prompt."""
        parts, logits, self.chance.sampling = [self.steps], [self.logits], self.sampling
        if self.sampling.strength is not None:
            end = bare_prompt(context := self.context(), self.period, len(self.reply))
            if end is context:
                self.chance.sampling = replace(self.sampling, seed_guidance=None)
            else:
                parts.append(self.player.begin(self.window, rolling=True))
                logits.append(parts[1].prefill(end[None]))
        steps = self.player.join(parts, range(len(parts)))  # not those that read the phrase, which may go on after all
        stream = Stream(steps, np.concatenate(logits), self.grammar, self.chance, len(parts))
        endless = Progress(Length(tokens=MOST_TOKENS), Meter(), self.tokenizer, NOTHING, self.quarter_s)
        self.batch = iter(Batch(stream, [endless], MOST_TOKENS))

    def take_back(self) -> None:
        """Ends a reply before it sounds; the phrase goes on."""
        self.reply, self.replies = [], self.replies - 1
        if self.steps is not self.steps_before:  # it was read again meanwhile, with the reply
            self._recall()

    def end(self, reply: Ids) -> None:
        """Ends the reply; `reply` is the part of it that sounded."""
        past = np.concatenate([self.past, self.phrase, reply])
        first = max(len(past) - self.window, 0)
        # whole periods: the next phrase begins a period
        self.past = past[first + -first % self.period : len(past) - len(past) % self.period]
        self.phrase, self.reply = NOTHING, []
        self._recall()

    def _warm_up(self) -> None:
        self.begin()
        for _ in range(WARM_UP):
            self.draw(opening=True)
        self.end(NOTHING)
        self.replies = 0

    def _read(self, ids: Ids) -> None:
        try:
            self.logits = self.steps.prefill(ids.astype(np.int64)[None])  # (1, T)
        except ConfigError:  # as in `draw`
            self._recall()

    def _recall(self) -> None:
        self.steps = self.player.begin(self.window, rolling=True)
        self.logits = self.steps.prefill(self.context()[None])

    def context(self) -> NDArray[np.int64]:
        """BOS and all ids so far, or the newest half window of them (T,)."""
        ids = np.concatenate([self.past, self.phrase, np.array(self.reply, dtype=np.uint16)]).astype(np.int64)
        # the other half is free for the next turn
        half = max(self.window // 2, self.period)
        if len(ids) < half:
            return np.concatenate([[self.tokenizer.vocab.bos], ids])
        return ids[newest(len(ids), half, self.period) :]
