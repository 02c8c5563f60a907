"""Requests and prices of the searches: cost of a start, and when a request is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sortedf.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FAR = 2**60
"""A step that no schedule reaches."""

PREFILL, DECODE, ARRIVAL, WEIGHT, DEADLINE, VOLUME, DUE = range(7)
"""Columns of `Guide.request`."""


class Guide(NamedTuple):
    """Data of the requests, by rank, and prices of KV, for the search.

    Attributes
    ----------
    request : int64 array, shape (n, 7)
        `s`, `o`, `a`, the weight of a step of latency, the last step to complete in,
        `v`, and the start that prices recommend.
    least : float64 array, shape (n,)
        Cost of the request if it starts when it is due.
    price : float64 array, shape (T + 1, 2)
        The sums of `lambda_u` and of `u lambda_u` up to each step.
    late_cost : float
        Cost of each step after the last one to complete in.
    budget, block, max_seqs, max_tokens : int
        The engine's rules.
    by_end : bool
        Whether the makespan is minimised.

    Notes
    -----
    Few and plain arrays, because the kernels pass them on: a tuple of many arrays made
    them five times slower.
    """

    request: Ints
    least: Floats
    price: Floats
    late_cost: float
    budget: int
    block: int
    max_seqs: int
    max_tokens: int
    by_end: bool


@kernel
def request_cost(
    request: Ints, price: Floats, late_cost: float, i: int, t: int
) -> float:
    """Cost of starting `i` at `t`: weighted completion, lateness and priced KV."""
    last = len(price) - 1
    end = t + request[i, DECODE]
    low, high = min(t, last), min(end, last)
    cost: float = (
        request[i, WEIGHT] * end
        + (request[i, PREFILL] - t) * (price[high, 0] - price[low, 0])
        + price[high, 1]
        - price[low, 1]
    )
    if end > request[i, DEADLINE]:
        cost += late_cost * (end - request[i, DEADLINE])
    return cost


@kernel
def find_due(guide: Guide, stride: int) -> None:
    """Fill in when requests are due: the cheapest start, by a scan and bisection.

    With `stride == 0` they are due on arrival.
    """
    request, price, late_cost = guide.request, guide.price, guide.late_cost
    for i in range(len(request)):
        first = best_start = request[i, ARRIVAL]
        best = request_cost(request, price, late_cost, i, first)
        for t in range(first + stride, len(price) if stride else 0, max(stride, 1)):
            cost = request_cost(request, price, late_cost, i, t)
            if cost < best:
                best, best_start = cost, t
        step = stride
        while step > 1:
            step = (step + 1) // 2
            for t in (best_start - step, best_start + step):
                if t >= first:
                    cost = request_cost(request, price, late_cost, i, t)
                    if cost < best:
                        best, best_start = cost, t
        request[i, DUE] = best_start
        guide.least[i] = best
