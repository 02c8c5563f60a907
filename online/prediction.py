"""Predicted answer lengths: error models, intervals, and estimates from runs.

An error model converts true lengths to predicted ones, so that a policy can be tested
with predictions of any quality. All draws come from the given generator.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

import numpy as np

from online.named import check_options
from online.noisy_ranks import noisy_lengths
from online.requests import UNKNOWN
from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


class Errors(Protocol):
    """Error model: converts true answer lengths to predicted ones."""

    def __call__(self, decode: Ints, rng: np.random.Generator) -> Ints:
        """Return predicted lengths, at least 1."""
        ...


ERRORS: Table[Callable[..., Errors]] = Table("model of prediction errors")
"""Functions that create error models, by name; options by keyword."""


def make(name: str, **options: float) -> Errors:
    """Create a model of prediction errors.

    Parameters
    ----------
    name : str
        One of `ERRORS`.
    **options
        Options of that model.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> make("biased", factor=10.0)(np.array([3, 50]), rng).tolist()
    [30, 500]
    """
    model = ERRORS.find(name)
    check_options("model of prediction errors", name, model, options)
    return model(**options)


def _lengths(values: NDArray[np.float64] | Ints) -> Ints:
    """Round to integers from 1 to `UNKNOWN`."""
    return np.asarray(np.clip(np.rint(values), 1, UNKNOWN), dtype=np.int64)


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} = {value} but must be a number above 0.")


@ERRORS.register("exact")
def exact() -> Errors:
    """No errors."""
    return lambda decode, rng: decode.copy()


@ERRORS.register("lognormal")
def lognormal(sigma: float = 0.5) -> Errors:
    """Each length times `exp(sigma Z)`, `Z` standard normal: unbiased in the median.

    Parameters
    ----------
    sigma : float
        0 for no errors; at 0.7 half of the predictions are off by a factor above 1.6.
    """
    if not (math.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma = {sigma} but must be a number, 0 or more.")
    return lambda decode, rng: _lengths(
        decode * np.exp(sigma * rng.standard_normal(len(decode)))
    )


@ERRORS.register("biased")
def biased(factor: float = 2.0) -> Errors:
    """Each length times the same factor."""
    _check_positive("factor", factor)
    return lambda decode, rng: _lengths(decode * factor)


@ERRORS.register("rank-preserving")
def rank_preserving() -> Errors:
    """Wrong lengths in the right order.

    The predicted lengths are draws, uniform in the logarithm from 1 to the longest true
    length, assigned in the order of the true ones.
    """

    def predict(decode: Ints, rng: np.random.Generator) -> Ints:
        longest = math.log(max(int(decode.max(initial=1)), 1))
        drawn = np.sort(np.exp(rng.uniform(0, longest, len(decode))))
        predicted = np.empty(len(decode), dtype=np.int64)
        predicted[np.argsort(decode, kind="stable")] = _lengths(drawn)
        return predicted

    return predict


@ERRORS.register("adversarial")
def adversarial(factor: float = 10.0) -> Errors:
    """Errors within a factor that reverse the order: short looks long, long short.

    Lengths below the median are multiplied, the others divided.
    """
    _check_positive("factor", factor)

    def predict(decode: Ints, rng: np.random.Generator) -> Ints:
        short = decode < np.median(decode) if len(decode) else decode > 0
        return _lengths(np.where(short, decode * factor, decode / factor))

    return predict


@ERRORS.register("tau")
def tau(target: float = 0.5) -> Errors:
    """Permute the true lengths to a given Kendall's tau_b.

    Parameters
    ----------
    target : float
        tau_b of true and predicted lengths, from -1 to 1; 1 for no errors.
    """
    if not (math.isfinite(target) and -1 <= target <= 1):
        raise ValueError(f"target = {target} but must be from -1 to 1.")
    return lambda decode, rng: noisy_lengths(decode, target, rng)


def length_classes(decode: Ints, width: float, longest: int) -> tuple[Ints, Ints]:
    """Intervals around true lengths, as from a classifier.

    The range of the logarithm of the length, from 1 to `longest`, is divided into
    classes of `width` times that range, and each request is known by its class only.

    Parameters
    ----------
    decode : int64 array
        True lengths.
    width : float
        From 0 (exact) to 1 (a single class).
    longest : int
        Longest possible length, at least the longest of `decode`.

    Returns
    -------
    lower, upper : int64 arrays
        Shortest and longest length of each request's class.

    Examples
    --------
    >>> low, high = length_classes(np.array([3, 700]), 0.5, 1024)
    >>> low.tolist(), high.tolist()
    ([1, 32], [31, 1024])
    """
    if not 0 <= width <= 1:
        raise ValueError(f"width = {width} but must be from 0 to 1.")
    if longest < decode.max(initial=1):
        raise ValueError(
            f"longest = {longest} but a request has {decode.max()} tokens."
        )
    span = width * math.log(longest)
    if span * longest <= 1:  # every class is at most one token wide
        return decode.copy(), decode.copy()
    edges = np.exp(span * np.arange(math.ceil(1 / width)))
    first = np.unique(np.ceil(edges - 1e-9).astype(np.int64))
    last = np.append(first[1:] - 1, longest)
    which = np.searchsorted(first, decode, side="right") - 1
    return first[which], last[which]


def conformal_bounds(
    predicted: Ints, known_predicted: Ints, known_decode: Ints, coverage: float
) -> tuple[Ints, Ints]:
    """Bounds around predicted lengths that hold with a given probability.

    Split conformal prediction: the ratios of true to predicted lengths in a calibration
    set give quantiles with `(1 - coverage) / 2` outside on each side, by ranks among
    `m + 1`, so that for exchangeable requests the coverage is at least the given one.

    Parameters
    ----------
    predicted : int64 array
        Predicted lengths.
    known_predicted, known_decode : int64 arrays, shape (m,)
        Predicted and true lengths of finished requests.
    coverage : float
        Between 0 and 1. If `m` is too small for it, the bounds are 1 and 2**31.

    Returns
    -------
    lower, upper : int64 arrays
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage = {coverage} but must be between 0 and 1.")
    ratio = np.sort(known_decode / known_predicted)
    outside = math.floor((1 - coverage) / 2 * (len(ratio) + 1))
    if outside == 0:
        return np.ones_like(predicted), np.full_like(predicted, 2**31)
    low, high = ratio[outside - 1], ratio[len(ratio) - outside]
    lower = np.maximum(np.floor(predicted * low), 1).astype(np.int64)
    return lower, np.maximum(np.ceil(predicted * high), 1).astype(np.int64)


class RemainingLife:
    """Mean remaining answer length given the tokens made, from completed answers.

    A histogram with one bin per length; no distribution is assumed.

    Parameters
    ----------
    longest : int
        Longest possible length.
    """

    def __init__(self, longest: int) -> None:
        if longest < 1:
            raise ValueError(f"longest = {longest} but must be at least 1.")
        self.longest = longest
        self._count: Ints = np.zeros(longest + 1, dtype=np.int64)
        self._mean: Floats | None = None

    def observe(self, decode: Ints) -> None:
        """Add the lengths of completed answers."""
        self._count += np.bincount(decode, minlength=self.longest + 1)
        self._mean = None

    def remaining(self, made: Ints) -> Floats:
        """Mean of `o - made` over the observed answers longer than `made`.

        If there are none, the expectation is as many further tokens as were made, and
        at least one.
        """
        if self._mean is None:
            self._mean = self._means()
        return np.asarray(self._mean[np.minimum(made, self.longest)])

    def _means(self) -> Floats:
        length = np.arange(self.longest + 1)
        # Sums over lengths above each number of tokens made.
        longer = self._count.sum() - np.cumsum(self._count)
        tokens = (self._count * length).sum() - np.cumsum(self._count * length)
        unseen = np.maximum(length, 1).astype(np.float64)
        return np.where(longer > 0, tokens / np.maximum(longer, 1) - length, unseen)
