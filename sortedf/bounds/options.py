"""What a caller may ask of any lower bound."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sortedf.time_limit import TimeLimited


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundOptions(TimeLimited):
    """Options of a bound, beside a time limit and a function that is told of progress.

    Iterative bounds call that as `progress(bound so far, 0)`.

    Attributes
    ----------
    target : int, optional
        Lower bound at which an iterative bound is good enough and ends.
    effort : float
        How much of its usual work a climb does, from 0 to 1.
    shared : dict
        What bounds of one call leave for each other, so that none does it again.
    """

    target: int | None = None
    effort: float = 1.0
    shared: dict[str, Any] = field(default_factory=dict, repr=False)

    def reached(self, lower_bound: int) -> bool:
        """Whether a lower bound is good enough."""
        return self.target is not None and lower_bound >= self.target
