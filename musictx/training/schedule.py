"""Learning rate over a run: linear warm-up, then a cosine down to a tenth."""

import math


def warmup_cosine(step: int, warmup_steps: int, total_steps: int, floor: float = 0.1) -> float:
    """Factor on the peak learning rate at an optimizer step counted from 0; 1 when warm-up ends."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = min((step - warmup_steps) / max(total_steps - warmup_steps, 1), 1.0)
    return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * done))
