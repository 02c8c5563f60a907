"""What a solver gives back: a schedule, how good it is, and how good it could be."""

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
    """The schedule's TEL, or what else was minimised, equals a proven lower bound."""
    FEASIBLE = "feasible"
    """The method finished; its schedule keeps every rule."""
    TIME_LIMIT = "time_limit"
    """A limit or Ctrl-C ended the search; the schedule is the best one until then.

    The limit is that on time, or where none was given, a method's own, such as that on
    the nodes of "branching".
    """


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """A schedule with its certificate.

    Besides what is listed here it has `tel` and `mean_latency`, its total and
    mean latency in steps, and `gap`, how far the schedule is at most above the best
    possible, as a part of the bound.

    Attributes
    ----------
    schedule : Schedule
    method : str
        Name of the method that was asked for.
    found_by : str
        Name of the list rule, or of the search, that the schedule comes from; another
        one than `method` where that chooses among several.
    backfill : int or None
        Window of the placement that the schedule comes from; None if it comes from
        none.
    status : Status
    lower_bound : int or None
        Proven lower bound on the TEL of every feasible schedule, or on what else was
        minimised; None if none was asked for.
    bound_method : str
        Name of the bound, or "none".
    runtime_s : float
        Seconds of wall time for the schedule, without the bound.
    objective : Objective, optional
        What was minimised; TEL if None.

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
        """What was minimised: TEL, or what the objective says."""
        return (
            self.tel if self.objective is None else self.objective.value(self.schedule)
        )

    @property
    def over_cap(self) -> int:
        """How many requests more miss the objective's cap on latency than may."""
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
        """One line for people."""
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
