"""Objectives of the search, and a cap on latency."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import MAX_TOKENS, checked_int, frozen_ints

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sortedf.instance import Instance
    from sortedf.schedule import Schedule


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """TEL, weighted TEL or makespan, optionally with a cap on latency.

    Attributes
    ----------
    weight : int64 array, shape (n,), optional
        Cost of a step of latency of each request; all 1 if left out, which is TEL.
    makespan : bool
        Minimise the step of the last completion instead of latency.
    max_latency : int, optional
        Cap on the steps from arrival to completion.
    share : float
        Share of the requests that must satisfy `max_latency`: 0.99 caps the P99.

    Raises
    ------
    ValueError, TypeError
        If one of them is out of range, or weights are given for the makespan.
    """

    weight: NDArray[np.int64] | None = None
    makespan: bool = False
    max_latency: int | None = None
    share: float = 1.0

    if TYPE_CHECKING:  # accepted types; the fields above have the converted ones

        def __init__(
            self,
            weight: ArrayLike | None = None,
            makespan: bool = False,
            max_latency: int | None = None,
            share: float = 1.0,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.weight is not None:
            weight = frozen_ints("weight", self.weight, minimum=0, maximum=MAX_TOKENS)
            put(self, "weight", weight)
            if self.makespan:
                raise ValueError("weight has no meaning for the makespan.")
        if self.max_latency is not None:
            cap = checked_int("max_latency", self.max_latency, minimum=1, maximum=2**53)
            put(self, "max_latency", cap)
        if isinstance(self.share, bool) or not 0 < self.share <= 1:
            raise ValueError(f"share = {self.share} but must be above 0 and at most 1.")

    def weights(self, instance: Instance) -> NDArray[np.int64]:
        """Weight of each request's latency; 0 for the makespan."""
        n = instance.num_requests
        if self.weight is None:
            return np.full(n, 0 if self.makespan else 1, dtype=np.int64)
        if len(self.weight) != n:
            raise ValueError(
                f"weight has {len(self.weight)} entries but there are {n} requests."
            )
        return self.weight

    @property
    def is_tel(self) -> bool:
        """Whether it is TEL, with or without a cap on latency."""
        return self.weight is None and not self.makespan

    def may_be_late(self, num_requests: int) -> int:
        """Return the number of requests that may exceed `max_latency`."""
        # As a decimal: 0.99 in binary is inexact, and 1 of 100 could become 0.
        return int((1 - Fraction(str(self.share))) * num_requests)

    def value(self, schedule: Schedule) -> int:
        """Return the objective of a schedule, in steps: an exact integer."""
        if self.makespan:
            return schedule.makespan
        if self.weight is None:
            return schedule.tel
        pairs = zip(self.weight.tolist(), schedule.latency.tolist(), strict=True)
        return sum(weight * latency for weight, latency in pairs)

    def excess(self, schedule: Schedule) -> int:
        """Count requests above `max_latency` beyond the allowed number."""
        if self.max_latency is None:
            return 0
        late = int(np.count_nonzero(schedule.latency > self.max_latency))
        return max(late - self.may_be_late(len(schedule.start)), 0)

    def rating(self, schedule: Schedule) -> tuple[int, int]:
        """Sort key of schedules, best first: excess over the cap, then value."""
        return self.excess(schedule), self.value(schedule)
