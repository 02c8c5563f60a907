"""`solve` and `compare`: an instance in, results with certified gaps out.

An instance is cut into independent segments, each is bounded and solved, and the
schedules are joined. Most instances have one segment.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from sortedf.bounds import Bound, BoundOptions, prove, together
from sortedf.bounds.objective import objective_bound
from sortedf.instance import require_instance
from sortedf.methods import METHODS
from sortedf.methods.by_segment import solve_by_segment
from sortedf.options import Options
from sortedf.result import Result, Status
from sortedf.segments import segments, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sortedf.improve.objective import Objective
    from sortedf.instance import Instance
    from sortedf.methods import Method, Outcome
    from sortedf.schedule import Schedule
    from sortedf.segments import Segment
    from sortedf.stop import Stop

BOUND_SHARE = 0.2
"""Share of the time limit that the bound may take."""


def solve(
    instance: Instance,
    method: str = "auto",
    *,
    backfill: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    bound: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    stop: Stop | None = None,
    start: Schedule | None = None,
    jobs: int = 1,
    on_better: Callable[[int, int | None], None] | None = None,
    objective: Objective | None = None,
) -> Result:
    """Schedule a backlog or a stream of requests under its KV budget.

    Minimise TEL, the sum of `C_i - a_i`, over integer start steps `p_i >= a_i` with
    `C_i = p_i + o_i`, such that in every step `t` the sum of `s_i + t - p_i` over the
    requests with `p_i < t <= C_i` is at most `M`.

    Parameters
    ----------
    instance : Instance
    method : str
        A name in `sortedf.METHODS`.
    backfill : int, optional
        Largest number of requests that do not fit and are passed over in a step; 0, the
        papers' rule, if left out, except that "auto" chooses.
    time_limit : float, optional
        Seconds, the bound included, after which "auto" and "improve" give their best
        so far, and exact group selection its best groups so far. Other list rules
        always finish. Without it the searches take a second or two at n = 2000.
    seed : int
        Seed of the searches, and of the sampling in group selection.
    bound : str
        A name in `sortedf.BOUNDS`, "auto", or "none".
    progress : callable, optional
        Called as `progress(done, total)` now and then during long work.
    stop : Stop, optional
        Stopping rule of "auto" and "improve", beside the time limit: see
        `sortedf.stop`.
    start : Schedule, optional
        Initial schedule of "auto" and "improve"; their result is never worse.
    jobs : int
        Threads of "auto" and "improve". Methods that do not search refuse `start`,
        `stop`, and more than one job.
    on_better : callable, optional
        Called as `on_better(value, lower bound or None)` for each better schedule.
    objective : Objective, optional
        Objective of "auto", "improve" and "best-list" instead of TEL, and a cap on
        latency: see `sortedf.improve`. For weighted TEL and the makespan the bound is
        in closed form for any `bound` but "none".

    Returns
    -------
    Result
        Its `lower_bound` is proven, so its `gap` is a certificate, and its status is
        "optimal" only if the two meet.

    Raises
    ------
    ValueError, TypeError
        If an option is out of range or a name unknown; the message lists the names.

    Notes
    -----
    Ctrl-C ends a search with the best schedule so far, and an iterative bound with the
    best value so far; searches after it only place lists. If there is no schedule yet,
    KeyboardInterrupt is raised as usual.

    Examples
    --------
    >>> from sortedf import Instance, solve
    >>> result = solve(Instance(prefill=[5, 6, 1], decode=[3, 2, 1], kv_budget=10))
    >>> result.tel, result.lower_bound, result.schedule.start.tolist()
    (8, 8, [2, 0, 0])
    """
    require_instance(instance)
    chosen = METHODS.find(method)
    if objective is not None and not chosen.any_objective:
        names = ", ".join(name for name, m in METHODS.items() if m.any_objective)
        raise ValueError(
            f"method {method!r} minimises TEL alone; with another objective or a cap "
            f"on latency choose one of: {names}."
        )
    if not chosen.searches and (start is not None or stop is not None or jobs != 1):
        names = ", ".join(name for name, m in METHODS.items() if m.searches)
        raise ValueError(
            f"method {method!r} does not search, so it takes no start, stopping rule "
            f"or number of jobs; choose one of: {names}."
        )
    _refuse_for_prefixes(
        instance,
        [method],
        more=objective is not None or start is not None or stop is not None,
        jobs=jobs,
    )
    options = Options(
        backfill=backfill,
        time_limit_s=time_limit,
        seed=seed,
        progress=progress,
        stop=stop,
        start=start,
        jobs=jobs,
        on_better=on_better,
        objective=objective,
    )
    if objective is not None:
        objective.weights(instance)  # raises if they are for other requests
    plain = objective is None or objective.is_tel
    parts = segments(instance) if plain else whole(instance)
    proven = _bounds_of(parts, bound, options)
    if proven is not None and any(found.interrupted for found in proven):
        options = options.within(0.0)
    return _run(instance, parts, method, options, proven)[0]


def _refuse_for_prefixes(
    instance: Instance, methods: Sequence[str], *, jobs: int, more: bool = False
) -> None:
    """Raise a ValueError for what is not known where prompts share prefixes."""
    if instance.prefixes is None:
        return
    for name in methods:
        if not METHODS[name].shared:
            known = ", ".join(name for name, m in METHODS.items() if m.shared)
            raise ValueError(
                f"method {name!r} does not know shared prefixes; choose one of: "
                f"{known}."
            )
    if more or jobs != 1:
        raise ValueError(
            "another objective, a start, a stopping rule and several jobs are not for "
            "requests with shared prefixes."
        )


def _bounds_of(
    parts: list[Segment], method: str, options: Options
) -> list[Bound] | None:
    """Bound each segment within the bounds' share of the time; None for "none"."""
    if method == "none":
        return None
    objective = options.objective
    if objective is None or objective.is_tel:
        share = options.with_share_of_time(BOUND_SHARE)
        return prove(parts, method, BoundOptions(time_limit_s=share.rest_s))
    return [
        Bound(objective_bound(part.instance, objective), method="volume")
        for part in parts
    ]


def compare(
    instance: Instance,
    methods: Sequence[str] | None = None,
    *,
    backfill: int | None = None,
    time_limit: float | None = None,
    seed: int = 0,
    bound: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    jobs: int = 1,
) -> list[Result]:
    """Solve by several methods against one lower bound.

    Parameters
    ----------
    instance : Instance
    methods : sequence of str, optional
        Names in the order wanted; by default `methods_for(instance)`.
    backfill, seed, bound, jobs
        As for `solve`.
    time_limit : float, optional
        As for `solve`, for each method, and a share of it once for the bound.
    progress : callable, optional
        Called as `progress(methods done, methods in all)`.

    Returns
    -------
    list of Result
        One for each method, in the same order; after Ctrl-C, for those finished.

    Raises
    ------
    ValueError, TypeError
        As `solve`, before anything is run.
    KeyboardInterrupt
        At Ctrl-C, if no method has finished.

    Examples
    --------
    >>> from sortedf import Instance, compare
    >>> instance = Instance(prefill=[5, 6, 1], decode=[3, 2, 1], kv_budget=10)
    >>> for result in compare(instance, ["fcfs", "svf"]):
    ...     print(result.method, result.tel, result.lower_bound)
    fcfs 12 8
    svf 8 8
    """
    require_instance(instance)
    names = methods_for(instance) if methods is None else list(methods)
    for name in names:
        METHODS.find(name)
    _refuse_for_prefixes(instance, names, jobs=jobs)
    parts = segments(instance)
    proven = _bounds_of(parts, bound, Options(time_limit_s=time_limit))
    if proven is not None and any(bound.interrupted for bound in proven):
        raise KeyboardInterrupt
    results: list[Result] = []
    for name in names:
        options = Options(
            backfill=backfill, time_limit_s=time_limit, seed=seed, jobs=jobs
        )
        try:
            result, interrupted = _run(instance, parts, name, options, proven)
        except KeyboardInterrupt:
            if not results:
                raise
            break
        results.append(result)
        if interrupted:
            break
        if progress is not None:
            progress(len(results), len(names))
    return _share_best_bound(results)


def _share_best_bound(results: list[Result]) -> list[Result]:
    """Replace the bound of every result by the best that any method has proven."""
    proven = [result for result in results if result.lower_bound is not None]
    if not proven:
        return results
    best = max(proven, key=lambda result: result.lower_bound or 0)
    return [
        replace(
            result,
            lower_bound=best.lower_bound,
            bound_method=best.bound_method,
            status=Status.OPTIMAL if result.tel == best.lower_bound else result.status,
        )
        for result in results
    ]


def methods_for(instance: Instance) -> list[str]:
    """Names of all methods for an instance's size, in table order.

    Of two names of the same method it has one, and methods for engines with caps on a
    step only if the engine has some.
    """
    n, capped = instance.num_requests, instance.engine.caps_steps
    return [
        name
        for name, method in METHODS.items()
        if method.same_as is None
        and (method.shared if instance.prefixes is not None else not method.only_shared)
        and (method.max_requests is None or n <= method.max_requests)
        and (capped or not method.for_step_caps)
    ]


def _run(
    instance: Instance,
    parts: list[Segment],
    method: str,
    options: Options,
    bounds: list[Bound] | None,
) -> tuple[Result, bool]:
    """Run a method; also return whether Ctrl-C ended it."""
    began = time.perf_counter()
    proven = None if bounds is None else together(instance, parts, bounds)
    if proven is not None:
        options = options.knowing(proven)
    outcome = _outcome(instance, parts, METHODS[method], options, bounds)
    runtime_s = time.perf_counter() - began
    known = [] if proven is None else [(proven.value, proven.method)]
    if outcome.lower_bound is not None:
        known.append((outcome.lower_bound, method))
    lower_bound, bound_method = max(
        known, key=lambda pair: pair[0], default=(None, "none")
    )
    status = Status.FEASIBLE if outcome.complete else Status.TIME_LIMIT
    result = Result(
        schedule=outcome.schedule,
        method=method,
        found_by=outcome.found_by,
        backfill=outcome.backfill,
        status=status,
        lower_bound=lower_bound,
        bound_method=bound_method,
        runtime_s=runtime_s,
        objective=options.objective,
    )
    if result.value == lower_bound and not result.over_cap:
        result = replace(result, status=Status.OPTIMAL)
    return result, outcome.interrupted


def _outcome(
    instance: Instance,
    parts: list[Segment],
    method: Method,
    options: Options,
    bounds: list[Bound] | None,
) -> Outcome:
    """Run a method on each segment if allowed, and on the whole otherwise."""
    given = (
        options.objective,
        options.stop,
        options.start,
    )  # of the whole
    if method.by_segment and parts[0].instance is not instance and given == (None,) * 3:
        found = solve_by_segment(instance, parts, method, options, bounds)
        if found is not None:
            return found
    return method.solve(instance, options)
