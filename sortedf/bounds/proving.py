"""`bound`: a lower bound by name, or the best of those that are quick.

A stream is cut into independent segments (`sortedf.segments`), each is bounded by
itself, and the bounds are added up.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sortedf.bounds.options import BoundOptions
from sortedf.bounds.table import BOUNDS, Bound, Stage, bound_method, quick_bounds
from sortedf.certificate import SumCertificate, SumPart, instance_hash
from sortedf.errors import TooLargeError
from sortedf.instance import require_instance
from sortedf.segments import horizon, joined, segments

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sortedf.instance import Instance
    from sortedf.segments import Segment

CLIMB_UP_TO = 300
"""Requests up to which "auto" climbs to the best prices without a time limit; with
twice as many it climbs a quarter as long, and so on.

Up to there it takes about a second and lifts the fluid bound by 1 to 30 %; at 2,000
requests of a real mix it is 0.15 %.
"""

CLIMB_TIME_LIMIT_S = 10.0
"""Seconds after which "auto" stops climbing on a slow machine, without a time limit;
and seconds for all segments of a stream together.
"""

FEW = 40
LONG = 30_000
"""Steps above which so few requests are climbed for `LONG_TIME_LIMIT_S` at most."""

LONG_TIME_LIMIT_S = 2.0
"""Seconds after which "auto" stops climbing then, without a time limit."""


def bound(
    instance: Instance,
    method: str = "auto",
    *,
    time_limit: float | None = None,
    target: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    certified: bool = False,
) -> Bound:
    """Prove a lower bound on the TEL of every feasible schedule.

    Parameters
    ----------
    instance : Instance
    method : str
        A name in `BOUNDS`, or "auto": the best of those that are quick at the size.
        Growth rows strengthen it beyond the linear relaxation. With few requests, or
        within a given time limit, the prices are improved step by step; with up to 40
        requests it is a branch and bound, unless they take very long.
    time_limit : float, optional
        Seconds after which an iterative bound gives its best so far.
    target : int, optional
        Value at which an iterative bound stops.
    progress : callable, optional
        Called as `progress(bound so far, 0)` by iterative bounds.
    certified : bool
        Let "auto" choose only among bounds that come with a certificate: not
        "branching", which is a search.

    Returns
    -------
    Bound
        If a stream has several independent segments, the sum of their bounds, with the
        sum of their certificates.

    Raises
    ------
    ValueError
        If the method is unknown, with the list of known ones.
    TooLargeError
        If it does not take so many requests.

    Examples
    --------
    >>> from sortedf import Instance, bound
    >>> inst = Instance(prefill=[5, 6, 1], decode=[3, 2, 1], kv_budget=10)
    >>> bound(inst, "fluid").value
    7
    """
    began = time.perf_counter()
    require_instance(instance)
    options = BoundOptions(time_limit_s=time_limit, progress=progress, target=target)
    parts = segments(instance)
    found = prove(parts, method, options, certified=certified)
    return replace(
        together(instance, parts, found), runtime_s=time.perf_counter() - began
    )


def prove(
    parts: Sequence[Segment],
    method: str,
    options: BoundOptions,
    *,
    certified: bool = False,
) -> list[Bound]:
    """Bound each segment within its share of the time.

    When the time is over, or after Ctrl-C, the others are bounded in closed form.

    Parameters
    ----------
    parts : sequence of Segment
    method, certified
        As for `bound`.
    options : BoundOptions
        Its target, which is for the whole, is used only if there is one segment.
    """
    if method != "auto":
        bound_method(method)  # raises if there is none
    if len(parts) == 1:
        return [_prove(parts[0].instance, method, options, certified)]
    if options.time_limit_s is None:
        options = options.within(CLIMB_TIME_LIMIT_S)
    left = sum(part.instance.num_requests for part in parts)
    found: list[Bound] = []
    value, interrupted = 0, False
    for part in parts:
        n = part.instance.num_requests
        own = options.with_share_of_time(n / left)
        own = replace(own, target=None, progress=None, shared={})
        over = interrupted or options.out_of_time()
        quickest = "fluid" if part.instance.prefixes is None else "equal-charges"
        name = quickest if over and method == "auto" else method
        found.append(_prove(part.instance, name, own, certified))
        interrupted = interrupted or found[-1].interrupted
        left -= n
        value += found[-1].value
        options.report(value, 0)
    return found


def together(
    instance: Instance, parts: Sequence[Segment], found: Sequence[Bound]
) -> Bound:
    """Add up the bounds of all segments, their certificates and their schedules."""
    if parts[0].instance is instance:
        return found[0]
    largest = max(found, key=lambda bound: bound.value)
    value = sum(bound.value for bound in found)
    proofs = [
        SumPart(part.ids, bound.certificate)
        for part, bound in zip(parts, found, strict=True)
        if bound.certificate is not None
    ]
    certificate, schedule = None, None
    if len(proofs) == len(parts):
        certificate = SumCertificate(instance_hash(instance), value, tuple(proofs))
    schedules = [bound.schedule for bound in found if bound.schedule is not None]
    if len(schedules) == len(parts):
        schedule = joined(instance, parts, schedules)
    return Bound(
        value,
        certificate,
        schedule,
        interrupted=any(bound.interrupted for bound in found),
        method=largest.method,
        found_by=None if schedule is None else largest.found_by,
    )


def _prove(
    instance: Instance, method: str, options: BoundOptions, certified: bool
) -> Bound:
    """Bound one segment."""
    if method == "auto":
        return _auto(instance, options, certified)
    if instance.prefixes is not None and not BOUNDS[method].shared:
        known = ", ".join(["auto", *(n for n, other in BOUNDS.items() if other.shared)])
        raise ValueError(
            f"the bound {method!r} does not know shared prefixes; choose one of: "
            f"{known}."
        )
    if not BOUNDS[method].takes(instance):
        raise TooLargeError(
            f"the bound {method!r} is for up to {BOUNDS[method].most_requests} "
            f"requests, not {instance.num_requests:,}."
        )
    return _best_of([(method, options)], instance)


def _best_of(asked: list[tuple[str, BoundOptions]], instance: Instance) -> Bound:
    """Best of some bounds, with the best schedule that any of them has found.

    Ties go to the first. No further bound starts once one reaches the target, was
    interrupted, or has found a schedule of its own value.
    """
    proven: list[Bound] = []
    for name, options in asked:
        found = BOUNDS[name].prove(instance, options)
        proven.append(replace(found, method=name))
        optimal = found.schedule is not None and found.schedule.tel == found.value
        if found.interrupted or optimal or options.reached(found.value):
            break
    best = max(proven, key=lambda bound: bound.value)
    seen = [(b.schedule, b.method) for b in proven if b.schedule is not None]
    schedule, found_by = min(seen, key=lambda pair: pair[0].tel, default=(None, None))
    interrupted = proven[-1].interrupted
    return replace(best, schedule=schedule, found_by=found_by, interrupted=interrupted)


def _auto(instance: Instance, options: BoundOptions, certified: bool) -> Bound:
    """Best of the bounds that are quick at the size."""
    within = options
    if options.time_limit_s is None:
        within = replace(
            options, time_limit_s=_usual_limit(instance), effort=_usual_effort(instance)
        )
    names = quick_bounds(instance, options.time_limit_s, certified=certified)
    asked = [
        # Without a limit searches count their nodes, so that they repeat.
        (name, options if BOUNDS[name].stage is Stage.SEARCH else within)
        for name in names
    ]
    return _best_of(asked, instance)


def _usual_effort(instance: Instance) -> float:
    """Share of all steps of a climb without a time limit."""
    return min(1.0, (CLIMB_UP_TO / max(instance.num_requests, 1)) ** 2)


def _usual_limit(instance: Instance) -> float:
    """Largest number of seconds for climbing without a time limit."""
    long = instance.num_requests <= FEW and horizon(instance) > LONG
    return LONG_TIME_LIMIT_S if long else CLIMB_TIME_LIMIT_S
