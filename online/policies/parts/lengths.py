"""Answer lengths used by a policy: as predicted, or raised when exceeded."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from online.policies.parts.by_id import grown, newcomers
from online.requests import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.state import State

    Ints = NDArray[np.int64]


class Lengths(Protocol):
    """Lengths by id of all requests."""

    by_id: Ints

    def update(self, state: State) -> None:
        """Update from a snapshot."""
        ...

    def same_until(self, state: State, start: Sequence[int]) -> float:
        """Step before which they do not change without an event other than `start`."""
        ...


class PredictedLengths:
    """The lengths given with the requests, true or predicted."""

    def __init__(self) -> None:
        self.by_id: Ints = np.zeros(0, dtype=np.int64)

    def update(self, state: State) -> None:
        """Update from a snapshot."""
        self.by_id = state.requests.predicted

    def same_until(self, state: State, start: Sequence[int]) -> float:
        """Return infinity: they change only by events."""
        return math.inf


class Raised:
    """Predicted lengths, raised to the tokens known to be needed: A-min's estimates.

    An unfinished request with `j` output tokens needs at least `j + 1`, and keeps that
    estimate if an eviction loses the tokens.

    Parameters
    ----------
    factor : float
        Multiple of the tokens known to be needed to which an exceeded estimate is
        raised; 1 is A-min.
    """

    def __init__(self, factor: float = 1.0) -> None:
        if not (math.isfinite(factor) and factor >= 1):
            raise ValueError(f"factor = {factor} but must be a number from 1 on.")
        self.factor = factor
        self._raised: Ints = np.zeros(0, dtype=np.int64)
        self.by_id = self._raised

    def update(self, state: State) -> None:
        """Update from a snapshot."""
        self._raised = grown(self._raised, state)
        if state.joined:
            fresh = newcomers(state)
            self._raised[fresh] = state.requests.predicted[fresh]
        for i in state.changed:
            if state.requests.preemptions[i] == 0:  # else the raised value is newer
                self._raised[i] = state.requests.predicted[i]
        running = state.running
        needed = state.requests.output_tokens[running] + 1
        outlived = needed > self._raised[running]
        raised = np.ceil(self.factor * needed[outlived])
        raised = np.minimum(raised, UNKNOWN).astype(np.int64)
        self._raised[running[outlived]] = raised
        # Read-only like predicted lengths, so that the kernel is compiled only once.
        self.by_id = self._raised.view()
        self.by_id.flags.writeable = False

    def same_until(self, state: State, start: Sequence[int]) -> float:
        """Step in which the first running request exceeds its estimate.

        With `factor` 1, raising an estimate in every step or once is equivalent.
        """
        ids = np.append(state.running, np.array(start, dtype=np.int64))
        if self.factor == 1 or not len(ids):
            return math.inf
        left = self._raised[ids] - state.requests.output_tokens[ids]
        return state.step + int(left.min())
