"""A probe: one linear layer from embeddings of passages to labels (Alain and Bengio 2016)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from musictx.analysis.embedding import Embedder, Vectors
from musictx.errors import BundleError
from musictx.files import all_printable, fits, replacing
from musictx.model.header import AGAIN, DAMAGE, reason
from musictx.tokenizers import Tokenizer

FORMAT = 1
KEY = "musictx_labels"
OURS = "give a file that `musictx probe` wrote"
STEPS = 200  # of LBFGS; a fit needs a few dozen
MOST_SECONDS = 600.0  # of a passage


class Layer(NamedTuple):
    """Multinomial logistic regression: weight (K, C) and bias (K,), for inputs with this mean (C,) and scale (C,)."""

    weight: NDArray[np.float32]
    bias: NDArray[np.float32]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]

    def logits(self, vectors: Vectors) -> NDArray[np.float64]:
        """(..., K) of vectors (..., C)."""
        z_scores = ((vectors - self.mean) / self.scale).astype(np.float64)
        logits: NDArray[np.float64] = z_scores @ self.weight.T + self.bias
        return logits


def fit(
    vectors: Vectors, label: NDArray[Any], weight: NDArray[Any], labels: int, strengths: Sequence[float]
) -> list[Layer]:
    """A layer for each strength of L2, strongest first, of `vectors` (N, C), labels (N,) and weights (N,)."""
    mean, scale = vectors.mean(0), vectors.std(0) + 1e-6
    x = torch.as_tensor((vectors - mean) / scale, dtype=torch.float64)  # (N, C)
    y, counts = torch.as_tensor(label), torch.as_tensor(weight / weight.sum(), dtype=torch.float64)
    # L2 also pulls the bias, to the logarithm of a label's share: the strongest layers say how common a label is
    share = (np.bincount(label, weight, labels) + 1) / (weight.sum() + labels)
    prior = torch.as_tensor(np.log(share))
    is_label = torch.nn.functional.one_hot(y, labels).double()  # (N, K)
    w, b = torch.zeros(labels, x.shape[1], dtype=torch.float64), torch.zeros(labels, dtype=torch.float64)
    layers = []
    for l2 in strengths:
        search: Any = torch.optim.LBFGS([w, b], max_iter=STEPS, tolerance_grad=1e-5, line_search_fn="strong_wolfe")

        def loss(l2: float = l2) -> torch.Tensor:
            """The loss; its gradient goes where LBFGS reads it."""
            log_p = (x @ w.T + b + prior).log_softmax(1)
            error = (log_p.exp() - is_label) * counts[:, None]  # (N, K)
            w.grad, b.grad = error.T @ x + l2 * w, error.sum(0) + l2 * b
            return -(log_p * is_label).sum(1) @ counts + l2 / 2 * (w.square().sum() + b.square().sum())

        search.step(loss)
        parameters = (w, b + prior, torch.as_tensor(mean), torch.as_tensor(scale))
        layers.append(Layer(*(t.float().numpy().copy() for t in parameters)))
    return layers


@dataclass(frozen=True)
class About:
    """The header of a file of labels."""

    labels: list[str]  # in the order of the layer's rows
    bundle: str  # the person's word for the model
    tensors_sha256: str  # of the model: another hears otherwise
    layer: int
    passage_seconds: float
    held_out: str  # how good it is, in a sentence
    format: int = FORMAT


class Probe(NamedTuple):
    layer: Layer
    about: About

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            partial.write_bytes(save(self.layer._asdict(), {KEY: json.dumps(asdict(self.about))}))  # others may read it

    def embedder(self, model: Any, tokenizer: Tokenizer, tensors_sha256: str, path: Path, bundle: str) -> Embedder:
        """The embedder of this layer. Raises BundleError for another model."""
        if tensors_sha256 != self.about.tensors_sha256:
            what = f"{path} was made with another model than {bundle}: {self.about.bundle}"
            raise BundleError(what, "give that one as bundle=, or make the labels again with `musictx probe`")
        embedder = Embedder(model, tokenizer, bundle=bundle)
        if not (1 <= self.about.layer < model.config.n_layers and len(self.layer.mean) == model.config.d_model):
            raise BundleError(f"{path} is damaged: the model has no such layer", AGAIN)
        embedder.layer = self.about.layer
        return embedder


LARGEST_VALUE, SMALLEST_SCALE = 1e6, 1e-6


def load_probe(path: Path) -> Probe:
    """Reads a file of labels. Raises BundleError for a file that is missing, damaged or something else."""
    if not path.is_file():
        raise BundleError(f"{path}: no such file of labels", OURS)
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            if KEY not in metadata:
                raise BundleError(f"{path} is a safetensors file, but has no labels", OURS)
            about = _read_about(metadata[KEY])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no dict
        K, (C,) = len(about.labels), tensors["mean"].shape
        shapes = {"weight": (K, C), "bias": (K,), "mean": (C,), "scale": (C,)}
        if {name: tensor.shape for name, tensor in tensors.items()} != shapes:
            raise ValueError(f"{K} labels, and tensors for other numbers")
        layer = Layer(**tensors)
        is_finite = all(x.dtype == np.float32 and (abs(x) <= LARGEST_VALUE).all() for x in layer)  # refuses NaN too
        if not is_finite or not (layer.scale >= SMALLEST_SCALE).all():
            raise ValueError("its tensors have impossible values")
    except DAMAGE as error:
        raise BundleError(f"{path} is damaged or no file of labels ({reason(error)})", OURS) from None
    return Probe(layer, about)


def _read_about(text: str) -> About:
    """Raises one of `DAMAGE`."""
    about = About(**all_printable(json.loads(text)))
    if not fits(about, About):
        raise ValueError("its header has values of other types")
    if about.format > FORMAT:
        raise ValueError(f"format {about.format}, this version reads up to {FORMAT}")
    is_distinct = len(about.labels) == len(set(about.labels)) > 1
    if not (is_distinct and 1 <= about.passage_seconds <= MOST_SECONDS):
        raise ValueError("its header has impossible values")
    return about
