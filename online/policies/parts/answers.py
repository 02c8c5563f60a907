"""Distribution of the lengths of completed answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

LONGEST = 2**16
"""Largest length distinguished; longer answers count as this."""


class Answers:
    """Lengths of the completed answers.

    They are added in batches that grow with their number, so that the cost per answer
    does not grow with the uptime of a server.

    Attributes
    ----------
    count : int
        Number of answers added.
    mean, square : float
        Means of their lengths and of the squared lengths.
    longest : int
    """

    def __init__(self) -> None:
        self.count = 0
        self.mean = 1.0
        self.square = 1.0
        self.longest = 1
        self._new: list[int] = []
        self._times: Ints = np.zeros(LONGEST + 1, dtype=np.int64)
        self._above: Ints = self._times

    def update(self, state: State) -> bool:
        """Update from a snapshot; return whether answers were added."""
        if len(state.ended):
            made = state.requests.output_tokens[np.array(state.ended, dtype=np.int64)]
            self._new += np.minimum(made[made > 0], LONGEST).tolist()
        if len(self._new) < max(1, self.count // 8):
            return False
        lengths = np.array(self._new, dtype=np.int64)
        self._new = []
        self._times += np.bincount(lengths, minlength=LONGEST + 1)
        self._above = self._times.sum() - np.cumsum(self._times)
        self.count += len(lengths)
        weight = len(lengths) / self.count
        squares = lengths.astype(np.float64) ** 2
        self.mean += weight * (float(lengths.mean()) - self.mean)
        self.square += weight * (float(squares.mean()) - self.square)
        self.longest = max(self.longest, int(lengths.max()))
        return True

    def go_on(self, made: Ints, ahead: Ints) -> Floats:
        """Probability that an answer with `made` tokens is longer than `made + ahead`.

        The share among the observed answers longer than `made`. If there are none, the
        answer is assumed to have as many further tokens as were made.

        Parameters
        ----------
        made : int64 array, shape (n,)
        ahead : int64 array, shape (k,)

        Returns
        -------
        float64 array, shape (n, k)
        """
        then = made[:, None] + ahead[None, :]
        above = self._above[np.minimum(made, LONGEST)][:, None]
        later = self._above[np.minimum(then, LONGEST)]
        beyond = ahead[None, :] < np.maximum(made, 1)[:, None]
        return np.where(above > 0, later / np.maximum(above, 1), beyond)
