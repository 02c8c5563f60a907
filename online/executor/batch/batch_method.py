"""What `--method` means: an online policy, or an offline schedule's order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from online.executor.planning import plan_for
from online.named import parse_named
from online.policy import POLICIES, make_policy
from sortedf.instance import Instance
from sortedf.methods import METHODS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from online.rules import StepRules

NEVER_S = 1e18
"""Seconds that nobody waits."""


@dataclass(frozen=True, slots=True)
class BatchMethod:
    """How the engine is told to order a batch.

    Attributes
    ----------
    scheduler : mapping
        Options of the scheduler class.
    offline : str, optional
        The method of `sortedf.METHODS` whose order is followed.
    options : mapping
        Its options.
    """

    scheduler: Mapping[str, Any]
    offline: str | None = None
    options: Mapping[str, Any] | None = None


def read_method(
    text: str,
    *,
    backfill: int | None = None,
    max_wait_s: float | None = None,
    **options: Any,
) -> BatchMethod:
    """Find a policy or an offline method by name, `name:option=value` for a policy's.

    Parameters
    ----------
    backfill : int, optional
        Misfits that admission may pass over.
    max_wait_s : float, optional
        Who has waited longer goes first.
    **options
        For an offline method: those of `sortedf.solve`.

    Raises
    ------
    ValueError
        If there is no such name, or an option does not fit.
    """
    named = parse_named(text)
    policy = POLICIES.get(named.name)
    if policy is not None and not policy.needs_plan:  # a batch names no ids
        own = dict(named.options)
        if backfill is not None:
            own["backfill"] = backfill
        if max_wait_s is not None:
            own["max_wait_s"] = max_wait_s
        make_policy(named.name, **own)  # refuse bad options before anything runs
        return BatchMethod({"policy": named.name, **own})
    if named.name not in METHODS:
        policies = sorted(n for n, kind in POLICIES.items() if not kind.needs_plan)
        raise ValueError(
            f"unknown method {named.name!r}; choose a policy ({', '.join(policies)}) "
            f"or an offline method ({', '.join(sorted(METHODS))})."
        )
    if named.options:
        raise ValueError(f"{text!r}: an offline method takes no options here.")
    return BatchMethod(
        {
            # The order comes with the requests, as their learned rank would.
            "policy": "pars",
            "admission": "look-ahead",
            "backfill": backfill or 0,
            "starvation_s": NEVER_S if max_wait_s is None else max_wait_s,
        },
        named.name,
        options,
    )


def start_order(
    prefill: Sequence[int], decode: Sequence[int], rules: StepRules, method: BatchMethod
) -> list[int]:
    """Solve a backlog; return each request's place in the order of the starts.

    Of those that start together the shortest comes first. Requests that can never run
    are placed last, for the engine to refuse them.

    Parameters
    ----------
    prefill, decode : sequence of int
        Prompt lengths and expected answer lengths; a prompt of 0 is not known.
    """
    assert method.offline is not None
    place = np.full(len(prefill), len(prefill), dtype=np.int64)
    lengths = zip(prefill, decode, strict=True)
    fit = [i for i, (s, o) in enumerate(lengths) if s and rules.refusal(s, o) is None]
    if fit:
        ids = np.array(fit)
        s, o = np.asarray(prefill)[ids], np.asarray(decode)[ids]
        # Prompts may take several steps: the order is followed, not the starts.
        whole = replace(rules, max_batched_tokens=None)
        options = method.options or {}
        instance = Instance(s, o, rules.kv_budget)
        start = plan_for(instance, whole, method.offline, **options).start
        place[ids[np.lexsort((ids, o, start))]] = np.arange(len(ids))
    return [int(value) for value in place]
