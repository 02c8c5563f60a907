"""Values of requests that hold a prefix together, checked against prices of KV.

Requests with the same leaf hold its blocks over the union of their runs. Let `c_i(p)`
be the cost of request `i` from start `p` on, all prices but the leaf's rest `r_k`
included, and let the rest be paid in each step of stretch `k` in which one of them
runs. Values `v_i` are a lower bound, `sum_i v_i <= sum_i c_i(p_i) + r(union)` for all
starts, if the following holds.

A union consists of pieces without a gap. A piece begins in a stretch `a` and ends in a
stretch `b`, and so each of its runs lies within them: it costs at least `c_i(a, b)`,
the least cost of a run there. All stretches between `a` and `b` are paid, and so is the
longest run, of a request `j`: let `d_j(a, b)` be the least cost of a run of `j` there,
the rest in its steps included. So the values hold if for all `a <= b` and `j`

    v_j + sum_{i before j} max(0, v_i - c_i(a, b))
        <=  max(d_j(a, b), c_j(a, b) + sum_{a < k < b} r_k (steps of k)),

where `i` is before `j` if its answer is shorter, or as long and its number smaller. The
steps after the last price are one more stretch, in which nothing is paid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.errors import CertificateError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MOST_PAID = 2**61
"""The prices of all steps together, and what values gain over the least costs."""

NO_RUN = 2**62
"""Cost of a window into which no run fits; all others must be below it."""


def excess(
    members: Iterable[tuple[int, int, Ints, int]], ends: Ints, rest: Ints
) -> int:
    """Return by how much the values of one leaf's requests are too high, 0 if valid.

    Lowering each of them by that much makes them valid.

    Parameters
    ----------
    members : iterable of (int, int, int64 array, int)
        Answer, first start, cost of each start from that on to the last step with a
        price, and value of each request, by ascending answers.
    ends : int64 array, shape (K,)
        Last step of each stretch.
    rest : int64 array, shape (K,)
        Price of a step in which one of them runs, in all steps below `MOST_PAID`.

    Raises
    ------
    CertificateError
        If values are too high for 64-bit arithmetic.
    """
    length = np.diff(ends, prepend=0)
    paid = np.concatenate([[0], np.cumsum(rest * length), [0]])
    paid[-1] = paid[-2]
    # All stretches between: sum of a + 1, ..., b - 1.
    inner = np.maximum(paid[:-1][None, :] - paid[1:][:, None], 0)
    until = np.concatenate([[0], np.cumsum(np.repeat(rest, length))])
    last = int(length.sum())
    gained = np.zeros_like(inner)
    worst = most = 0
    for answer, first, cost, value in members:
        most += max(0, value - int(cost.min()))
        if most >= MOST_PAID:
            raise CertificateError("the values are too high.")
        start = np.arange(first, first + len(cost))
        cells = (
            np.searchsorted(ends, start, side="right"),
            np.searchsorted(ends, start + answer, side="left"),
        )
        run = until[np.minimum(start + answer, last)] - until[np.minimum(start, last)]
        least, alone = (
            _least_within(part, *cells, len(ends)) for part in (cost, cost + run)
        )
        over = gained + value - np.maximum(alone, least + inner)
        worst = max(worst, int(over[least < NO_RUN].max()))
        gained += np.maximum(value - least, 0)
    return worst


def _least_within(values: Ints, begin: Ints, end: Ints, count: int) -> Ints:
    """Least value of the runs within stretches `a` to `b`, for all `a` and `b`.

    Parameters
    ----------
    values : int64 array
        One for each run, by ascending starts.
    begin, end : int64 arrays
        Stretches in which the runs begin and end, from 0 to `count`.
    """
    pair = begin * (count + 1) + end
    first = np.flatnonzero(np.diff(pair, prepend=-1))
    table = np.full((count + 1, count + 1), NO_RUN, dtype=np.int64)
    table[begin[first], end[first]] = np.minimum.reduceat(values, first)
    least = np.minimum.accumulate(table[::-1], axis=0)[::-1]
    return np.asarray(np.minimum.accumulate(least, axis=1))
