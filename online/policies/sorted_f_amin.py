"""Sorted-F with arrivals over time and lower estimates of lengths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.group_queue import GroupQueue
from online.policies.parts.lengths import Raised
from online.policies.parts.listed import ListPolicy
from online.policy import register_policy
from sortedf.groups import SELECTORS
from sortedf.options import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.state import Decision, State


class MostProgressFirst:
    """A list policy that orders running requests by output tokens, most first.

    The engine preempts from the back, so requests with the least progress first.
    """

    def __init__(self, policy: ListPolicy) -> None:
        self._policy = policy

    def decide(self, state: State) -> Decision:
        """Start in list order, and order running requests by progress."""
        decision = self._policy.decide(state)
        if decision.start:  # restarted requests may have more tokens than running ones
            decision = decision._replace(quiet_until=0)
        if state.quiet:  # each made one token, so the order is unchanged
            return decision
        running = state.running
        order = np.argsort(-state.requests.output_tokens[running], kind="stable")
        ids: NDArray[np.int64] = running[order]
        if np.array_equal(ids, running):
            return decision
        return decision._replace(order=ids.tolist())


@register_policy(
    "sorted-f-amin",
    about="Sorted-F by lower estimates (arXiv 2508.14544)",
    knows="a lower bound",
)
def sorted_f_amin(
    groups: str = "quantile-greedy",
    every: int = 1,
    factor: float = 1.0,
    backfill: int = 0,
    seed: int = 0,
) -> MostProgressFirst:
    """Sorted-F with A-min's estimates (arXiv 2508.14544): only lower bounds are known.

    The predicted length is used as a lower bound of the true one and raised to the
    tokens generated so far; groups and look-ahead use it. If the running requests still
    overflow the cache, those with the least progress are preempted and wait again,
    without or with their tokens, depending on the engine's rule (`restart` is A-min's
    model, `recompute` vLLM's). A-min is `O(log 1/alpha)`-competitive with shortest
    answer first, `alpha` the least ratio of a bound to its length.

    Parameters
    ----------
    groups, every, backfill, seed
        See `sorted_f_online`.
    factor : float
        Multiple of the tokens known to be needed to which an exceeded estimate is
        raised. 1 is A-min; 2 reserves more memory and causes fewer evictions.
    """
    select = SELECTORS.find(groups)(Options())
    lengths = Raised(factor)
    queue = GroupQueue(select, lengths, every=every, seed=seed)
    return MostProgressFirst(ListPolicy(queue, "look-ahead", backfill, lengths))
