"""Options of all lower bounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sortedf.time_limit import TimeLimited


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundOptions(TimeLimited):
    """Options of a bound, beside a time limit and a progress callback.

    Iterative bounds call the callback as `progress(bound so far, 0)`.

    Attributes
    ----------
    target : int, optional
        Lower bound at which an iterative bound stops.
    effort : float
        Share of its usual work that a climb does, from 0 to 1.
    shared : dict
        Intermediate results that the bounds of one call share.
    """

    target: int | None = None
    effort: float = 1.0
    shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def reached(self, lower_bound: int) -> bool:
        """Whether a lower bound is good enough."""
        return self.target is not None and lower_bound >= self.target
