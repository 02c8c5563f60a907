"""Prices of KV memory over time: the dual of the fluid relaxation, in closed form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.fluid_schedule import fluid_pieces
from sortedf.volume import volume

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance


def fluid_prices(
    instance: Instance, weight: NDArray[np.int64] | None = None
) -> NDArray[np.float64]:
    """Optimal prices of the fluid relaxation, one for each step up to its makespan.

    The relaxation (see `sortedf.bounds.fluid`) serves the smallest volume that has
    arrived. Its dual prices are `lambda(t) = max_i (pi_i - t / v_i)^+` over the
    requests that have arrived, so while request `i` is served they fall with slope
    `-1 / v_i`, from one request to the next without a jump, and to 0 where the machine
    falls idle. They jump up only where a smaller request arrives and interrupts. For a
    backlog that is the piecewise linear curve with slope `-1 / v_k` on
    `(V_{k-1}, V_k]`, `V_k = (v_1 + ... + v_k) / M`, `v` ascending. If a step of
    latency of request `i` costs `w_i` instead of 1, `v_i / w_i` replaces `v_i` in the
    slopes and in the order of service.

    Parameters
    ----------
    instance : Instance
    weight : int64 array, shape (n,), optional
        `w`, at least 0; all 1 if left out.

    Returns
    -------
    float64 array, shape (T,)
        `lambda` in the middle of each step, `t - 1/2` for `t = 1, ..., T`.
    """
    pieces = _pieces(instance, weight)
    last = pieces[-1][2] if pieces else 0.0
    level: dict[int, float] = {}  # pi_i, known from a request's last piece on
    begins, ends, heights, slopes = [], [], [], []
    next_price, next_begin = 0.0, last
    for i, begin, end, slope in reversed(pieces):
        if i not in level:
            if end < next_begin:  # idle in between
                next_price = 0.0
            level[i] = next_price + end * slope
        next_price, next_begin = level[i] - begin * slope, begin
        begins.append(begin)
        ends.append(end)
        heights.append(level[i])
        slopes.append(slope)
    middle = np.arange(int(np.ceil(last))) + 0.5
    piece = np.searchsorted(ends[::-1], middle)
    piece = np.minimum(piece, len(pieces) - 1)
    inside = np.asarray(begins[::-1])[piece] <= middle
    price = np.asarray(heights[::-1])[piece] - np.asarray(slopes[::-1])[piece] * middle
    return np.where(inside, np.maximum(price, 0), 0)


def _pieces(
    instance: Instance, weight: NDArray[np.int64] | None
) -> list[tuple[int, float, float, float]]:
    """Fluid schedule as (request, begin, end, w / v), in order of time."""
    volumes = volume(instance)
    slope = ((1 if weight is None else weight) / volumes).tolist()
    budget = instance.usable_kv
    pieces = fluid_pieces(
        instance.arrival.tolist(),
        volumes.tolist(),
        budget,
        None if weight is None else weight.tolist(),
    )
    return [(i, begin / budget, end / budget, slope[i]) for i, begin, end in pieces]
