"""Smallest memory-time volume first (arXiv 2606.22327)."""

from __future__ import annotations

from online.policies.parts import ranks
from online.policies.parts.listed import Admission, ListPolicy, by_rank
from online.policy import register_policy


@register_policy("svf", about="smallest volume first", knows="a length")
def svf(admission: Admission = "look-ahead", backfill: int = 0) -> ListPolicy:
    """Smallest memory-time volume first (arXiv 2606.22327).

    Parameters
    ----------
    admission, backfill
        See `ListPolicy`.
    """
    return by_rank(ranks.volume, admission, backfill)
