"""Why attention divides by sqrt(d): scores, softmax and gradient against the width of queries and keys.

If q and k have d independent numbers of mean 0 and variance 1, then q · k = sum_i q_i k_i has variance d. A softmax of
such scores puts more and more weight on one key, and its gradient, w (1 - w), falls. Divided by sqrt(d), the scores
have variance 1 at any width (Vaswani et al. 2017, section 3.2.1). The same sum says that two random directions are
nearly orthogonal when d is large: their cosine has the standard deviation 1 / sqrt(d).
"""

import math

import torch
from torch import Tensor, nn

from musictx.lessons import Finding
from musictx.lessons.hymns import lines
from musictx.viz.figure import FAINT, INK, new_figure

WIDTHS = (4, 16, 64, 256, 1024)
N_KEYS, DRAWS = 32, 10  # queries and keys are drawn so many times


def queries_and_keys(width: int, n: int) -> tuple[Tensor, Tensor]:
    """(n, d) and (n, N_KEYS, d): what untrained layers make of the pitches of a hymn's soprano."""
    pitches = torch.from_numpy(lines(N_KEYS + 1))[:n]  # (n, N_KEYS + 1)
    places = torch.arange(N_KEYS + 1)
    notes = nn.Embedding(128, width)(pitches) + nn.Embedding(len(places), width)(places)  # variance 1 + 1
    notes = notes.detach() / math.sqrt(2)
    project = [torch.randn(width, width) / math.sqrt(width) for _ in range(2)]  # keeps the variance
    return notes[:, -1] @ project[0], notes[:, :-1] @ project[1]


def softmax(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The entropy of the weights, as a share of that of even ones, and the mean length of their gradient."""
    scores = scores.detach().requires_grad_()
    weight = scores.softmax(-1)  # (n, N_KEYS)
    entropy = -(weight * weight.clamp(min=1e-30).log()).sum(-1).mean() / math.log(N_KEYS)
    (gradient,) = torch.autograd.grad(weight.amax(-1).sum(), scores)
    return entropy.detach(), gradient.norm(dim=-1).mean()


def lesson(size: float = 1.0) -> Finding:
    rows, columns = [], []
    for width in WIDTHS:
        drawn = []
        for _ in range(DRAWS):
            q, k = queries_and_keys(width, max(16, int(100 * size)))
            scores = (q[:, None] * k).sum(-1)  # (n, N_KEYS)
            drawn.append(torch.stack([scores.var(), *softmax(scores), *softmax(scores / math.sqrt(width))]))
        directions = nn.functional.normalize(torch.randn(2, 1000, width), dim=-1)
        cosine = directions.prod(0).sum(-1).std()
        columns.append([*torch.stack(drawn).mean(0).tolist(), float(cosine)])
        rows.append((str(width), *(f"{x:.3g}" for x in columns[-1])))
    variance, entropy, gradient, scaled_entropy, scaled_gradient, cosine_std = zip(*columns, strict=True)

    figure = new_figure(11, 3.6, dpi=90)
    curves = [
        ("variance of q · k", [(variance, "measured", INK), (WIDTHS, "d", FAINT)]),
        ("entropy of the softmax (1: even)", [(entropy, "q · k", INK), (scaled_entropy, "q · k / sqrt(d)", "#0072B2")]),
        ("gradient of the largest weight", [(gradient, "q · k", INK), (scaled_gradient, "q · k / sqrt(d)", "#0072B2")]),
    ]
    for axes, (title, of) in zip(figure.subplots(1, 3), curves, strict=True):
        for values, label, colour in of:
            axes.plot(WIDTHS, values, "o-" if colour != FAINT else "--", color=colour, label=label)
        axes.set_xscale("log", base=2)
        axes.set(title=title, xlabel="width d")
        axes.legend(frameon=False)
    figure.axes[0].set_yscale("log")
    return Finding(
        ("width", "variance", "entropy", "gradient", "entropy, scaled", "gradient, scaled", "cosine"),
        rows,
        f"At width {WIDTHS[-1]}, scores without the scale leave {entropy[-1]:.0%} of the entropy of even weights, "
        f"scaled ones {scaled_entropy[-1]:.0%}. Of the gradient they leave {gradient[-1] / scaled_gradient[-1]:.0%}; "
        f"at width {WIDTHS[0]}, {gradient[0] / scaled_gradient[0]:.0%}. Random directions have a cosine of 0 ± "
        f"{cosine_std[-1]:.3f}.",
        figure,
        ("model/attention/__init__.py", "model/attention/relative.py"),
    )
