"""The dual bound: prices found by ascent on the smoothed dual function.

Initial prices are those of the fluid relaxation; temperatures fall from stage to stage,
and in each stage a quasi-Newton method (`sortedf.quasi_newton`) maximises the smoothed
function of `lp.smoothing`. Subgradient and bundle methods on the same prices stall 0.3
to 1 % lower if few requests run at once, because the optimal prices then are spikes at
the completions.

After each stage the prices are rounded and evaluated exactly, and the best are kept. So
there is a proven bound at any time, and an interrupt loses only the current stage.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.prices import certify, dual_value, fixed_point
from lp.smoothing import smoothed_dual
from sortedf.arrays import exact_sum
from sortedf.bounds import Bound, register_bound
from sortedf.fluid_prices import fluid_prices
from sortedf.quasi_newton import minimise
from sortedf.segments import horizon

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.bounds import BoundOptions
    from sortedf.certificate import Certificate
    from sortedf.instance import Instance

    Floats = NDArray[np.float64]

STAGES = (0.05, 0.015, 0.005, 0.0015)
"""Temperatures, in mean answer lengths."""

ITERATIONS = 80
"""Steps of the quasi-Newton method in a stage."""

LARGE = 10**7
"""Product of requests and steps above which only the last two stages are run."""

HUGE = 10**10
"""Product of requests and steps above which there is no ascent."""

PRICED = 5 * 10**9
"""Product of requests and steps whose prices are evaluated in a second."""


def prices_are_quick(instance: Instance, time_limit: float | None) -> bool:
    """Whether prices are useful and evaluated within the time limit, or a second."""
    if int(instance.peak.sum()) <= instance.usable_kv:
        return False  # all fit at once
    seconds = max(time_limit or 0.0, 1.0)
    return instance.num_requests * horizon(instance) <= PRICED * seconds


@dataclass(slots=True, eq=False)
class Ascent:
    """The best prices so far and data of the last smoothed solution.

    Attributes
    ----------
    certificate : Certificate
        Certificate of the best bound so far.
    mean_start : float64 array, shape (n,)
        Expected start of each request in the last smoothed solution.
    alpha_start : int64 array, shape (k, n)
        `alpha_start` of that solution, see `lp.smoothing`.
    history : list of int
        The initial bound and the bound after each stage.
    interrupted : bool
        Whether Ctrl-C ended the ascent.
    """

    certificate: Certificate
    mean_start: Floats
    alpha_start: NDArray[np.int64]
    history: list[int]
    interrupted: bool = False


def climb(instance: Instance, options: BoundOptions) -> Ascent:
    """Search for the prices of the largest bound.

    Parameters
    ----------
    instance : Instance
    options : BoundOptions
        Time limit, target and progress count; `progress(bound, 0)` is called after
        each stage.

    Returns
    -------
    Ascent
    """
    prices = fluid_prices(instance)
    best = certify(instance, prices)
    options.report(best.bound, 0)
    stages = _stages(instance, len(prices))
    start, _ = dual_value(instance, fixed_point(instance, prices))
    ascent = Ascent(best, start.astype(np.float64), start[None, :], [best.bound])
    # Prices extend beyond the fluid schedule, since real schedules end later.
    room = len(prices) // 4 + int(instance.decode.max(initial=0))
    prices = np.concatenate([prices, np.zeros(room)])
    iterations = round(ITERATIONS * options.effort)
    for temperature in stages if iterations else []:
        if options.out_of_time() or options.reached(best.bound):
            break
        stage = _Stage(instance, options, temperature, ascent.mean_start)
        stage.iterations = iterations
        try:
            prices = stage.climb(prices)
            found = certify(instance, prices)
        except KeyboardInterrupt:
            ascent.interrupted = True
            break
        ascent.mean_start = stage.mean_start
        ascent.alpha_start = stage.alpha_start
        if found.bound > best.bound:
            best = ascent.certificate = found
        ascent.history.append(best.bound)
        options.report(best.bound, 0)
    return ascent


def climb_once(instance: Instance, options: BoundOptions) -> Ascent:
    """Return the result of `climb`, shared with other bounds of the same call."""
    known: tuple[Instance, Ascent] | None = options.shared.get("climb")
    if known is not None and known[0] is instance:
        return known[1]
    ascent = climb(instance, options)
    options.shared["climb"] = instance, ascent
    return ascent


def _stages(instance: Instance, steps: int) -> list[float]:
    if instance.num_requests == 0 or instance.num_requests * steps > HUGE:
        return []
    unit = float(instance.decode.mean())
    first = 2 if instance.num_requests * steps > LARGE else 0
    return [part * unit for part in STAGES[first:]]


class _Stage:
    """The smoothed dual function at one temperature, for the quasi-Newton method."""

    def __init__(
        self,
        instance: Instance,
        options: BoundOptions,
        temperature: float,
        mean_start: Floats,
    ) -> None:
        self.mean_start = mean_start
        self.iterations = ITERATIONS
        self.alpha_start = self._hint = mean_start.astype(np.int64)
        self._instance = instance
        self._options = options
        self._temperature = temperature
        self._price_unit = 1.0
        self._value_unit = float(max(instance.num_requests, 1))

    def climb(self, prices: Floats) -> Floats:
        """Return better prices; stop early at the time limit."""
        self._price_unit = max(float(prices.max(initial=0)), 1e-12)
        found = minimise(
            self._loss,
            prices / self._price_unit,
            iterations=self.iterations,
            stop=self._options.out_of_time,
        )
        return found * self._price_unit

    def _loss(self, scaled: Floats) -> tuple[float, Floats]:
        prices = scaled * self._price_unit
        seen = smoothed_dual(self._instance, prices, self._temperature, self._hint)
        self._hint, self.mean_start = seen.likely_start, seen.mean_start
        self.alpha_start = seen.alpha_start
        slope = -seen.excess * (self._price_unit / self._value_unit)
        return -seen.value / self._value_unit, slope


@register_bound(
    "dual",
    about="prices of memory over time, within a fraction of a percent of the linear "
    "relaxation",
    cost="a second for hundreds of requests, anytime above",
)
def dual(instance: Instance, options: BoundOptions) -> Bound:
    """Dual bound with its certificate; never below the sum of answer lengths."""
    ascent = climb_once(instance, options)
    certificate = or_answers(instance, ascent.certificate)
    return Bound(certificate.bound, certificate, interrupted=ascent.interrupted)


def or_answers(instance: Instance, certificate: Certificate) -> Certificate:
    """Return a certificate without prices, `sum o_i`, if that bound is larger."""
    if certificate.bound >= exact_sum(instance.decode):
        return certificate
    return certify(instance, np.zeros(0))
