"""The best that any engine schedule can reach, by looking at all of them.

Before each step any running requests may be evicted; in it each request that has come
may be given any number of tokens that room and caps allow, and some that run may be
given none. This holds whatever vLLM or any other engine would do, and more.
"""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sortedf.engine_plan.workload import EngineWorkload

    One = tuple[int, int]  # tokens computed, tokens of the answer made


def least_total(workload: EngineWorkload) -> int:
    """Least total latency; step times and arrivals are whole numbers of seconds."""
    s, o = workload.prefill.tolist(), workload.decode.tolist()
    arrival = [int(a) for a in workload.arrival_s.tolist()]
    n, last = len(s), max(arrival, default=0)
    start = (0, tuple((0, 0) for _ in s))
    # The clock counts only as long as requests are to come.
    open_: list[tuple[int, tuple[int, tuple[One, ...]]]] = [(0, start)]
    best = {start: 0}
    while open_:
        cost, node = heappop(open_)
        if cost > best[node]:
            continue
        clock, state = node
        waits = [i for i in range(n) if state[i][1] < o[i]]
        if not waits:
            return cost
        for after, spent in _steps(workload, state, clock, arrival):
            then = min(clock + spent, last)
            paid = sum(
                max(0, clock + spent - max(clock, arrival[i]))
                for i in waits
                if arrival[i] <= clock + spent
            )
            key = (then, after)
            if cost + paid < best.get(key, cost + paid + 1):
                best[key] = cost + paid
                heappush(open_, (cost + paid, key))
    raise AssertionError("no schedule ends")


def _steps(
    workload: EngineWorkload,
    state: tuple[One, ...],
    clock: int,
    arrival: list[int],
) -> Iterator[tuple[tuple[One, ...], int]]:
    """States after one step, and how long it takes; or waiting for the next arrival."""
    rules = workload.rules
    s, o = workload.prefill.tolist(), workload.decode.tolist()
    coming = [a for a in arrival if a > clock]
    if coming:
        yield state, min(coming) - clock
    for choice in product(
        *(_choices(workload, i, state[i], arrival[i] > clock) for i in range(len(s)))
    ):
        running = [i for i, (held, _, _) in enumerate(choice) if held]
        if not any(new for _, _, new in choice) or len(running) > rules.seqs_cap:
            continue
        if sum(new for _, _, new in choice) > rules.tokens_cap:
            continue
        blocks = prompt = decoding = read = 0
        after: list[One] = []
        for i, (held, (computed, output_tokens), new) in enumerate(choice):
            left = s[i] + output_tokens - computed
            if held:
                slots = computed + new + (rules.extra_slots if new else 0)
                blocks += -(-slots // rules.block_size)
            prompt += new if left > 1 else 0
            decoding += new if left == 1 else 0
            computed += new
            read += computed if held else 0
            if new and new == left:
                output_tokens += 1
            done = output_tokens == o[i]
            after.append((0, output_tokens) if done else (computed, output_tokens))
        if blocks <= rules.num_blocks:
            yield tuple(after), int(workload.step_s(prompt, decoding, read))


def _choices(
    workload: EngineWorkload, i: int, one: One, absent: bool
) -> list[tuple[bool, One, int]]:
    """Whether the request runs in the step, from which state, with how many tokens."""
    output_tokens = one[1]
    s, o = int(workload.prefill[i]), int(workload.decode[i])
    if absent or output_tokens == o:
        return [(False, one, 0)]
    found = []
    lost = (0, 0 if workload.rules.eviction == "restart" else output_tokens)
    for at in dict.fromkeys([one, lost]):
        if at[0] == 0:
            found.append((False, at, 0))
        else:
            found.append((True, at, 0))
        left = s + at[1] - at[0]
        amounts = range(1, left + 1) if workload.rules.chunked_prefill else [left]
        found += [(True, at, new) for new in amounts]
    return found
