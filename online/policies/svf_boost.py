"""Smallest volume first by as much as the queue is long."""

from __future__ import annotations

from online.policies.parts.boost_queue import BoostQueue
from online.policies.parts.listed import ListPolicy
from online.policy import register_policy


@register_policy("svf-boost", about="boost by volume and backlog", knows="a length")
def svf_boost(
    share: float = 0.5, gamma: float | None = None, backfill: int = 0
) -> ListPolicy:
    """Small volumes first, but only by as much as the queue is long.

    Least `a - b_gamma(w)` first, with UniBoost's boost `b` and `w` the seconds for
    which a request alone would keep the engine busy (its memory-time volume over the
    cache, and its prompt). `1 / gamma`, the time by which small requests may pass
    others, is `share` times the work of all that wait: first come, first served where
    nothing waits, ever more by volume as memory gets scarce. Starts by look-ahead; with
    right lengths nothing is ever preempted. A request of work `w` is passed only by
    those that arrive within its own boost and theirs, so that none starves.

    Parameters
    ----------
    share : float
        Of the backlog.
    gamma : float, optional
        In 1/seconds; fixed instead.
    backfill : int
        How many requests that do not fit may be passed over.
    """
    return ListPolicy(BoostQueue(share, gamma), "look-ahead", backfill)
