"""Quality of an order: Kendall's tau_b."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import kendalltau

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def tau_b(scores: ArrayLike, lengths: ArrayLike) -> float:
    """Kendall's tau_b between scores and true lengths: 1 is the same order, 0 chance.

    If all scores or all lengths are equal, there is no order, and it is 0.

    Examples
    --------
    >>> round(tau_b([1, 2, 3, 4], [10, 20, 40, 30]), 3)
    0.667
    """
    values = np.asarray(scores, dtype=np.float64)
    if np.ptp(values) == 0 or np.ptp(np.asarray(lengths, dtype=np.float64)) == 0:
        return 0.0
    return float(kendalltau(values, lengths).statistic)
