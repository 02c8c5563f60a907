"""Offline schedules for an engine, in whole blocks and without a safety margin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.engine_model import EngineModel
from sortedf.engine_plan.plan import Admission, EnginePlan
from sortedf.engine_plan.plan_checker import check_plan
from sortedf.engine_plan.planning import plan_engine
from sortedf.engine_plan.workload import EngineWorkload
from sortedf.errors import OversizeError
from sortedf.instance import Instance
from sortedf.solving import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.request_set import RequestSet
    from sortedf.schedule import Schedule

    Ints = NDArray[np.int64]


def plan_for(
    requests: RequestSet, rules: EngineModel, method: str = "auto", **options: Any
) -> Schedule:
    """Solve requests such that an engine with these rules can follow the starts.

    The model charges `s + j` tokens when a request's `j`-th token is made. An engine
    that computes a token's KV only in the next step holds one fewer, so for it prompts
    are shortened by one token (except those of one token). If a step of that schedule
    processes more tokens than the engine allows, it is solved again with that cap, and
    with full prompts, since the cap counts them in full.

    Where prompts share prefixes, they are full, too, and the cap is not kept to.

    Parameters
    ----------
    requests : RequestSet
        Lengths and arrivals in steps; what prompts share counts if the engine has
        `prefix_caching`.
    rules : EngineModel
    method : str
        A name in `sortedf.METHODS`.
    **options
        As for `sortedf.solve`.

    Returns
    -------
    Schedule
        Schedule of the solved instance; its starts are those of the engine.

    Raises
    ------
    OversizeError
        If a request can never run, or a prompt needs more than one step.
    """
    _refuse_long_prompts(requests, rules)
    prefill, shared = requests.prefill, requests.shared_prefixes(rules)
    if not rules.counts_new_token and shared is None:
        prefill = np.maximum(prefill - 1, 1)
    uncapped = EngineModel(
        rules.kv_budget,
        rules.block_size,
        rules.max_num_seqs,
        prefix_caching=shared is not None,
    )
    seen = Instance(prefill, requests.decode, None, requests.arrival, uncapped, shared)
    schedule = solve(seen, method, bound="none", **options).schedule
    most = int(tokens_per_step(requests, schedule.start).max(initial=0))
    if most <= rules.tokens_cap or shared is not None:
        return schedule
    capped = replace(uncapped, max_batched_tokens=rules.max_batched_tokens)
    seen = seen.replace(prefill=requests.prefill, engine=capped)
    return solve(seen, method, bound="none", **options).schedule


def cut_prompts(requests: RequestSet, rules: EngineModel) -> bool:
    """Whether a prompt is longer than a step, and is cut."""
    longest = int(requests.prefill.max(initial=0))
    return rules.chunked_prefill and longest > rules.tokens_cap


def engine_plan_for(
    requests: RequestSet, rules: EngineModel, method: str = "auto", **options: Any
) -> EnginePlan:
    """Plan requests by an engine's own rules, prompts in chunks.

    Parameters
    ----------
    requests : RequestSet
        Lengths and arrivals in steps.
    rules : EngineModel
    method : str
        "auto", "least-work" or a list rule: see `sortedf.engine_plan.planning`.
    **options
        As for `plan_engine`.
    """
    workload = engine_workload(requests, rules)
    return plan_engine(workload, method, **options).plan


def read_engine_plan(
    requests: RequestSet, rules: EngineModel, start: list[int], order: list[int]
) -> EnginePlan:
    """Return the plan of a file, if the engine can follow it.

    Raises
    ------
    ValueError
        If it cannot; the message has the first reason.
    """
    workload = engine_workload(requests, rules)
    report = check_plan(workload, start, order)
    if not report.feasible:
        raise ValueError(f"the plan is not for this engine: {report.violations[0]}.")
    return EnginePlan(
        workload,
        np.array(start),
        np.array(order),
        np.array(report.completion),
        np.array(report.completion_s),
        Admission(),
    )


def engine_workload(requests: RequestSet, rules: EngineModel) -> EngineWorkload:
    """Return requests for an engine whose clock counts steps."""
    plain = replace(rules, prefix_caching=False)
    return EngineWorkload(
        requests.prefill, requests.decode, plain, arrival_s=requests.arrival
    )


def _refuse_long_prompts(requests: RequestSet, rules: EngineModel) -> None:
    longest = int(requests.prefill.max(initial=0))
    if longest > rules.tokens_cap:
        i = int(np.argmax(requests.prefill))
        raise OversizeError(
            f"request {i} has a prompt of {longest} tokens, which takes several steps "
            f"of {rules.max_batched_tokens} tokens, so that its start cannot be "
            "planned; use the mode list instead.",
            (i,),
        )


def tokens_per_step(requests: RequestSet, start: Ints) -> Ints:
    """Count the tokens that each step of a schedule processes.

    Returns
    -------
    int64 array
        Entry `t` belongs to step `t + 1`: the whole prompt of each request that starts
        after step `t`, and one token of each other running request.
    """
    completion = start + requests.decode
    change = np.zeros(int(completion.max(initial=0)) + 2, dtype=np.int64)
    np.add.at(change, start, requests.prefill)
    np.add.at(change, start + 1, 1 - requests.prefill)
    np.subtract.at(change, completion, 1)
    return np.asarray(np.cumsum(change)[:-2])
