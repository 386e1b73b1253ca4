"""What changes over a run: the learning rate, by linear warm-up and then a cosine down to a tenth, or held and taken
straight to zero; and the length of its windows."""

import math

SCHEDULES = ("cosine", "hold")


def warmup_cosine(step: int, warmup_steps: int, total_steps: int, floor: float = 0.1) -> float:
    """Factor on the peak learning rate at an optimizer step counted from 0; 1 when warm-up ends."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = min((step - warmup_steps) / max(total_steps - warmup_steps, 1), 1.0)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done))


def warmup_hold(step: int, warmup_steps: int, total_steps: int, decay_share: float) -> float:
    """The same factor; 1 from the end of warm-up until the last `decay_share` of all steps, in which it falls straight
    to zero (Hägele et al. 2024, section 3). With a share of 0 a run can end, or be branched off, at any step."""
    rise = (step + 1) / warmup_steps if step < warmup_steps else 1.0
    decay_steps = decay_share * total_steps
    left = (total_steps - step) / decay_steps if decay_steps else 1.0
    return max(min(rise, left, 1.0), 0.0)


def window_length(step: int, total_steps: int, length: int, first: int) -> int:
    """How long windows are at an optimizer step counted from 0: `first` ids, doubled in equal parts of the run until
    they have all of `length`. What is near is learnt first, in cheaper steps (Press et al. 2021, section 3)."""
    stages = (length // first).bit_length()
    return first << min(step * stages // max(total_steps, 1), stages - 1)
