"""Sorted-F while requests arrive, with lengths that are known or only estimated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from online.policies.parts.group_queue import GroupQueue
from online.policies.parts.lengths import Raised, Told
from online.policies.parts.listed import ListPolicy
from online.policy import register_policy
from sortedf.groups import Exact, local_swap, quantile_greedy
from sortedf.options import Options

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.state import Decision, State
    from sortedf.groups import Selector

Groups = Literal["exact", "local-swap", "quantile-greedy"]


def _selector(name: str) -> Selector:
    selectors: dict[str, Selector] = {
        "exact": Exact(Options()),
        "local-swap": local_swap,
        "quantile-greedy": quantile_greedy,
    }
    if name not in list(selectors):
        raise ValueError(
            f"groups = {name!r} but must be one of: {', '.join(selectors)}."
        )
    return selectors[name]


@register_policy(
    "sorted-f-online", about="Sorted-F, solved again as others arrive", knows="a length"
)
def sorted_f_online(
    groups: Groups = "quantile-greedy",
    every: int = 1,
    keep_group: bool = False,
    backfill: int = 0,
    seed: int = 0,
) -> ListPolicy:
    """Sorted-F over a receding horizon (arXiv 2508.06133).

    Phase 1 selects groups of least `F(X) = sum of o / |X|^2` among what waits, phase 2
    starts them in that order by look-ahead, given what runs, which is never moved. For
    a backlog with exact groups it is Sorted-F, with its ratio of 48.

    Parameters
    ----------
    groups : {"quantile-greedy", "local-swap", "exact"}
        How a group is selected.
    every : int
        Arrivals after which groups are selected again; 0: only when all that were
        selected have started.
    keep_group : bool
        Whether a group of which some have started stays in front.
    backfill : int
        How many requests that do not fit may be passed over.
    seed : int
        For the samples of `quantile-greedy`.
    """
    lengths = Told()
    queue = GroupQueue(
        _selector(groups), lengths, every=every, keep_group=keep_group, seed=seed
    )
    return ListPolicy(queue, "look-ahead", backfill, lengths)


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
    "sorted-f-amin", about="Sorted-F by lower estimates", knows="a lower bound"
)
def sorted_f_amin(
    groups: Groups = "quantile-greedy",
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
    lengths = Raised(factor)
    queue = GroupQueue(_selector(groups), lengths, every=every, seed=seed)
    return MostProgressFirst(ListPolicy(queue, "look-ahead", backfill, lengths))
