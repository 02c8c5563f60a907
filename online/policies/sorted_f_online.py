"""Sorted-F with arrivals over time and known lengths."""

from __future__ import annotations

from online.policies.parts.group_queue import GroupQueue
from online.policies.parts.lengths import PredictedLengths
from online.policies.parts.listed import ListPolicy
from online.policy import register_policy
from sortedf.groups import SELECTORS
from sortedf.options import Options


@register_policy(
    "sorted-f-online", about="Sorted-F, solved again at arrivals", knows="a length"
)
def sorted_f_online(
    groups: str = "quantile-greedy",
    every: int = 1,
    keep_group: bool = False,
    backfill: int = 0,
    seed: int = 0,
) -> ListPolicy:
    """Sorted-F over a receding horizon (arXiv 2508.06133).

    Phase 1 selects groups of least `F(X) = sum of o / |X|^2` among the waiting
    requests, phase 2 starts them in that order by look-ahead beside the running
    requests. For a backlog with exact groups it is Sorted-F, with its ratio of 48.

    Parameters
    ----------
    groups : str
        Group selector, one of `sortedf.groups.SELECTORS`.
    every : int
        Arrivals after which groups are selected again; 0: only when all selected
        requests have started.
    keep_group : bool
        Whether a group of which some requests have started stays first.
    backfill : int
        Requests that do not fit and may be passed over, at most.
    seed : int
        Seed of the samples of `quantile-greedy`.
    """
    select = SELECTORS.find(groups)(Options())
    lengths = PredictedLengths()
    queue = GroupQueue(select, lengths, every=every, keep_group=keep_group, seed=seed)
    return ListPolicy(queue, "look-ahead", backfill, lengths)
