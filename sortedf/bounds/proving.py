"""`bound`: a lower bound by name, or the best of those that are quick."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sortedf.bounds.options import BoundOptions
from sortedf.bounds.table import BOUNDS, Bound, Stage, bound_method, quick_bounds
from sortedf.checker import check
from sortedf.instance import require_instance
from sortedf.segments import horizon, joined, segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from sortedf.instance import Instance
    from sortedf.segments import Segment

CLIMB_UP_TO = 300
"""Requests up to which "auto" climbs to good prices if nobody sets a limit.

Up to there it takes about a second and lifts the fluid bound by 1 to 30 %; at 2,000
requests of a real mix it is 0.15 %.
"""

CLIMB_TIME_LIMIT_S = 10.0
"""Seconds after which "auto" stops climbing on a slow machine."""

APART_UP_TO = 40
"""Requests up to which those that cannot meet are bounded apart."""

LONG = 30_000
"""Steps above which few requests are bounded apart, and "auto" climbs for
`LONG_TIME_LIMIT_S` if nobody sets a limit.
"""

LONG_TIME_LIMIT_S = 2.0
"""Seconds after which "auto" stops climbing for few requests over a long time."""


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
        requests it is a branch and bound, unless they take very long; those of a
        stream are then bounded apart where they cannot meet, with no certificate.
    time_limit : float, optional
        Seconds after which an iterative bound gives its best so far.
    target : int, optional
        A bound that is good enough: an iterative one ends there.
    progress : callable, optional
        Called as `progress(bound so far, 0)` by iterative bounds.
    certified : bool
        Let "auto" choose only among bounds that come with a certificate: not
        "branching", which is a search.

    Returns
    -------
    Bound

    Raises
    ------
    ValueError
        If the method is unknown; the message lists the known ones.

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
    if method != "auto":
        bound_method(method)  # raises if there is none
        found = _best_of([(method, options)], instance)
    elif not certified and (parts := _apart(instance)):
        found = _sum_of(parts, instance, options)
    else:
        found = _auto(instance, options, certified)
    return replace(found, runtime_s=time.perf_counter() - began)


def _best_of(asked: list[tuple[str, BoundOptions]], instance: Instance) -> Bound:
    """Best of some bounds, with the best schedule that any of them has seen.

    Of equal ones it is the first. None is begun any more when one is good enough, or
    has been interrupted.
    """
    proven: list[Bound] = []
    for name, options in asked:
        found = BOUNDS[name].prove(instance, options)
        proven.append(replace(found, method=name))
        if found.interrupted or options.reached(found.value):
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
        within = replace(options, time_limit_s=_usual_limit(instance))
    asked = [
        # Without a limit searches count their nodes, so that they repeat.
        (name, options if BOUNDS[name].stage is Stage.SEARCH else within)
        for name in quick_bounds(instance, options.time_limit_s, certified=certified)
    ]
    return _best_of(asked, instance)


def _usual_limit(instance: Instance) -> float:
    """Seconds for climbing if nobody sets a limit."""
    if instance.num_requests > CLIMB_UP_TO:
        return 0.0
    long = instance.num_requests <= APART_UP_TO and horizon(instance) > LONG
    return LONG_TIME_LIMIT_S if long else CLIMB_TIME_LIMIT_S


def _apart(instance: Instance) -> list[Segment]:
    """Return the segments of few requests that take long, if they are much shorter."""
    steps = horizon(instance)
    if instance.num_requests > APART_UP_TO or steps <= LONG:
        return []
    parts = segments(instance)
    own = sum(horizon(part.instance) for part in parts)
    return parts if 2 * own <= steps else []


def _sum_of(parts: list[Segment], instance: Instance, options: BoundOptions) -> Bound:
    """Bound each segment within its share of the time, and add up.

    After an interrupt the others are bounded in closed form.
    """
    found: list[Bound] = []
    interrupted = False
    for k, part in enumerate(parts):
        if interrupted:
            found.append(_best_of([("fluid", options)], part.instance))
            continue
        share = options.with_share_of_time(1 / (len(parts) - k))
        found.append(_auto(part.instance, replace(share, shared={}), False))
        interrupted = found[-1].interrupted
        options.report(sum(bound.value for bound in found), 0)
    value = sum(bound.value for bound in found)
    largest = max(found, key=lambda bound: bound.value)
    together = Bound(value, method=largest.method, interrupted=interrupted)
    schedules = [bound.schedule for bound in found if bound.schedule is not None]
    if len(schedules) < len(parts):
        return together
    schedule = joined(instance, parts, schedules)
    if not check(instance, schedule).feasible:
        return together
    return replace(together, schedule=schedule, found_by=largest.found_by)


def bound_or_none(
    instance: Instance, method: str, time_limit: float | None
) -> Bound | None:
    """`bound`, or None where the method is "none"."""
    if method == "none":
        return None
    return bound(instance, method, time_limit=time_limit)
