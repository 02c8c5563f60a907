"""Smallest prompt and answer together first."""

from __future__ import annotations

from online.policies.parts import ranks
from online.policies.parts.listed import Admission, ListPolicy, by_rank
from online.policy import register_policy


@register_policy("total-size", about="smallest s + o first", knows="a length")
def total_size(admission: Admission = "look-ahead", backfill: int = 0) -> ListPolicy:
    """Smallest sum of prompt and answer first.

    Parameters
    ----------
    admission, backfill
        See `ListPolicy`.
    """
    return by_rank(ranks.total_size, admission, backfill)
