"""Sorted-F while requests arrive, with lengths that are known."""

from __future__ import annotations

from online.policies.parts.group_queue import GroupQueue
from online.policies.parts.lengths import Told
from online.policies.parts.listed import ListPolicy
from online.policy import register_policy
from sortedf.groups import SELECTORS
from sortedf.options import Options


@register_policy(
    "sorted-f-online", about="Sorted-F, solved again as others arrive", knows="a length"
)
def sorted_f_online(
    groups: str = "quantile-greedy",
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
    groups : str
        What selects a group, one of `sortedf.groups.SELECTORS`.
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
    select = SELECTORS.find(groups)(Options())
    lengths = Told()
    queue = GroupQueue(select, lengths, every=every, keep_group=keep_group, seed=seed)
    return ListPolicy(queue, "look-ahead", backfill, lengths)
