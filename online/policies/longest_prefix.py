"""Longest cached prefix first, with a bound on how often a request is passed over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.listed import Admission, ListPolicy
from online.policies.parts.moving_queue import MovingQueue
from online.policies.parts.shared_prefixes import shared
from online.policy import register_policy
from sortedf.arrays import MAX_TOKENS, checked_int

if TYPE_CHECKING:
    from online.state import State


class PrefixQueue(MovingQueue):
    """Waiting requests by the tokens of their prompts that are in the cache now.

    A request is passed over when a request starts that arrived later. Once that has
    happened `most_passed` times, no later one is before it.

    Parameters
    ----------
    most_passed : int
    window : int
        Only this many of the oldest requests are compared; the others come behind them
        in order of arrival.
    """

    def __init__(self, most_passed: int, window: int) -> None:
        super().__init__(lambda state, ids: state.requests.arrival_s[ids])
        self.most_passed = checked_int(
            "most_passed", most_passed, minimum=0, maximum=MAX_TOKENS
        )
        self.window = checked_int("window", window, minimum=1, maximum=MAX_TOKENS)
        self._passed: dict[int, int] = {}

    def update(self, state: State) -> None:
        """Apply what joined and left, and count who was passed over."""
        gone = set(state.ended)
        started = [i for i in state.left if i not in gone or i not in self._passed]
        super().update(state)
        arrival_s = state.requests.each.arrival_s
        for i in state.left:
            self._passed.pop(i, None)
        for i in started:
            key = arrival_s[i], i
            for other in self._passed:
                self._passed[other] += (arrival_s[other], other) < key
        for i in state.joined:
            if state.is_waiting(i):
                self._passed.setdefault(i, 0)

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids."""
        if self._state is None or count <= 0:
            return []
        line = super().head(max(count, self.window))
        compared = line[: self.window]
        cached = shared(self._state, compared)[-1]
        order = [compared[k] for k in np.argsort(-cached, kind="stable").tolist()]
        return self._bounded(line, order + line[self.window :], count)

    def _bounded(self, line: list[int], order: list[int], count: int) -> list[int]:
        """Return the first `count` of `order`, none passed over too often.

        Where the next one would pass over such a request, the oldest comes instead.
        """
        place = {i: at for at, i in enumerate(line)}
        passed = np.array([self._passed[i] for i in line])
        rest = np.ones(len(line), dtype=bool)
        first, result = 0, list[int]()
        wanted = [place[i] for i in order]
        while len(result) < min(count, len(line)):
            while not rest[wanted[first]]:
                first += 1
            best = wanted[first]
            before = rest[:best]
            if (before & (passed[:best] >= self.most_passed)).any():
                best = int(np.argmax(rest))
            rest[best] = False
            passed[:best] += rest[:best]
            result.append(line[best])
        return result


@register_policy("longest-prefix", about="longest cached prefix first", knows="nothing")
def longest_prefix(
    most_passed: int = 32,
    window: int = 128,
    admission: Admission = "engine",
    backfill: int = 0,
) -> ListPolicy:
    """Longest cached prefix first, then first come, first served.

    Requests whose prompts are in the cache start before these blocks are lost, and add
    little to what the cache holds. A stream of requests with a popular prefix does not
    starve others: each is passed over by at most `most_passed` requests that arrived
    later. 0 is first come, first served, as is an engine without prefix caching.

    Parameters
    ----------
    most_passed : int
        Most later requests that start before a request.
    window : int
        Oldest waiting requests that are compared.
    admission, backfill
        See `ListPolicy`.
    """
    return ListPolicy(PrefixQueue(most_passed, window), admission, backfill)
