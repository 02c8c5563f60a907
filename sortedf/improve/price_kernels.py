"""Prices of KV that is held, or stays free, until later steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sortedf.improve.guide_kernels import DECODE
from sortedf.improve.running_kernels import first_above
from sortedf.jit import kernel

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

ANSWERS = 16
"""Waiting requests whose answers represent those of all."""


@kernel
def idle_cost(
    price: Floats, budget: int, low: int, high: int, count: int, used: int, end: int
) -> float:
    """Price of the free KV in the steps `low + 1` to `high`.

    `count` requests hold `used` in step `end` and one token less each in each step
    before.
    """
    last = len(price) - 1
    a, b = min(low, last), min(high, last)
    prices, moments = price[b, 0] - price[a, 0], price[b, 1] - price[a, 1]
    return float((budget - used + count * end) * prices - count * moments)


@kernel
def price_at(price: Floats, t: int) -> float:
    """Price of a token in the step after `t`."""
    last = len(price) - 1
    return float(price[min(t + 1, last), 0] - price[min(t, last), 0])


@kernel
def _fade(answers: Ints, ahead: int) -> float:
    """Return the weight of a gap between completions that is `ahead` steps away.

    A later request may complete within the gap and close it, if its answer is shorter
    than that; and the farther the gap is, the more requests will have started.
    """
    longer = len(answers) - first_above(answers, len(answers), ahead)
    far = ahead / answers[len(answers) // 2]
    return float(longer / len(answers) / (1 + far + far * far / 2))


@kernel
def spread_cost(price: Floats, t: int, end: Ints, count: int, answers: Ints) -> float:
    """Price of the KV that stays free because completions are not evenly spread.

    Until a completion, `count` requests grow by a token a step each, and that memory
    must stay free: a gap of `g` steps costs `count g^2 / 2` tokens times steps.
    """
    before, total = t, 0.0
    for k in range(count):
        gap = end[k] - before
        if gap:
            total += gap * gap * _fade(answers, end[k] - t)
        before = end[k]
    return total * count / 2 * price_at(price, t)


@kernel
def evenness(end: Ints, count: int, t: int, own_end: int, answers: Ints) -> float:
    """Evenness that a completion at `own_end` adds to the others: see `spread_cost`."""
    k = first_above(end, count, own_end)
    if k == count:
        return 0.0
    before = end[k - 1] if k > 0 else t
    gaps = (own_end - before) * (end[k] - own_end)
    return float(count * gaps * _fade(answers, own_end - t))


@kernel
def sample_answers(
    request: Ints, ids: Ints, first: int, count: int, answers: Ints
) -> float:
    """Fill `answers`, ascending, with some of `count` requests; return their mean."""
    total = 0
    for k in range(len(answers)):
        o = request[ids[first + k * count // len(answers)], DECODE]
        total += o
        j = k
        while j > 0 and answers[j - 1] > o:
            answers[j] = answers[j - 1]
            j -= 1
        answers[j] = o
    return total / len(answers)


@kernel
def held_after(price: Floats, t: int, end: Ints, used: Ints, count: int) -> float:
    """Price of the KV that running requests will hold after `t`."""
    last = len(price) - 1
    before, total = t, 0.0
    for k in range(count):
        if end[k] > before:
            low, high = min(before, last), min(end[k], last)
            running = count - k
            total += (used[k] - running * end[k]) * (price[high, 0] - price[low, 0])
            total += running * (price[high, 1] - price[low, 1])
            before = end[k]
    return total
