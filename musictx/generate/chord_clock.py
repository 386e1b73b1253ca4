"""When chords that are asked for begin and end, for each row of a batch."""

from collections.abc import Callable, Sequence

import numpy as np
from torch import Tensor, searchsorted

from musictx.generate.control import SEED, Control
from musictx.generate.prompt import Prompt
from musictx.music.curve import along
from musictx.music.harmony import LETTERS, ChordLine, Classes, parse_chords
from musictx.tokenizers import Tokenizer

CLOSE = 1e-6  # of a bar or a second: times are sums of floats
ANY = f"0 {'+'.join(LETTERS)}"  # chords of all notes


class ChordClock:
    """The chords of each row's line, which begins again at its end. Time 0 is where new music begins."""

    def __init__(
        self,
        control: Control,
        tokenizer: Tokenizer,
        prompts: Sequence[Prompt],
        on_device: Callable[[object], Tensor],
    ) -> None:
        lines_s = [control.lines_s(p.meter, p.start_s)[1] - p.start_s for p in prompts]
        n = np.arange(max(map(len, lines_s)), dtype=np.float64)
        self.units_s = on_device([along(n, n[: len(row)], row) for row in lines_s])  # (B, N) of what `begins` counts
        lines = [line_after(p, control, tokenizer) for p in prompts]
        self.chords, *table = tabled(lines)
        self.begins, self.which = map(on_device, table)  # (B, K) each
        self.length = on_device([[line.length] for line in lines])  # (B, 1)

    def at(self, now_s: Tensor) -> tuple[Tensor, Tensor]:
        """(B, 1) the number of the chord at a moment of each row, and when the next one begins, in seconds."""
        unit = (searchsorted(self.units_s, now_s, right=True) - 1).clamp(0, self.units_s.shape[1] - 2)
        begun_s, end_s = self.units_s.gather(1, unit), self.units_s.gather(1, unit + 1)
        at = (unit + (now_s - begun_s) / (end_s - begun_s)).clamp(min=0) + CLOSE
        within = at % self.length
        k = searchsorted(self.begins, within, right=True)
        after = self.begins.gather(1, k.clamp(max=self.begins.shape[1] - 1))
        after = after.where(k < self.begins.shape[1], self.length).minimum(self.length) + at - within  # in units
        unit = after.floor().long().clamp(0, self.units_s.shape[1] - 2)
        begun_s, end_s = self.units_s.gather(1, unit), self.units_s.gather(1, unit + 1)
        return self.which.gather(1, k - 1), begun_s + (after - unit) * (end_s - begun_s)


def line_after(prompt: Prompt, control: Control, tokenizer: Tokenizer) -> ChordLine:
    """The chords of the music after a prompt."""
    heard = tokenizer.decode(prompt.ids if control.chords == SEED else prompt.ids[:0], prompt.quarter_s)
    return parse_chords(control.chords_after(heard, prompt.meter, prompt.start_s) or ANY)


def tabled(lines: Sequence[ChordLine]) -> tuple[list[Classes], list[list[float]], list[list[int]]]:
    """The chords of all lines, each once (U). When those of each line begin, infinity after the last (B, K); and which
    they are (B, K)."""
    rows = [[chord.classes for chord in line.chords] for line in lines]
    chords, most = list(dict.fromkeys(each for row in rows for each in row)), max(map(len, rows))
    begins = [[*line.begins, *[np.inf] * most][:most] for line in lines]
    return chords, begins, [[*map(chords.index, row), *[0] * most][:most] for row in rows]
