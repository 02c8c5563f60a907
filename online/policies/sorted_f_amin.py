"""Sorted-F while requests arrive, with lengths that are only estimated."""

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
    """A list policy that has the engine evict who has made the least.

    When what runs would overflow, the engine takes from the back.
    """

    def __init__(self, policy: ListPolicy) -> None:
        self._policy = policy

    def decide(self, state: State) -> Decision:
        """Start as the list says; the least progress last."""
        decision = self._policy.decide(state)
        if decision.start:  # some of which may have come further than who runs
            decision = decision._replace(quiet_until=0)
        if state.quiet:  # all made one token, so nobody passed anybody
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

    The predicted length counts as a lower bound of the true one. It is raised to what
    was generated already; groups and look-ahead go by it. When what runs overflows all
    the same, those with the least progress are evicted and wait again, without or with
    their tokens as the engine's rule has it (`restart` is A-min's model, `recompute`
    vLLM's). A-min is `O(log 1/alpha)`-competitive with shortest answer first, `alpha`
    the least ratio of a bound to its length.

    Parameters
    ----------
    groups, every, backfill, seed
        See `sorted_f_online`.
    factor : float
        What an outlived estimate is raised to, in multiples of the tokens known to be
        needed. 1 is A-min; 2 keeps room for as much again, and evicts less.
    """
    select = SELECTORS.find(groups)(Options())
    lengths = Raised(factor)
    queue = GroupQueue(select, lengths, every=every, seed=seed)
    return MostProgressFirst(ListPolicy(queue, "look-ahead", backfill, lengths))
