"""The option `--method`: an online policy, or an offline schedule's order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from online.executor.planning import plan_for
from online.named import parse_named
from online.policy import POLICIES, make_policy
from sortedf.methods import METHODS
from sortedf.request_set import RequestSet
from sortedf.traces.prefix_ids import BlockIds, PrefixIds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sortedf.engine_model import EngineModel

NEVER_S = 1e18
"""A waiting limit in seconds that is never reached."""


@dataclass(frozen=True, slots=True)
class BatchMethod:
    """How the engine orders the requests of a batch.

    Attributes
    ----------
    scheduler : mapping
        Options of the scheduler class.
    offline : str, optional
        The method of `sortedf.METHODS` whose order is followed.
    options : mapping
        Options of that method.
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
        Requests that do not fit and that admission may pass over.
    max_wait_s : float, optional
        Requests that have waited longer are served first.
    **options
        For an offline method: options of `sortedf.solve`.

    Raises
    ------
    ValueError
        If there is no such name, or an option is invalid.
    """
    named = parse_named(text)
    policy = POLICIES.get(named.name)
    if policy is not None and not policy.needs_plan:  # plans refer to ids
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
            # The order is sent with the requests like a learned rank.
            "policy": "pars",
            "admission": "look-ahead",
            "backfill": backfill or 0,
            "starvation_s": NEVER_S if max_wait_s is None else max_wait_s,
        },
        named.name,
        options,
    )


def start_order(
    prompts: Sequence[Sequence[int]],
    decode: Sequence[int],
    rules: EngineModel,
    method: BatchMethod,
) -> list[int]:
    """Solve a backlog; return each request's position in the order of the starts.

    Where the engine caches prefixes, the method knows what prompts share, if it can.

    Of requests that start together the shortest comes first. Requests that can never
    run come last, and the engine refuses them.

    Parameters
    ----------
    prompts : sequence of sequence of int
        Token ids; none for an unknown prompt.
    decode : sequence of int
        Expected answer lengths.
    """
    assert method.offline is not None
    position = np.full(len(prompts), len(prompts), dtype=np.int64)
    lengths = zip(map(len, prompts), decode, strict=True)
    fit = [i for i, (s, o) in enumerate(lengths) if s and rules.refusal(s, o) is None]
    if fit:
        ids = np.array(fit)
        s, o = np.array([len(prompts[i]) for i in fit]), np.asarray(decode)[ids]
        # Prompts may take several steps: only the order is used, not the start steps.
        whole = replace(rules, max_batched_tokens=None)
        options = method.options or {}
        shares = rules.prefix_caching and METHODS[method.offline].shared
        prefix_ids = _ids_of([prompts[i] for i in fit], rules) if shares else None
        requests = RequestSet(s, o, prefix_ids=prefix_ids)
        start = plan_for(requests, whole, method.offline, **options).start
        position[ids[np.lexsort((ids, o, start))]] = np.arange(len(ids))
    return [int(value) for value in position]


def _ids_of(prompts: Sequence[Sequence[int]], rules: EngineModel) -> PrefixIds:
    """Ids of the prompts' full KV blocks."""
    blocks = BlockIds(rules.block_size)
    return PrefixIds.of_lists([blocks.of(p) for p in prompts], rules.block_size)
