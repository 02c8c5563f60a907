"""MemGuard: coarse attained service, and a minimal run between two evictions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.by_id import grown
from online.policies.parts.geometric import level, threshold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.policies.parts.progress import Progress
    from online.requests import RequestView
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class MemGuard:
    """Rounds attained service down to `k, 2k, 4k, ...` and protects runs in between.

    A request that was started is not evicted before its attained service has reached
    the next threshold, so that it is evicted at most `log2(total work / k) + 1` times.

    Parameters
    ----------
    progress : Progress
        Must be updated before each call.
    first : int
        `k`, in output tokens.
    """

    def __init__(self, progress: Progress, first: int) -> None:
        if not first >= 1:
            raise ValueError(f"first = {first} but must be at least 1 token.")
        self.first = first
        self._progress = progress
        self._at_start: Ints = np.zeros(0, dtype=np.int64)

    def update(self, state: State, retimed: bool) -> None:
        """Update from a snapshot; `retimed` if it has other step times."""
        self._at_start = grown(self._at_start, state)
        if retimed:  # other levels: all count as started now
            ids = np.append(state.waiting, state.running)
            self._at_start[ids] = self._level(state.requests, ids)
        elif state.joined:
            # Attained service is constant while a request waits.
            ids = np.array(state.joined, dtype=np.int64)
            self._at_start[ids] = self._level(state.requests, ids)

    def coarse_s(self, requests: RequestView, ids: Ints) -> Floats:
        """Effective work: attained service rounded down, at least the prompt's."""
        rounded = threshold(self._level(requests, ids), self._first_s())
        return np.maximum(rounded, self._progress.prompt_s(requests, ids))

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Whether each request has not reached the next threshold since its start."""
        return np.asarray(self._level(requests, ids) == self._at_start[ids])

    def same_until(self, state: State) -> float:
        """Step in which the first running request may reach its next threshold."""
        return state.step + self._progress.tokens_to_next(state, self.first)

    def _first_s(self) -> float:
        return self._progress.answer_s(self.first)

    def _level(self, requests: RequestView, ids: Ints) -> Ints:
        return level(self._progress.attained_s(requests, ids), self._first_s())


class NoGuard:
    """Replacement of MemGuard that rounds and protects nothing.

    Parameters
    ----------
    progress : Progress
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def update(self, state: State, retimed: bool) -> None:
        """Update from a snapshot."""

    def coarse_s(self, requests: RequestView, ids: Ints) -> Floats:
        """Effective work: attained service, at least the prompt's."""
        return self._progress.attained_s(requests, ids)

    def protected(self, requests: RequestView, ids: Ints) -> NDArray[np.bool_]:
        """Return False for all requests."""
        return np.zeros(len(ids), dtype=np.bool_)

    def same_until(self, state: State) -> float:
        """Return the current step: work changes with every token."""
        return state.step
