"""The table of lower bounds, and the result of a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from sortedf.bounds.options import BoundOptions
from sortedf.instance import Instance
from sortedf.registry import Table

if TYPE_CHECKING:
    from sortedf.claim import Claim
    from sortedf.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the TEL of every feasible schedule of an instance.

    Attributes
    ----------
    value : int
        In steps.
    certificate : Claim, optional
        An independent proof of the value, if the bound has one: see
        `sortedf.certificate`.
    schedule : Schedule, optional
        The best schedule found meanwhile, if the bound searches for one.
    interrupted : bool
        Whether Ctrl-C ended it; the value is the best proven until then.
    method : str
        Name of the bound; `sortedf.bound` fills it in, and the next two.
    runtime_s : float
    found_by : str, optional
        Name of the bound that found the schedule.
    """

    value: int
    certificate: Claim | None = None
    schedule: Schedule | None = None
    interrupted: bool = False
    method: str = ""
    runtime_s: float = 0.0
    found_by: str | None = None


class Stage(IntEnum):
    """Position of a bound in "auto": the quick ones first."""

    TINY = 0
    CLOSED_FORM = 1
    CLIMB = 2
    SEARCH = 3


Prover: TypeAlias = Callable[[Instance, BoundOptions], Bound]
"""Proves a lower bound on the TEL of an instance."""

Quick: TypeAlias = Callable[[Instance, float | None], bool]
"""Whether a bound is quick at an instance within a time limit, None for none."""


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """A bound and its description.

    Attributes
    ----------
    prove : Prover
    about : str
        Description in a few words.
    cost : str
        Time as a function of the size.
    certified : bool
        Whether it has a certificate at every instance.
    shared : bool
        Whether it holds where prompts share prefixes. "auto" uses such bounds there,
        and the others elsewhere.
    quick : Quick, optional
        Instances at which "auto" uses it; none if left out.
    stage : Stage
        Its position in "auto".
    most_requests : int, optional
        Largest number of requests that it takes.
    """

    prove: Prover
    about: str
    cost: str
    certified: bool = True
    quick: Quick | None = None
    stage: Stage = Stage.CLOSED_FORM
    shared: bool = False
    most_requests: int | None = None

    def takes(self, instance: Instance) -> bool:
        """Whether the instance has few enough requests."""
        most = self.most_requests
        return most is None or instance.num_requests <= most


BOUNDS: Table[BoundMethod] = Table("bound", "sortedf.bounds")
"""Every lower bound, by the name that `bound` takes."""


def always(instance: Instance, time_limit: float | None) -> bool:
    """Quick at every instance."""
    return True


def register_bound(
    name: str,
    *,
    about: str,
    cost: str,
    certified: bool = True,
    quick: Quick | None = None,
    stage: Stage = Stage.CLOSED_FORM,
    shared: bool = False,
    most_requests: int | None = None,
) -> Callable[[Prover], Prover]:
    """Return a decorator that enters a bound into the table."""

    def add(prove: Prover) -> Prover:
        method = BoundMethod(
            prove, about, cost, certified, quick, stage, shared, most_requests
        )
        BOUNDS.register(name)(method)
        return prove

    return add


def bound_method(name: str) -> BoundMethod:
    """Return a bound of the table, or raise a ValueError that lists all names."""
    return BOUNDS.find(name, also=("auto",))


def quick_bounds(
    instance: Instance, time_limit: float | None, *, certified: bool = False
) -> list[str]:
    """Names of the bounds of which "auto" takes the best, in its order.

    Parameters
    ----------
    instance : Instance
    time_limit : float, optional
        Seconds for all of them.
    certified : bool
        Only bounds with a certificate.
    """
    names = [
        name
        for name, method in BOUNDS.items()
        if method.quick is not None
        and method.quick(instance, time_limit)
        and (method.certified or not certified)
        and method.shared == (instance.prefixes is not None)
    ]
    return sorted(names, key=lambda name: BOUNDS[name].stage)


def certified_bounds() -> list[str]:
    """Names of the bounds with a certificate."""
    return ["auto", *(name for name, method in BOUNDS.items() if method.certified)]
