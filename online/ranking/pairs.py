"""Informative pairs of prompts: those whose answer lengths differ enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from online.ranking.rows import Prompts

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def informative_pairs(length: Floats, delta: float) -> tuple[Ints, Ints]:
    """All pairs whose lengths differ by at least `delta` of the longer one.

    Returns
    -------
    longer, shorter : int64 arrays
        Positions. Equal lengths are never a pair, for any `delta`.

    Examples
    --------
    >>> informative_pairs(np.array([100.0, 85.0, 50.0]), 0.2)
    (array([0, 1]), array([2, 2]))
    """
    difference = length[:, None] - length[None, :]
    wanted = (difference > 0) & (difference >= delta * length[:, None])
    longer, shorter = np.nonzero(wanted)
    return longer, shorter


def num_informative(length: Floats, delta: float) -> int:
    """Count the pairs of `informative_pairs` in `O(n log n)`."""
    ascending = np.sort(length)
    # The same comparisons as above; for each entry they hold up to some position.
    count = 0
    for longest in ascending:
        low, high = 0, len(ascending)
        while low < high:
            middle = (low + high) // 2
            difference = longest - ascending[middle]
            if difference > 0 and difference >= delta * longest:
                low = middle + 1
            else:
                high = middle
        count += low
    return count


def check_informative(prompts: Prompts, delta: float) -> int:
    """Count the informative pairs; raise if there are none.

    Raises
    ------
    RankingError
        If no pair differs by `delta`.
    """
    count = num_informative(prompts.length, delta)
    if count == 0:
        raise RankingError(
            f"{prompts.name}: no two of the {len(prompts):,} training prompts have "
            f"lengths that differ by a share of {delta:g}; nothing can be learned with "
            "such a delta."
        )
    return count


def epoch_batches(n: int, batch_size: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Divide a random order of prompts into batches of at least two.

    Prompts are paired within their batch, so a batch of `b` prompts costs `b` runs of
    the encoder and gives up to `b (b - 1) / 2` pairs; each epoch has different pairs.
    """
    order = rng.permutation(n)
    cuts = list(range(batch_size, n, batch_size))
    if cuts and n - cuts[-1] < 2:
        cuts.pop()  # a single remaining prompt joins the previous batch
    yield from np.split(order, cuts)
