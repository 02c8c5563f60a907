"""Simulation of one run: requests, a policy and rules in, a checked log out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from online import step_kernels as k
from online.driver import drive
from online.hint_trust import make_trust
from online.invariants import check_log
from online.policy import make_policy
from online.prompt_chains import chains_of
from online.requests import RequestTable
from online.step_engine import StepEngine
from sortedf.errors import OversizeError
from sortedf.request_set import RequestSet
from sortedf.step_time import UNIT_STEPS, StepTime
from sortedf.traces import Trace

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from numpy.typing import ArrayLike

    from online.predictors import Predictor
    from online.prompt_chains import PromptChains
    from online.run_log import RunLog
    from online.state import Policy
    from online.step_engine import StepRecord
    from sortedf.engine_model import EngineModel

MAX_STEPS = 2**50
"""Steps up to the last arrival that floating point can distinguish."""


def simulate(
    requests: Trace | RequestSet,
    policy: str | Policy,
    rules: EngineModel,
    *,
    step_time: StepTime = UNIT_STEPS,
    predicted: ArrayLike | None = None,
    score: ArrayLike | None = None,
    max_wait_s: float | None = None,
    options: Mapping[str, Any] | None = None,
    predictor: Predictor | None = None,
    chains: PromptChains | None = None,
    trust_hints: str = "on",
    clients: Sequence[Hashable] | None = None,
    drop_oversize: bool = False,
    on_step: Callable[[StepRecord, float], None] | None = None,
) -> RunLog:
    """Run requests through the step engine under a policy.

    Deterministic: the same arguments give the same log, bit for bit. Random arrivals
    and prediction errors are drawn beforehand, with a seed.

    Parameters
    ----------
    requests : Trace or RequestSet
        Lengths and arrivals; those of a set, such as an instance, are multiples of the
        constant part of a step. With sessions (`Trace.sessions`) a later turn arrives
        when the turn before it has completed, after its think time.
    policy : str or Policy
        A name in `online.policy.POLICIES`, or a new policy object.
    rules : EngineModel
        The engine's rules; those of an instance are not used.
    step_time : StepTime
        Seconds per step; the papers' unit steps if left out.
    predicted : array_like of int, shape (n,), optional
        Answer lengths given to the policy, limited to what fits the cache with the
        prompt; the true ones if left out.
    score : array_like of float, shape (n,), optional
        Learned ranks given to the policy, lower first.
    max_wait_s : float, optional
        A request that has waited longer than this is served before all others.
    options : mapping, optional
        Options of a policy given by name.
    predictor : Predictor, optional
        Predicts the length of each arriving request, once it has data, and learns from
        completed ones; see `online.predictors`.
    chains : PromptChains, optional
        Shared prefixes of prompts, for rules with prefix caching; by default those of
        the trace (`Trace.prefix_ids`), if it has any.
    trust_hints : str
        Whether `predicted` and `score` are believed: "on"; "corrected", by each
        client's past answers; or "off". See `online.hint_trust`.
    clients : sequence of hashable, shape (n,), optional
        Client of each request; all are of one if left out.
    drop_oversize : bool
        Leave out requests that can never run, and list them in the log, instead of
        raising an error.
    on_step : callable, optional
        Called as `on_step(record, end_s)` after each step.

    Returns
    -------
    RunLog
        Checked against every invariant of `online.invariants`.

    Raises
    ------
    OversizeError
        If a request can never run and `drop_oversize` is not set, or if none can.
    ValueError
        If an argument is out of range.
    StalledError
        If the policy never starts the waiting requests.

    Examples
    --------
    >>> from sortedf.engine_model import EngineModel
    >>> from sortedf.traces import Trace
    >>> log = simulate(Trace([5, 6, 1], [3, 2, 1]), "svf", EngineModel.vllm(10))
    >>> log.completion_s.tolist()
    [5.0, 2.0, 1.0]
    """
    _refuse_oversize(requests, rules, drop_oversize)
    if isinstance(policy, str):
        policy = make_policy(policy, max_wait_s=max_wait_s, **(options or {}))
    elif max_wait_s is not None or options:
        raise ValueError("max_wait_s and options are for a policy given by its name.")
    table = _table(requests, rules, step_time, predicted, score)
    last_s = float(table.arrival_s.max(initial=0.0))
    if isinstance(requests, Trace) and requests.sessions is not None:
        table.sessions = requests.sessions
        last_s += float(requests.sessions.think_s.sum())
    if last_s > MAX_STEPS * step_time.constant_s:
        raise ValueError(
            f"the last arrival is at {last_s:g} s, which is more than {MAX_STEPS:,} "
            f"steps of {step_time.constant_s:g} s: the clock cannot tell steps apart."
        )
    if chains is None and rules.prefix_caching and isinstance(requests, Trace):
        chains = chains_of(requests, rules.block_size)
    table.chains = chains
    if clients is not None and len(clients) != requests.num_requests:
        raise ValueError(
            f"clients has {len(clients)} entries but there are "
            f"{requests.num_requests} requests."
        )
    engine = StepEngine(
        table,
        rules,
        policy,
        step_time,
        predictor=predictor,
        trust=make_trust(trust_hints),
        clients=clients,
    )
    log = drive(engine, step_time=step_time, on_step=on_step)
    check_log(log, rules)
    return log


def _table(
    requests: Trace | RequestSet,
    rules: EngineModel,
    step_time: StepTime,
    predicted: ArrayLike | None,
    score: ArrayLike | None,
) -> RequestTable:
    if isinstance(requests, RequestSet):
        arrival_s = requests.arrival * step_time.constant_s
    else:
        arrival_s = requests.arrival_s
    table = RequestTable.of_arrays(
        requests.prefill,
        requests.decode,
        arrival_s,
        predicted=predicted,
        score=score,
    )
    # A prediction too large for the cache would make a request wait forever.
    slots = rules.num_blocks * rules.block_size - rules.extra_slots
    room = np.maximum(slots + 1 - requests.prefill, 1)
    seen = table.ints[k.PREDICTED, : requests.num_requests]
    np.minimum(seen, room, out=seen)
    return table


def _refuse_oversize(
    requests: Trace | RequestSet, rules: EngineModel, drop: bool
) -> None:
    pairs = zip(requests.prefill.tolist(), requests.decode.tolist(), strict=True)
    reasons = {
        i: reason
        for i, pair in enumerate(pairs)
        if (reason := rules.refusal(*pair)) is not None
    }
    if not reasons or (drop and len(reasons) < requests.num_requests):
        return
    named = "; ".join(
        f"{_name(requests, i)} {why}" for i, why in list(reasons.items())[:5]
    )
    more = f"; and {len(reasons) - 5} more" if len(reasons) > 5 else ""
    end = "none is left" if drop else "drop_oversize (--drop-oversize) leaves them out"
    raise OversizeError(
        f"{len(reasons)} of {requests.num_requests} requests can never run: "
        f"{named}{more}; {end}.",
        tuple(reasons),
    )


def _name(requests: Trace | RequestSet, i: int) -> str:
    if isinstance(requests, RequestSet):
        return f"request {i}"
    return f"row {requests.row[i]}"
