"""What a schedule is improved for, and what it has to keep."""

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
    """TEL, weighted TEL or makespan, perhaps with a cap on latency.

    Attributes
    ----------
    weight : int64 array, shape (n,), optional
        What a step of latency of each request costs; all 1 if left out, which is TEL.
    makespan : bool
        Minimise the step of the last completion in place of latency.
    max_latency : int, optional
        Most steps from arrival to completion.
    share : float
        Share of the requests that have to keep `max_latency`: 0.99 caps the P99.

    Raises
    ------
    ValueError, TypeError
        If one of them is out of range, or weights are given for the makespan.
    """

    weight: NDArray[np.int64] | None = None
    makespan: bool = False
    max_latency: int | None = None
    share: float = 1.0

    if TYPE_CHECKING:  # what may be given, as against what is then there

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
        """Weight of each request's latency; 0 where only the makespan counts."""
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
        """Whether lower bounds on TEL are about it: no weights, no makespan."""
        return self.weight is None and not self.makespan

    def may_be_late(self, num_requests: int) -> int:
        """How many requests may miss `max_latency`."""
        # As a decimal: in binary, 0.99 is a little less, and 1 of 100 would be none.
        return int((1 - Fraction(str(self.share))) * num_requests)

    def value(self, schedule: Schedule) -> int:
        """Return what is minimised, in steps: an exact integer."""
        if self.makespan:
            return schedule.makespan
        if self.weight is None:
            return schedule.tel
        pairs = zip(self.weight.tolist(), schedule.latency.tolist(), strict=True)
        return sum(weight * latency for weight, latency in pairs)

    def excess(self, schedule: Schedule) -> int:
        """How many requests more miss `max_latency` than may; 0 if it is kept."""
        if self.max_latency is None:
            return 0
        late = int(np.count_nonzero(schedule.latency > self.max_latency))
        return max(late - self.may_be_late(len(schedule.start)), 0)

    def rating(self, schedule: Schedule) -> tuple[int, int]:
        """Sort key of schedules, best first: the cap counts before the value."""
        return self.excess(schedule), self.value(schedule)
