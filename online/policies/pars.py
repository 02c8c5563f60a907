"""PARS (arXiv 2510.03243): a learned rank with bounded waiting."""

from __future__ import annotations

from online.policies.parts import ranks
from online.policies.parts.listed import Admission, ListPolicy
from online.policies.parts.ranked_queue import RankedQueue
from online.policy import register_policy
from online.starvation import BoundedWait


@register_policy(
    "pars", about="least learned score first (arXiv 2510.03243)", knows="a rank"
)
def pars(
    starvation_s: float = 120.0, admission: Admission = "engine", backfill: int = 0
) -> BoundedWait:
    """Least learned score first; requests without a score come last.

    A request that has waited longer than `starvation_s` is served before all others, by
    the same rule as `max_wait_s` of every policy.

    Parameters
    ----------
    starvation_s : float
        Seconds; two minutes in the paper. With unit steps it is in steps.
    admission, backfill
        See `ListPolicy`; look-ahead needs predicted lengths besides the rank.
    """
    queue = RankedQueue(ranks.learned, ranks.learned)
    return BoundedWait(ListPolicy(queue, admission, backfill), starvation_s)
