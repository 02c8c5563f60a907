"""`exhaustive`: enumerate all waiting times, for very few requests.

With `W` the total waiting time of a known schedule, a better one has less, and some
request in it does not wait at all: otherwise all could start a step sooner. So there
are at most about `W^(n-1)` combinations for `n` requests; if these are few the optimum
is found at once, without prices or a search.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.arrays import exact_sum
from sortedf.bounds.table import Bound, Stage, register_bound
from sortedf.jit import kernel
from sortedf.placement import place
from sortedf.schedule import Schedule
from sortedf.volume import volume

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.bounds.options import BoundOptions
    from sortedf.instance import Instance

    Ints = NDArray[np.int64]

MAX_REQUESTS = 4
"""Largest number of requests."""

MAX_WAYS = 10**6
"""Largest number of combinations tried; a million takes a tenth of a second."""


def exhaustive_is_quick(instance: Instance, time_limit: float | None) -> bool:
    """Whether there are few combinations of waiting times."""
    n = instance.num_requests
    if not 0 < n <= MAX_REQUESTS:
        return False
    waiting = _known(instance).tel - exact_sum(instance.decode)
    ways: int = waiting ** (n - 1)
    return ways <= MAX_WAYS


def _known(instance: Instance) -> Schedule:
    """Return a good schedule: smallest volume first, with backfill."""
    order = np.argsort(volume(instance), kind="stable")
    return place(instance, order, backfill=instance.num_requests)


@register_bound(
    "exhaustive",
    about="the optimum itself: all waiting times, for up to four requests",
    cost="exponential, milliseconds where auto takes it",
    certified=False,
    quick=exhaustive_is_quick,
    stage=Stage.TINY,
    most_requests=MAX_REQUESTS,
)
def exhaustive(instance: Instance, options: BoundOptions) -> Bound:
    """Least TEL of any schedule, and one that has it."""
    start = _known(instance).start.copy()
    engine = instance.engine
    _try_all(
        instance.prefill, instance.decode, instance.arrival, instance.usable_kv,
        engine.block_size, engine.seqs_cap, engine.tokens_cap, start,
    )  # fmt: skip
    best = Schedule(instance, start)
    return Bound(best.tel, schedule=best)


@kernel
def _fits(
    prefill: Ints,
    decode: Ints,
    budget: int,
    block: int,
    max_seqs: int,
    max_tokens: int,
    start: Ints,
    n: int,
) -> bool:
    """Whether the first `n` requests, with starts given, keep every rule.

    Usage peaks at completions, and sequences and tokens peak in the first steps of
    requests: only these are checked.
    """
    for i in range(n):
        for step in (start[i] + 1, start[i] + decode[i]):
            used = running = tokens = 0
            for k in range(n):
                age = step - start[k]
                if 0 < age <= decode[k]:
                    used += -(-(prefill[k] + age) // block) * block
                    running += 1
                    tokens += prefill[k] if age == 1 else 1
            if used > budget or running > max_seqs or tokens > max_tokens:
                return False
    return True


@kernel
def _try_all(
    prefill: Ints,
    decode: Ints,
    arrival: Ints,
    budget: int,
    block: int,
    max_seqs: int,
    max_tokens: int,
    start: Ints,
) -> None:
    """Replace `start` (modified in place) by the starts of the least total waiting.

    Depth first: the start of `i` increases while `0, ..., i` wait less than the best; a
    partial schedule that breaks a rule is not extended. The last request waits only if
    some other one does not.
    """
    n = len(prefill)
    best = 0
    for i in range(n):
        best += start[i] - arrival[i]
    now = arrival.copy()
    waited = np.zeros(n + 1, dtype=np.int64)  # by the requests before i
    at_once = np.zeros(n + 1, dtype=np.int64)  # number of those that do not wait
    i = 0
    while i >= 0:
        over = i == n or waited[i] + now[i] - arrival[i] >= best
        if not over and i == n - 1 and at_once[i] == 0:
            over = now[i] > arrival[i]
        if over:
            if i == n and waited[n] < best:
                best = waited[n]
                for k in range(n):
                    start[k] = now[k]
            i -= 1
            if i >= 0:
                now[i] += 1
            continue
        if _fits(prefill, decode, budget, block, max_seqs, max_tokens, now, i + 1):
            waited[i + 1] = waited[i] + now[i] - arrival[i]
            at_once[i + 1] = at_once[i] + (now[i] == arrival[i])
            i += 1
            if i < n:
                now[i] = arrival[i]
        else:
            now[i] += 1
