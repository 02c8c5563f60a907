"""The time-indexed program in textbook form, in PuLP; for small instances.

`x[i, t]` is 1 if request `i` starts at step `t >= a_i`; it then runs in the steps
`t + 1, ..., t + o_i` and holds `w(i, j) = s_i + j` tokens, in whole blocks, in its
`j`-th step.

    minimise    sum_{i,t} (t + o_i - a_i) x[i, t]
    subject to  sum_t x[i, t] = 1                                for each request i
                sum_{i,t runs in u} w(i, u - t) x[i, t] <= M     for each step u
                x[i, t] in {0, 1}                                (relaxed: x[i, t] >= 0)

and, if the engine has caps on a step,

                sum_{i,t runs in u} x[i, t] <= max_num_seqs
                sum_i s_i x[i, u - 1] + sum_{i,t < u - 1 runs in u} x[i, t]
                    <= max_batched_tokens.

`lp.formulation` builds the same matrix faster; tests compare the two.
"""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from lp.formulation import num_nonzeros, refuse_too_large
from lp.highs import SolverError, silent_highs
from lp.horizon import good_schedule, latest_starts
from sortedf.atomic import atomic_path

if TYPE_CHECKING:
    from collections.abc import Callable

    import pulp
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Coefficient = Callable[[int, int], int]

MAX_NONZEROS = 2_000_000
"""Entries of the largest program; PuLP takes a few microseconds for each."""


def textbook_model(
    instance: Instance, horizon: int | None = None, *, integer: bool = False
) -> pulp.LpProblem:
    """Build the program of an instance.

    Parameters
    ----------
    instance : Instance
    horizon : int, optional
        Last step in which a request may run. By default each request has the starts
        up to `lp.horizon.latest_starts`, which no optimal schedule exceeds.
    integer : bool
        Whether variables are binary; otherwise it is the linear relaxation.

    Raises
    ------
    TooLargeError
        If the program has more than `MAX_NONZEROS` entries.

    Examples
    --------
    >>> from sortedf import Instance
    >>> instance = Instance([5, 6, 1], [3, 2, 1], kv_budget=10)
    >>> round(textbook_optimum(textbook_model(instance, 6)), 3)
    7.412
    >>> textbook_optimum(textbook_model(instance, 6, integer=True))
    8.0
    """
    import pulp

    latest = latest_of(instance, horizon)
    refuse_too_large(num_nonzeros(instance, latest), MAX_NONZEROS)
    a, o = instance.arrival.tolist(), instance.decode.tolist()
    requests = range(instance.num_requests)
    model = pulp.LpProblem("time_indexed", pulp.LpMinimize)
    kind = pulp.LpBinary if integer else pulp.LpContinuous
    x = {
        (i, t): model.add_variable(f"x_{i}_{t}", 0, 1 if integer else None, kind)
        for i in requests
        for t in range(a[i], int(latest[i]) + 1)
    }
    model += pulp.lpSum((t + o[i] - a[i]) * x[i, t] for i, t in x)
    for i in requests:
        starts = range(a[i], int(latest[i]) + 1)
        model += pulp.lpSum(x[i, t] for t in starts) == 1, f"serve_{i}"
    for name, coefficient, limit in _limits(instance):
        running: dict[int, list[pulp.LpAffineExpression]] = {}
        for (i, t), start in x.items():
            for j in range(1, o[i] + 1):
                running.setdefault(t + j, []).append(coefficient(i, j) * start)
        for step, parts in sorted(running.items()):
            model += pulp.lpSum(parts) <= limit, f"{name}_{step}"
    return model


def latest_of(instance: Instance, horizon: int | None) -> Ints:
    """Latest start of each request in the program, see `textbook_model`."""
    if horizon is None:
        return latest_starts(instance, good_schedule(instance).tel)
    return np.asarray(horizon - instance.decode)


def textbook_optimum(model: pulp.LpProblem) -> float:
    """Solve a model with HiGHS and return its optimal value.

    Raises
    ------
    SolverError
        If there is none because the horizon is too short.
    """
    import pulp

    silent_highs()  # HiGHS prints its banner once, for the first object
    model.solve(pulp.HiGHS(msg=False))
    if model.status != pulp.LpStatusOptimal:
        raise SolverError(f"the program is {pulp.LpStatus[model.status].lower()}.")
    return float(pulp.value(model.objective) or 0.0)


def write_model(
    instance: Instance,
    path: str | os.PathLike[str],
    horizon: int | None = None,
    *,
    integer: bool = False,
) -> None:
    """Write the program as `.lp` or `.mps`, atomically.

    Parameters
    ----------
    instance, horizon, integer
        As for `textbook_model`.
    path : path-like
        Its suffix determines the format.

    Raises
    ------
    ValueError
        If the suffix is another one.
    OutputError
        If the file cannot be written.
    """
    suffix = PurePath(os.fsdecode(path)).suffix
    if suffix not in (".lp", ".mps"):
        raise ValueError(f"{os.fsdecode(path)} must end in .lp or .mps.")
    model = textbook_model(instance, horizon, integer=integer)
    with atomic_path(path) as unfinished:
        if suffix == ".lp":
            model.writeLP(str(unfinished))
        else:
            model.writeMPS(str(unfinished))


def _limits(instance: Instance) -> list[tuple[str, Coefficient, int]]:
    """Resources of a step: name, use by request `i` in its `j`-th step, and limit."""
    engine, s = instance.engine, instance.prefill.tolist()
    limits: list[tuple[str, Coefficient, int]] = [
        ("memory", lambda i, j: engine.round_up(s[i] + j), instance.usable_kv)
    ]
    if engine.max_num_seqs is not None:
        limits.append(("seqs", lambda i, j: 1, engine.max_num_seqs))
    if engine.max_batched_tokens is not None:
        tokens = engine.max_batched_tokens
        limits.append(("tokens", lambda i, j: s[i] if j == 1 else 1, tokens))
    return limits
