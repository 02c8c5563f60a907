"""First come, first served: vLLM's default."""

from __future__ import annotations

from online.policies.parts import ranks
from online.policies.parts.listed import Admission, ListPolicy, by_rank
from online.policy import register_policy


@register_policy("fcfs", about="first come, first served", knows="nothing")
def fcfs(admission: Admission = "engine", backfill: int = 0) -> ListPolicy:
    """First come, first served: vLLM's default.

    Parameters
    ----------
    admission, backfill
        See `ListPolicy`.
    """
    return by_rank(ranks.arrival, admission, backfill)
