"""The labels of a model that `objective=classify` or `classify_notes` has trained."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from musictx.analysis.embedding import ROWS, Embedder
from musictx.analysis.probe import MOST_SECONDS, About, Layer, Probe
from musictx.errors import BundleError
from musictx.files import fits
from musictx.model.header import AGAIN, BundleHeader, read_header
from musictx.music.score import Score
from musictx.objectives.classify import Classify
from musictx.objectives.classify_notes import ClassifyNotes
from musictx.tokenizers import Tokenizer
from musictx.tokenizers.labels import MOST_LABELS, steps, strikes, struck
from musictx.waiting import estimated

MOST_LENGTH = 2**20  # ids that a model reads at once


class Labeller(Embedder):
    """Ears that hear the logits of the labels: (N, K) in place of a layer's (N, C). Any kind of model has them."""

    def __init__(self, model: Any, tokenizer: Tokenizer) -> None:
        self.model, self.tokenizer, self.labels = model, tokenizer, Classify(tokenizer).labels

    def read(self, batch: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(batch)[..., self.labels]
        return logits


def header_of_labels(path: Path) -> BundleHeader | None:
    """The header of a model that learned labels; None for any other file."""
    try:
        header = read_header(path)
    except BundleError:
        return None
    return header if header.objective.get("name") in (Classify.name, ClassifyNotes.name) else None


def as_probe(header: BundleHeader, path: Path) -> Probe:
    """The labels of a trained model as those of a probe, whose layer changes nothing. Raises BundleError."""
    held_out: Any = header.notes.get("held_out", "not measured, since the training was stopped")
    said: dict[str, Any] = {"labels": None, "seconds": None, "length": None, **header.objective}
    labels, seconds, length = said["labels"], said["seconds"], said["length"]
    numbers = fits(length, int) and 1 < length <= MOST_LENGTH and fits(seconds, float) and 0 < seconds < MOST_SECONDS
    named = fits(labels, list[str]) and 1 < len(set(labels)) == len(labels) <= MOST_LABELS
    if not (named and numbers and header.added == [["LABEL", 0, len(labels) - 1]] and fits(held_out, str)):
        raise BundleError(f"{path}: what its header says of labels is damaged", AGAIN)
    K = len(labels)
    layer = Layer(np.eye(K, dtype=np.float32), *(np.full(K, x, np.float32) for x in (0, 0, 1)))
    return Probe(layer, About(labels, str(path), "", 0, max(float(seconds), 1.0), held_out))


@torch.inference_mode()
def label_notes(ear: Labeller, score: Score, length: int) -> NDArray[np.float64]:
    """(N, K) the logits of each note's labels. The model reads windows of `length` ids. Except in the first,
    only notes of the second half are asked, so each has half a window before it. Raises TokenError for music that it
    cannot write."""
    tokenizer, device = ear.tokenizer, next(ear.model.parameters()).device
    ids = tokenizer.encode(score)
    whole = np.append(tokenizer.vocab.bos, ids).astype(np.int64)
    half = max(length // 2, 1)
    starts = range(0, max(len(whole) - half, 1), half)
    parts = [(start, start + half * (start > 0), min(start + 2 * half, len(whole))) for start in starts]
    longest = max(stop - start for start, _, stop in parts)
    found = np.zeros((len(whole), len(range(*ear.labels.indices(tokenizer.vocab.size)))))
    for first in estimated(range(0, len(parts), ROWS), f"reading {len(score)} notes"):
        windows = [whole[start:stop] for start, _, stop in parts[first : first + ROWS]]
        batch = np.stack(
            [np.pad(window, (0, longest - len(window)), constant_values=tokenizer.vocab.pad) for window in windows]
        )  # (B, T)
        logits = ear.read(torch.as_tensor(batch, device=device)).float().cpu().numpy()
        for (start, asked, stop), row in zip(parts[first : first + ROWS], logits, strict=True):
            found[asked:stop] = row[asked - start : stop - start]
    of_key = dict(zip(struck(tokenizer, ids), found[strikes(tokenizer, ids) + 1], strict=True))
    keys = zip(score.pitch.tolist(), steps(score).tolist(), strict=True)
    return np.array([of_key[key] for key in keys])
