"""Simple rankers as baselines for a trained encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.kendall import tau_b
from online.ranking.features import features
from online.ranking.libraries import load
from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from online.ranking.embedding import Embedding
    from online.ranking.rows import Prompts

    Floats = NDArray[np.float64]
    Scorer = Callable[[Sequence[str]], Floats]
    Fit = Callable[[Prompts, Prompts, Embedding, int], Scorer]

RIVALS: Table[Fit] = Table("rival")
"""Baselines by name; each takes the training and validation prompts, the embedding of
the untrained encoder, and a seed, and returns a function from prompts to scores."""

NEIGHBOURS = (5, 10, 20, 40)
"""Numbers of neighbours, of which the best on the validation part is used."""

MOST_COSINES = 5_000_000


@RIVALS.register("prompt-length")
def prompt_length(
    train: Prompts, validation: Prompts, embedding: Embedding, seed: int
) -> Scorer:
    """Characters of the prompt, with the sign that fits the training part."""
    sign = 1.0 if tau_b(_letters(train.text), train.length) >= 0 else -1.0
    return lambda texts: sign * _letters(texts)


@RIVALS.register("boosting")
def boosting(
    train: Prompts, validation: Prompts, embedding: Embedding, seed: int
) -> Scorer:
    """Gradient boosting of the log length on text features."""
    model = load("sklearn.ensemble").HistGradientBoostingRegressor(
        max_iter=200,
        learning_rate=0.05,
        max_leaf_nodes=15,
        min_samples_leaf=min(20, max(1, len(train) // 10)),
        early_stopping=False,
        random_state=seed,
    )
    model.fit(features(train.text), np.log(train.length))
    return lambda texts: np.asarray(model.predict(features(texts)), dtype=np.float64)


@RIVALS.register("neighbours")
def neighbours(
    train: Prompts, validation: Prompts, embedding: Embedding, seed: int
) -> Scorer:
    """Weighted mean log length of the nearest training prompts.

    Neighbours and weights are by the cosine of the encoder's embeddings; their number
    is chosen on the validation part.
    """
    known, logs = embedding(train.text), np.log(train.length)

    def score(texts: Sequence[str], count: int) -> Floats:
        vectors = embedding(texts)
        # In parts, to limit the size of the table of cosines.
        parts = -(-len(texts) * len(known) // MOST_COSINES)
        near = [mean_of_nearest(part, count) for part in np.array_split(vectors, parts)]
        return np.concatenate(near)

    def mean_of_nearest(vectors: Floats, count: int) -> Floats:
        near = vectors @ known.T
        nearest = np.argsort(-near, axis=1, kind="stable")[:, :count]
        weight = np.maximum(np.take_along_axis(near, nearest, axis=1), 1e-6)
        return np.asarray((weight * logs[nearest]).sum(axis=1) / weight.sum(axis=1))

    def quality(count: int) -> float:
        return tau_b(score(validation.text, count), validation.length)

    best = max((min(count, len(train)) for count in NEIGHBOURS), key=quality)
    return lambda texts: score(texts, best)


def _letters(texts: Sequence[str]) -> Floats:
    return np.array([len(text) for text in texts], dtype=np.float64)
