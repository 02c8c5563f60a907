"""The problem as a constraint program for OR-Tools' CP-SAT, as a rival.

Usage peaks at completions, so one memory row for each of them is enough: with
`p_i < C_k <= C_i`, request `i` holds `s_i + C_k - p_i` in step `C_k`. That is a boolean
and an integer for each ordered pair of requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sortedf import Schedule

if TYPE_CHECKING:
    from sortedf import Instance


def solve_cp_sat(
    instance: Instance, known: Schedule, seconds: float
) -> tuple[Schedule | None, int]:
    """Solve a backlog without engine rules.

    An optimal schedule never idles, and no request in it completes later than the TEL
    of any other schedule: that is the horizon.

    Parameters
    ----------
    instance : Instance
    known : Schedule
        A feasible schedule; its starts are the solver's hint.
    seconds : float
        Time limit, on one thread.

    Returns
    -------
    schedule : Schedule or None
        None if none was found in time.
    bound : int
        The solver's own lower bound on TEL, rounded up.

    Raises
    ------
    ImportError
        If OR-Tools is not installed.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    s, o = instance.prefill.tolist(), instance.decode.tolist()
    horizon = min(known.tel, sum(o))
    ids = range(len(s))
    start = [model.new_int_var(0, horizon - o[i], f"p{i}") for i in ids]
    for k in ids:
        held = [_held(model, start, s, o, i, k) for i in ids if i != k]
        model.add(sum(held) + s[k] + o[k] <= instance.kv_budget)
        model.add_hint(start[k], int(known.start[k]))
    model.minimize(sum(start) + sum(o))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    bound = -int(-solver.best_objective_bound // 1)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, bound
    return Schedule(instance, [solver.value(p) for p in start]), bound


def _held(
    model: Any, start: list[Any], s: list[int], o: list[int], i: int, k: int
) -> Any:
    """KV that request `i` holds in the step in which request `k` completes, or more."""
    end = start[k] + o[k]
    begun = model.new_bool_var(f"begun{i},{k}")
    there = model.new_bool_var(f"there{i},{k}")
    both = model.new_bool_var(f"both{i},{k}")
    model.add(start[i] < end).only_enforce_if(begun)
    model.add(start[i] >= end).only_enforce_if(begun.negated())
    model.add(start[i] + o[i] >= end).only_enforce_if(there)
    model.add(start[i] + o[i] < end).only_enforce_if(there.negated())
    model.add_bool_or([begun.negated(), there.negated(), both])
    held = model.new_int_var(0, s[i] + o[i], f"held{i},{k}")
    model.add(held >= s[i] + end - start[i]).only_enforce_if(both)
    return held
