"""Result of a solve: a schedule, its value, a lower bound and a status."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sortedf.improve.objective import Objective
    from sortedf.schedule import Schedule


class Status(StrEnum):
    """How a solve ended."""

    OPTIMAL = "optimal"
    """The schedule's TEL, or its other objective, equals a proven lower bound."""
    FEASIBLE = "feasible"
    """The method finished; its schedule is feasible."""
    TIME_LIMIT = "time_limit"
    """A limit or Ctrl-C ended the search; the schedule is the best one found.

    The limit is the time limit or, without one, a method's own, such as the number of
    nodes of "branching".
    """


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A schedule with a certified gap.

    Besides the attributes listed it has `tel` and `mean_latency`, its total and mean
    latency in steps, and `gap`, the relative distance to the lower bound.

    Attributes
    ----------
    schedule : Schedule
    method : str
        Name of the requested method.
    found_by : str
        Name of the list rule or search that produced the schedule; differs from
        `method` if that chooses among several.
    backfill : int or None
        Window of the placement that produced the schedule; None if it is not the
        result of a placement.
    status : Status
    lower_bound : int or None
        Proven lower bound on the TEL, or the other objective, of every feasible
        schedule; None if no bound was requested.
    bound_method : str
        Name of the bound, or "none".
    runtime_s : float
        Seconds of wall time for the schedule, without the bound.
    objective : Objective, optional
        Objective that was minimised; TEL if None.

    Examples
    --------
    >>> from sortedf import Instance, solve
    >>> instance = Instance(prefill=[5, 6, 1], decode=[3, 2, 1], kv_budget=10)
    >>> result = solve(instance, method="fcfs")
    >>> result.tel, result.mean_latency, result.lower_bound, result.gap
    (12, 4.0, 8, 0.5)
    """

    schedule: Schedule
    method: str
    found_by: str
    backfill: int | None
    status: Status
    lower_bound: int | None
    bound_method: str
    runtime_s: float
    objective: Objective | None = None

    @property
    def value(self) -> int:
        """Value of the objective; TEL without one."""
        return (
            self.tel if self.objective is None else self.objective.value(self.schedule)
        )

    @property
    def over_cap(self) -> int:
        """Requests above the objective's cap on latency, beyond the allowed number."""
        return 0 if self.objective is None else self.objective.excess(self.schedule)

    @property
    def tel(self) -> int:
        """Total end-to-end latency in steps."""
        return self.schedule.tel

    @property
    def mean_latency(self) -> float:
        """`tel / n` in steps."""
        return self.schedule.mean_latency

    @property
    def gap(self) -> float | None:
        """`(value - lower_bound) / lower_bound`; None without a bound."""
        return gap(self.value, self.lower_bound)

    def summary(self) -> str:
        """Summary in one line."""
        certified = ""
        if self.gap is not None:
            certified = f", at most {self.gap:.2%} above the best possible"
        return (
            f"{self.method}: mean latency {self.mean_latency:,.1f} steps, makespan "
            f"{self.schedule.makespan:,} ({self.status}{certified})"
        )


def gap(tel: int, lower_bound: int | None) -> float | None:
    """`(tel - lower_bound) / lower_bound`; 0 where both are 0, None without a bound."""
    if lower_bound is None:
        return None
    return (tel - lower_bound) / lower_bound if lower_bound else 0.0
