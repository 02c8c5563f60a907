"""The table of lower bounds: what each is, and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from sortedf.bounds.options import BoundOptions
from sortedf.instance import Instance
from sortedf.registry import Table

if TYPE_CHECKING:
    from sortedf.certificate import AnyCertificate
    from sortedf.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the TEL of every feasible schedule of an instance.

    Attributes
    ----------
    value : int
        In steps.
    certificate : AnyCertificate, optional
        What anybody can check it by, where there is that: see `sortedf.certificate`.
    schedule : Schedule, optional
        The best one that was seen on the way, where one was looked for.
    interrupted : bool
        Whether Ctrl-C ended it; the value is the best that was proven until then.
    method : str
        Name of the bound; `sortedf.bound` fills it in, and the next two.
    runtime_s : float
    found_by : str, optional
        Name of the bound that saw the schedule.
    """

    value: int
    certificate: AnyCertificate | None = None
    schedule: Schedule | None = None
    interrupted: bool = False
    method: str = ""
    runtime_s: float = 0.0
    found_by: str | None = None


class Stage(IntEnum):
    """When "auto" takes a bound: the quick ones first."""

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
    """A bound with what people want to know before they choose it.

    Attributes
    ----------
    prove : Prover
    about : str
        What it is, in a few words.
    cost : str
        Time as a function of the size.
    certified : bool
        Whether it comes with a certificate, at every instance.
    quick : Quick, optional
        Where "auto" takes it; nowhere if left out.
    stage : Stage
        When "auto" does.
    """

    prove: Prover
    about: str
    cost: str
    certified: bool = True
    quick: Quick | None = None
    stage: Stage = Stage.CLOSED_FORM


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
) -> Callable[[Prover], Prover]:
    """Return a decorator that enters a bound into the table."""

    def add(prove: Prover) -> Prover:
        method = BoundMethod(prove, about, cost, certified, quick, stage)
        BOUNDS.register(name)(method)
        return prove

    return add


def bound_method(name: str) -> BoundMethod:
    """Return a bound of the table, or raise a ValueError that lists all names."""
    return BOUNDS.find(name, also=("auto",))


def quick_bounds(
    instance: Instance, time_limit: float | None, *, certified: bool = False
) -> list[str]:
    """Names of the bounds that "auto" takes the best of, in the order it does.

    Parameters
    ----------
    instance : Instance
    time_limit : float, optional
        Seconds for all of them.
    certified : bool
        Only those that come with a certificate.
    """
    names = [
        name
        for name, method in BOUNDS.items()
        if method.quick is not None
        and method.quick(instance, time_limit)
        and (method.certified or not certified)
    ]
    return sorted(names, key=lambda name: BOUNDS[name].stage)


def certified_bounds() -> list[str]:
    """Names that a certificate can be asked of."""
    return ["auto", *(name for name, method in BOUNDS.items() if method.certified)]
