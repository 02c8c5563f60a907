"""Smallest volume first, weighted by the backlog."""

from __future__ import annotations

from online.policies.parts.boost_queue import BoostQueue
from online.policies.parts.listed import ListPolicy
from online.policy import register_policy


@register_policy("svf-boost", about="boost by volume and backlog", knows="a length")
def svf_boost(
    share: float = 0.5, gamma: float | None = None, backfill: int = 0
) -> ListPolicy:
    """Small volumes first, by a boost that grows with the backlog.

    Least `a - b_gamma(w)` first, with UniBoost's boost `b` and `w` the seconds for
    which a request alone would keep the engine busy (its memory-time volume over the
    cache, and its prompt). `1 / gamma`, the time by which small requests may overtake
    others, is `share` times the work of all waiting requests: first come, first served
    for an empty queue, and increasingly by volume as the backlog grows. Starts by
    look-ahead; with correct lengths no request is ever preempted. A request of work `w`
    is overtaken only by requests that arrive within its boost and theirs, so none
    starves.

    Parameters
    ----------
    share : float
        `1 / gamma` as a multiple of the backlog's work.
    gamma : float, optional
        A fixed value instead, in 1/seconds.
    backfill : int
        Requests that do not fit and may be passed over, at most.
    """
    return ListPolicy(BoostQueue(share, gamma), "look-ahead", backfill)
