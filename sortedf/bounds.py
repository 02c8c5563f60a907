"""Proven lower bounds on TEL, and the table that `bound` chooses from."""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.certificate import instance_hash
from sortedf.checker import check
from sortedf.instance import require_instance
from sortedf.options import Options
from sortedf.registry import load_plugins, lookup, register
from sortedf.row_certificate import RowCertificate
from sortedf.stretches import horizon, joined, stretches
from sortedf.volume import volume, volume_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sortedf.certificate import AnyCertificate
    from sortedf.instance import Instance
    from sortedf.schedule import Schedule
    from sortedf.stretches import Stretch

SCALE = 2**40
"""Fixed-point scale of one request's share; each is rounded down once."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a bound method gives back.

    Attributes
    ----------
    value : int
        The lower bound, in steps.
    certificate : AnyCertificate, optional
        What anybody can check it by, where the method has that.
    schedule : Schedule, optional
        The best one that was seen on the way, where the method looks for some.
    interrupted : bool
        Whether Ctrl-C ended it; the value is proven all the same.
    """

    value: int
    certificate: AnyCertificate | None = None
    schedule: Schedule | None = None
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class Bound:
    """A lower bound on the TEL of every feasible schedule of an instance.

    Attributes
    ----------
    value : int
        In steps.
    method : str
    runtime_s : float
    certificate : AnyCertificate, optional
        See `sortedf.certificate`.
    schedule : Schedule, optional
        The best one that was seen on the way, where one was looked for.
    found_by : str, optional
        Name of the bound that saw it.
    interrupted : bool
        Whether Ctrl-C ended it; the value is the best that was proven until then.
    """

    value: int
    method: str
    runtime_s: float
    certificate: AnyCertificate | None = None
    schedule: Schedule | None = None
    found_by: str | None = None
    interrupted: bool = False


BOUNDS: dict[str, Callable[[Instance, Options], Proof]] = {}
"""Lower bounds by name."""

CLIMB_UP_TO = 300
"""Requests up to which "auto" climbs to good prices if nobody sets a limit.

Up to there it takes about a second and lifts the fluid bound by 1 to 30 %; at 2,000
requests of a real mix it is 0.15 %.
"""

BRANCH_UP_TO = 40
"""Requests up to which "auto" branches, which often closes the gap within a second."""

CLIMB_TIME_LIMIT_S = 10.0
"""Seconds after which "auto" stops climbing on a slow machine."""

MAX_PRICED = 5 * 10**9
"""Requests times steps up to which "auto" evaluates prices at all, for each second of
its time limit; without a limit it takes about a second.
"""

MAX_STEPS = 10**6
"""Steps up to which "auto" evaluates prices at all, for each second of its time limit;
without a limit it takes about two seconds.
"""

LONG = 30_000
"""Steps above which "auto" does not branch, for each second of its time limit, and
climbs for `LONG_TIME_LIMIT_S` if nobody sets a limit.
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
    options = Options(time_limit_s=time_limit, progress=progress, target=target)
    if method != "auto":
        found = _best_of([(method, options)], instance)
    elif not certified and (parts := _apart(instance)):
        found = _sum_of(parts, instance, options)
    else:
        found = _auto(instance, options, certified)
    return replace(found, runtime_s=time.perf_counter() - began)


def _best_of(asked: list[tuple[str, Options]], instance: Instance) -> Bound:
    """Best of some bounds, with the best schedule that any of them has seen.

    After an interrupt none is begun any more.
    """
    proofs: list[tuple[Proof, str]] = []
    interrupted = False
    for name, options in asked:
        proof = lookup(BOUNDS, "bound", name, also=("auto",))(instance, options)
        proofs.append((proof, name))
        if interrupted := proof.interrupted:
            break
    proof, name = max(proofs, key=lambda pair: pair[0].value)
    seen = [(p.schedule, by) for p, by in proofs if p.schedule is not None]
    best = min(seen, key=lambda pair: pair[0].tel, default=(None, None))
    found = Bound(proof.value, name, 0.0, proof.certificate, *best)
    return replace(found, interrupted=interrupted)


def _auto(instance: Instance, options: Options, certified: bool) -> Bound:
    """Best of the bounds that are quick at the size."""
    names = _quick_bounds(instance, options.time_limit_s, certified)
    within = options
    if options.time_limit_s is None:
        within = replace(options, time_limit_s=_usual_limit(instance))
    # Without a limit branching counts its nodes, so that it repeats.
    return _best_of(
        [(name, options if name == "branching" else within) for name in names], instance
    )


def _usual_limit(instance: Instance) -> float:
    """Seconds for climbing if nobody sets a limit."""
    if instance.num_requests > CLIMB_UP_TO:
        return 0.0
    long = instance.num_requests <= BRANCH_UP_TO and horizon(instance) > LONG
    return LONG_TIME_LIMIT_S if long else CLIMB_TIME_LIMIT_S


def _quick_bounds(
    instance: Instance, time_limit: float | None, certified: bool
) -> list[str]:
    """Names of the bounds that "auto" takes the best of."""
    if int(instance.peak.sum()) <= instance.usable_kv:
        return ["fluid"]
    seconds = max(time_limit or 0.0, 1.0)
    n, steps = instance.num_requests, horizon(instance)
    if n * steps > MAX_PRICED * seconds:
        return ["fluid"]
    load_plugins()
    names = ["fluid"]
    if time_limit is not None or n <= CLIMB_UP_TO:
        names.insert(0, "fluid-dff")
    if steps <= MAX_STEPS * seconds:
        names.insert(0, "growth")
        if n <= BRANCH_UP_TO and steps <= LONG * seconds and not certified:
            names.insert(1, "branching")
    return [name for name in names if name in BOUNDS]


def _apart(instance: Instance) -> list[Stretch]:
    """Return the stretches of few requests that take long, if they are much shorter."""
    steps = horizon(instance)
    if instance.num_requests > BRANCH_UP_TO or steps <= LONG:
        return []
    parts = stretches(instance)
    own = sum(horizon(part.instance) for part in parts)
    return parts if 2 * own <= steps else []


def _sum_of(parts: list[Stretch], instance: Instance, options: Options) -> Bound:
    """Bound each stretch within its share of the time, and add up.

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
    together = Bound(value, largest.method, 0.0, interrupted=interrupted)
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


@register(BOUNDS, "bound", "fluid")
def fluid(instance: Instance, options: Options) -> Proof:
    """Fluid bound: KV as one machine of speed `M`, requests as divisible work `v`.

    Let a feasible schedule use `u_i(t)` KV for request `i` in step `t`, spread evenly
    over the time `(t - 1, t]`. Its volume-weighted middle is
    `B_i = p_i + moment_i / (2 v_i)`, so with `e_i = moment_i / (2 v_i)` fixed by the
    lengths alone, `C_i - a_i = B_i + (o_i - e_i) - a_i`. It remains to bound the sum of
    the `B_i` from below.

    As `sum_i u_i(t) <= M`, and nothing runs before its arrival, the `u_i` are a
    feasible flow of the relaxation that may split and interrupt work: minimise
    `sum_i (1 / v_i) * integral of t u_i(t) dt`, with `M` units of work per unit of
    time and `v_i` of each request after `a_i`. In an optimal flow, whenever the work
    of `i` is done before work of `k`, with `k` there already and `v_k < v_i`, swapping
    a piece of size d between times `t1 < t2` changes the sum by
    `d (t2 - t1) (1 / v_i - 1 / v_k) < 0`. So it always serves the smallest `v` that
    has arrived (Smith's rule for mean busy times, with release dates), which
    `mean_busy_times` computes. For a backlog it is
    `sum_k (V_k - v_k / (2 M))` with `v` ascending and `V_k = (v_1 + ... + v_k) / M`.

    Also TEL is at least `sum_i o_i`; the larger of the two counts. All arithmetic is
    in integers: each request's share is rounded down to a multiple of `1 / SCALE`, the
    sum up to the next integer, since TEL is one. The certificate is the memory row, or
    no row at all where `sum_i o_i` is as large.

    Runs in `O(n log n)`.
    """
    moments = volume_moment(instance)
    arrival, decode = instance.arrival.tolist(), instance.decode.tolist()
    volumes = volume(instance).tolist()
    budget = instance.usable_kv
    total = 0
    for i, busy in mean_busy_times(arrival, volumes, budget):
        # busy / (2 M v) + (o - a) - moment / (2 v), on the denominator 2 M v.
        v2 = 2 * volumes[i]
        share = busy + ((decode[i] - arrival[i]) * v2 - moments[i]) * budget
        total += share * SCALE // (v2 * budget)
    value, least = -(-total // SCALE), exact_sum(instance.decode)
    rows = [] if value <= least else [(budget // instance.engine.block_size, 1)]
    return Proof(max(value, least), row_certificate(instance, max(value, least), rows))


def row_certificate(
    instance: Instance, value: int, rows: list[tuple[int, int]]
) -> RowCertificate:
    """Make a certificate of divisors and their weights."""
    divisor, weight = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    return RowCertificate(instance_hash(instance), value, divisor, weight)


def mean_busy_times(
    arrival: list[int], volumes: list[int], budget: int
) -> Iterator[tuple[int, int]]:
    """Yield (request, `2 M v_i` times its mean busy time) of the fluid schedule.

    Clock ticks are `1 / M` steps, so a request of volume `v` takes `v` ticks. An
    interval of ticks from `x` to `y` adds `y^2 - x^2`, twice the integral of the clock.
    """
    order = sorted(range(len(arrival)), key=arrival.__getitem__)
    rest = list(volumes)
    busy = [0] * len(order)
    waiting: list[tuple[int, int]] = []
    clock = k = 0
    while k < len(order) or waiting:
        if not waiting:
            clock = max(clock, arrival[order[k]] * budget)
        while k < len(order) and arrival[order[k]] * budget <= clock:
            heapq.heappush(waiting, (volumes[order[k]], order[k]))
            k += 1
        i = waiting[0][1]
        until = clock + rest[i]
        if k < len(order):
            until = min(until, arrival[order[k]] * budget)
        busy[i] += until * until - clock * clock
        rest[i] -= until - clock
        clock = until
        if not rest[i]:
            heapq.heappop(waiting)
            yield i, busy[i]
