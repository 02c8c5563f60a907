"""Shortest answer first, admitted by look-ahead (arXiv 2502.07115)."""

from __future__ import annotations

from online.policies.parts import ranks
from online.policies.parts.listed import Admission, ListPolicy, by_rank
from online.policy import register_policy


@register_policy("mc-sf", about="shortest answer first", knows="a length")
def mc_sf(admission: Admission = "look-ahead", backfill: int = 0) -> ListPolicy:
    """Shortest answer first, admitted by look-ahead (arXiv 2502.07115).

    Parameters
    ----------
    admission, backfill
        See `ListPolicy`.
    """
    return by_rank(ranks.decode, admission, backfill)
