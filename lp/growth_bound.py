"""The growth bound: the dual bound's prices, used on growth rows.

Any prices `nu`, horizons `H` and `theta` prove a bound (`lp.growth`). Here `nu` comes
from prices `lambda` of KV, `H` is about the time from one completion to the next in the
fluid relaxation, and `theta` is chosen among the sizes of the requests. At the optimal
`lambda` of the linear relaxation this is within 0.1 % of optimising `nu` directly.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lp.dual import HUGE, climb_once, or_answers, prices_are_quick
from lp.growth import (
    GrowthPrices,
    growth_bound,
    growth_prices,
    least_brackets,
    price_of_rows,
)
from sortedf.bounds import Bound, Stage, register_bound
from sortedf.certificate import instance_hash
from sortedf.fluid_prices import fluid_prices
from sortedf.growth_certificate import GrowthCertificate
from sortedf.segments import horizon
from sortedf.volume import volume

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.bounds import BoundOptions
    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

QUANTILES = (0.02, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0)
"""Quantiles of the requests' sizes, weighted by volume, tried for `theta`."""

SAMPLE = 1000
"""Approximate size of the sample on which `theta` and horizons are chosen."""

MANY_STEPS = 10**6
"""Steps up to which the scan of growth rows takes two seconds for few requests."""

HORIZON_FACTORS = (0.6, 0.85, 1.1)
"""Horizons tried, as multiples of the time from one completion to the next."""


def growth_is_quick(instance: Instance, time_limit: float | None) -> bool:
    """Whether prices can be scanned in about the time limit, or two seconds."""
    seconds = max(time_limit or 0.0, 1.0)
    return prices_are_quick(instance, time_limit) and (
        horizon(instance) <= MANY_STEPS * seconds
    )


@register_bound(
    "growth",
    about="the dual bound on rows that account for the growth of running requests",
    cost="as the dual bound",
    quick=growth_is_quick,
    stage=Stage.CLIMB,
)
def growth(instance: Instance, options: BoundOptions) -> Bound:
    """Dual bound strengthened by growth rows; never below the dual bound.

    The certificate has growth rows, or prices if they prove the same bound. If requests
    times steps exceed `lp.dual.HUGE` the scan takes most of a minute, and above
    `MANY_STEPS` seconds; if the time limit has passed by then, or Ctrl-C has ended the
    ascent, the result is the dual bound.
    """
    ascent = climb_once(instance, options)
    climbed = ascent.certificate
    certificate = or_answers(instance, climbed)
    plain = Bound(certificate.bound, certificate, interrupted=ascent.interrupted)
    steps = len(climbed.price)
    slow = instance.num_requests * steps > HUGE or steps > MANY_STEPS
    if plain.interrupted or (slow and options.out_of_time()):
        return plain
    prices = climbed.price.astype(np.float64) * 0.5**climbed.scale_bits
    try:
        found = strengthen(instance, prices)
        value = plain.value if found is None else growth_bound(instance, found)
    except KeyboardInterrupt:
        return replace(plain, interrupted=True)
    if found is None or value <= plain.value:
        return plain
    return Bound(value, growth_certificate(instance, found, value))


def growth_certificate(
    instance: Instance, prices: GrowthPrices, bound: int
) -> GrowthCertificate:
    """Certificate of a bound by prices of growth rows."""
    return GrowthCertificate(
        instance_hash(instance),
        bound,
        prices.scale_bits,
        prices.theta,
        prices.horizon,
        prices.value,
    )


def strengthen(instance: Instance, prices: Floats) -> GrowthPrices | None:
    """Search for the growth rows of the largest bound.

    Parameters
    ----------
    instance : Instance
    prices : float64 array, shape (T,)
        Prices of a token of KV in the steps `t = 1, ..., T`, near the optimal ones.

    Returns
    -------
    GrowthPrices or None
        None if there are no requests or no prices.
    """
    if not len(prices) or not instance.num_requests:
        return None
    spacing = fluid_spacing(instance, len(prices))
    stride = -(-instance.num_requests // SAMPLE)
    sample = instance.subset(np.arange(0, instance.num_requests, stride))
    part = sample.num_requests / instance.num_requests

    def at(theta: int, factor: float) -> tuple[float, GrowthPrices]:
        horizon = np.minimum(factor * spacing, len(prices)).astype(np.int64)
        found = growth_prices(instance, prices, horizon, theta)
        value = least_brackets(sample, found) / part - price_of_rows(instance, found)
        return value / 2**found.scale_bits, found

    middle = HORIZON_FACTORS[len(HORIZON_FACTORS) // 2]
    tried = {theta: at(theta, middle) for theta in _sizes(instance)}
    theta = max(tried, key=lambda key: tried[key][0])
    ends = [at(theta, factor) for factor in HORIZON_FACTORS if factor != middle]
    return max([tried[theta], *ends], key=lambda pair: pair[0])[1]


def fluid_spacing(instance: Instance, steps: int) -> Floats:
    """Time between completions in the fluid relaxation, around each of the steps.

    While request `i` is served, its prices fall by `1 / v_i` a step and completions are
    `v_i / M` apart; 0 where it is idle, or where an arrival lifts the prices.
    """
    prices = fluid_prices(instance)
    fall = np.maximum(prices[:-1] - prices[1:], 0)
    spacing = np.zeros(steps)
    known = min(steps, len(fall))
    with np.errstate(divide="ignore"):
        apart = np.where(fall > 0, 1 / (fall * instance.usable_kv), 0)
    spacing[:known] = apart[:known]
    spacing[known:] = apart[known - 1] if known else 0
    return spacing


def _sizes(instance: Instance) -> list[int]:
    """Tokens held by requests halfway through their answers, at `QUANTILES`."""
    size = instance.prefill + instance.decode // 2
    order = np.argsort(size)
    share = np.cumsum(volume(instance)[order].astype(np.float64))
    where = np.searchsorted(share, share[-1] * np.array(QUANTILES))
    return sorted(set(size[order][np.minimum(where, len(size) - 1)].tolist()))
