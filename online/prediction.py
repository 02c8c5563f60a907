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
