"""Distribution of the lengths of completed answers, and what it predicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class AnswerLengths:
    """Lengths of completed answers, in a histogram with one bin per length.

    They are added in batches that grow with their number, so that the cost per answer
    does not grow with the uptime of a server. No distribution is assumed.

    Parameters
    ----------
    largest : int
        Largest length distinguished; longer answers count as this.
    least : int
        Answers in the first batch.

    Attributes
    ----------
    count : int
        Number of answers added.
    mean, square : float
        Means of their lengths and of the squared lengths.
    longest : int
    """

    def __init__(self, largest: int, least: int = 1) -> None:
        for name, value in (("longest", largest), ("least", least)):
            if value < 1:
                raise ValueError(f"{name} = {value} but must be at least 1.")
        self.count = 0
        self.mean = 1.0
        self.square = 1.0
        self.longest = 1
        self._largest = largest
        self._least = least
        self._new: list[int] = []
        self._times: Ints = np.zeros(largest + 1, dtype=np.int64)
        self._above: Ints = self._times
        self._left: Floats | None = None
        self._fresh: int | None = None

    def observe(self, lengths: Sequence[int]) -> None:
        """Add the lengths of completed answers, or keep them for the next batch."""
        self._new += [min(length, self._largest) for length in lengths]
        if len(self._new) < max(self._least, self.count // 8):
            return
        batch = np.array(self._new, dtype=np.int64)
        self._new = []
        self._times += np.bincount(batch, minlength=self._largest + 1)
        self._above = self._times.sum() - np.cumsum(self._times)
        self._left = self._fresh = None
        self.count += len(batch)
        weight = len(batch) / self.count
        squares = batch.astype(np.float64) ** 2
        self.mean += weight * (float(batch.mean()) - self.mean)
        self.square += weight * (float(squares.mean()) - self.square)
        self.longest = max(self.longest, int(batch.max()))

    def predict(self, output_tokens: int = 0) -> int | None:
        """Predict the length of an answer from its tokens so far; None without data."""
        if not self.count:
            return None
        if output_tokens:
            return self._expect(output_tokens)
        if self._fresh is None:  # cached: needed for each arriving request
            self._fresh = self._expect(0)
        return self._fresh

    def remaining(self, output_tokens: Ints) -> Floats:
        """Mean of `o - output_tokens` over the observed answers that are longer.

        If there are none, the expectation is as many further tokens as there are, and
        at least one.
        """
        if self._left is None:
            length = np.arange(self._largest + 1)
            tokens = self._times * length
            longer = tokens.sum() - np.cumsum(tokens)  # in answers longer than this
            unseen = np.maximum(length, 1).astype(np.float64)
            mean = longer / np.maximum(self._above, 1) - length
            self._left = np.where(self._above > 0, mean, unseen)
        return np.asarray(self._left[np.minimum(output_tokens, self._largest)])

    def go_on(self, output_tokens: Ints, ahead: Ints) -> Floats:
        """Probability that an answer has more than `output_tokens + ahead` tokens.

        The share among the observed answers longer than `output_tokens`. If there are
        none, the answer is assumed to double its tokens.

        Parameters
        ----------
        output_tokens : int64 array, shape (n,)
        ahead : int64 array, shape (k,)

        Returns
        -------
        float64 array, shape (n, k)
        """
        then = output_tokens[:, None] + ahead[None, :]
        above = self._above[np.minimum(output_tokens, self._largest)][:, None]
        later = self._above[np.minimum(then, self._largest)]
        beyond = ahead[None, :] < np.maximum(output_tokens, 1)[:, None]
        return np.where(above > 0, later / np.maximum(above, 1), beyond)

    def _expect(self, output_tokens: int) -> int:
        left = self.remaining(np.array([output_tokens], dtype=np.int64))
        return output_tokens + math.ceil(float(left[0]))
