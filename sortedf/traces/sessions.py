"""Sessions: requests that arrive only after an earlier one has completed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

BOUNDARY_TOLERANCE = 1e-6
"""Part of a step by which a request may miss the step's start and count as on time.

In floating point 10.3 s - 10 s is 3.000000000000007 steps of 0.1 s: without a tolerance
the rounding error would delay that request by a whole step.
"""

FIRST_TURN = -1
"""Entry of `Sessions.previous` for a request that follows no other."""


@dataclass(frozen=True, slots=True, eq=False)
class Sessions:
    """Conversations: a turn arrives some time after the turn before it has completed.

    Checked once, then read-only.

    Parameters
    ----------
    previous : array_like of int, shape (n,)
        Position of the turn before each request, which comes earlier in the trace;
        `FIRST_TURN` for a request that arrives at a time of its own.
    think_s : array_like of float, shape (n,)
        Seconds from the end of that turn to the arrival; ignored for first turns.
    is_recorded : bool
        Whether the trace also has the arrival times of later turns as they were
        recorded. Otherwise they depend on the schedule.

    Raises
    ------
    ValueError
        If an entry is out of range; the message names it.
    """

    previous: NDArray[np.int64]
    think_s: NDArray[np.float64]
    is_recorded: bool = False

    def __post_init__(self) -> None:
        previous = np.array(self.previous, dtype=np.int64)
        think_s = np.array(self.think_s, dtype=np.float64)
        if previous.ndim != 1 or previous.shape != think_s.shape:
            raise ValueError(
                f"previous and think_s have shapes {previous.shape} and "
                f"{think_s.shape} but must be lists of equal length."
            )
        bad = (previous < FIRST_TURN) | (previous >= np.arange(len(previous)))
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(
                f"previous[{i}] = {previous[i]} but must be an earlier position, or "
                f"{FIRST_TURN} for a first turn."
            )
        bad = ~((think_s >= 0) & np.isfinite(think_s))
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(
                f"think_s[{i}] = {think_s[i]} but must be a number of seconds, at "
                "least 0."
            )
        for name, array in (("previous", previous), ("think_s", think_s)):
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    def __reduce__(self) -> tuple[type[Sessions], tuple[Any, ...]]:
        # Default pickling would restore writeable arrays.
        return Sessions, (self.previous, self.think_s, self.is_recorded)

    def __len__(self) -> int:
        return len(self.previous)

    @property
    def is_first(self) -> NDArray[np.bool_]:
        """Which requests are first turns."""
        return np.asarray(self.previous == FIRST_TURN)

    @classmethod
    def of_recorded(
        cls, turn: Sequence[int], before: Sequence[int], arrival_s: ArrayLike
    ) -> Sessions:
        """Find the sessions of a trace that names turns and records all arrivals.

        Traces do not have the time at which a turn ended, so the whole time between
        two arrivals counts as think time, which is too long by the service.

        Parameters
        ----------
        turn, before : sequence of int
            Name of each request, and of the turn before it. One that no earlier request
            has stands for a turn outside the trace, or for none.
        arrival_s : array_like of float, shape (n,)
        """
        times = np.asarray(arrival_s, dtype=np.float64)
        known: dict[int, int] = {}
        previous = []
        for i, (own, earlier) in enumerate(zip(turn, before, strict=True)):
            previous.append(known.get(earlier, FIRST_TURN))
            known[own] = i
        found = np.array(previous, dtype=np.int64)
        later = np.maximum(times - times[found], 0.0)
        return cls(found, np.where(found == FIRST_TURN, 0.0, later), is_recorded=True)

    def in_steps(self, step_s: float) -> Sessions:
        """Convert think times from seconds to whole steps, rounded up."""
        steps = np.ceil(self.think_s / step_s - BOUNDARY_TOLERANCE)
        return Sessions(self.previous, np.maximum(steps, 0.0), self.is_recorded)

    def subset(self, keep: NDArray[np.int64]) -> Sessions:
        """Keep some requests, in increasing order of their positions.

        A turn whose predecessor is left out follows the one before that, with the think
        times of both; without any it becomes a first turn.
        """
        place = np.full(len(self) + 1, FIRST_TURN, dtype=np.int64)
        place[keep] = np.arange(len(keep))
        nearest, more_s = self.previous.copy(), self.think_s.copy()
        for i in range(len(self)):
            before = self.previous[i]
            if before != FIRST_TURN and place[before] == FIRST_TURN:
                nearest[i] = nearest[before]
                more_s[i] += more_s[before]
        return Sessions(place[nearest[keep]], more_s[keep], self.is_recorded)
