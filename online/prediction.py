"""Predicted answer lengths: models of their errors, intervals, and learning from runs.

A model of errors turns true lengths into predicted ones, so that a policy can be tried
with predictions as bad as one likes. Everything random comes from a passed generator.
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
    """Turns true answer lengths into predicted ones."""

    def __call__(self, decode: Ints, rng: np.random.Generator) -> Ints:
        """Return a predicted length of at least 1 for each true one."""
        ...


ERRORS: Table[Callable[..., Errors]] = Table("model of prediction errors")
"""Makers of error models, by name; options by keyword."""


def make(name: str, **options: float) -> Errors:
    """Make a model of prediction errors.

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
    """Whole tokens, at least 1 and at most what stands for an unknown length."""
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
    """Each length times `exp(sigma Z)`, `Z` standard normal: right in the median.

    Parameters
    ----------
    sigma : float
        0 for no errors; at 0.7 half of the predictions are off by more than 1.6 times.
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
    """Lengths that are all wrong in the right order.

    The predicted lengths are as many draws, uniform in the logarithm between 1 and the
    longest true one, given out in the order of the true ones.
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
    """Mislead within a factor: short answers look long, and long ones short.

    Lengths below the median are multiplied, the others divided.
    """
    _check_positive("factor", factor)

    def predict(decode: Ints, rng: np.random.Generator) -> Ints:
        short = decode < np.median(decode) if len(decode) else decode > 0
        return _lengths(np.where(short, decode * factor, decode / factor))

    return predict


@ERRORS.register("tau")
def tau(target: float = 0.5) -> Errors:
    """Give the true lengths out in an order as good as a rank of Kendall's tau_b.

    Parameters
    ----------
    target : float
        tau_b of true and predicted lengths, from -1 to 1; 1 for no errors.
    """
    if not (math.isfinite(target) and -1 <= target <= 1):
        raise ValueError(f"target = {target} but must be from -1 to 1.")
    return lambda decode, rng: noisy_lengths(decode, target, rng)


def length_classes(decode: Ints, width: float, longest: int) -> tuple[Ints, Ints]:
    """Intervals around true lengths, from exact to useless.

    The logarithm of the length, from that of 1 to that of the longest, is cut into
    classes of `width` times that range each, and all that is known of a request is its
    class, as from a classifier.

    Parameters
    ----------
    decode : int64 array
        True lengths.
    width : float
        From 0 (exact) to 1 (one class: nothing is known).
    longest : int
        Longest length that may come, at least the longest of `decode`.

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
    if span * longest <= 1:  # no class is wider than one token
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

    Split conformal: of the ratios of true to predicted lengths in a calibration set,
    the quantiles that leave `(1 - coverage) / 2` out on each side, by their ranks among
    one more, so that for exchangeable requests each bound holds at least that often.

    Parameters
    ----------
    predicted : int64 array
        Lengths to put bounds around.
    known_predicted, known_decode : int64 arrays, shape (m,)
        Predicted and true lengths of finished requests.
    coverage : float
        Between 0 and 1. Too much for so few known ones gives 1 and 2**31.

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
    """Mean of what is still to come, given what was made, from finished answers.

    A histogram with one bin per length. Nothing is assumed about the distribution, and
    nothing is known of a request but how far it has come.

    Parameters
    ----------
    longest : int
        Longest length that may come.
    """

    def __init__(self, longest: int) -> None:
        if longest < 1:
            raise ValueError(f"longest = {longest} but must be at least 1.")
        self.longest = longest
        self._count: Ints = np.zeros(longest + 1, dtype=np.int64)
        self._mean: Floats | None = None

    def observe(self, decode: Ints) -> None:
        """Learn from the lengths of finished answers."""
        self._count += np.bincount(decode, minlength=self.longest + 1)
        self._mean = None

    def remaining(self, made: Ints) -> Floats:
        """Mean of `o - made` over the answers seen that were longer than `made`.

        Beyond all that was seen an answer is expected to go on for as long as it has
        lasted, and at least for one token.
        """
        if self._mean is None:
            self._mean = self._means()
        return np.asarray(self._mean[np.minimum(made, self.longest)])

    def _means(self) -> Floats:
        length = np.arange(self.longest + 1)
        # Over lengths above each number of tokens made.
        longer = self._count.sum() - np.cumsum(self._count)
        tokens = (self._count * length).sum() - np.cumsum(self._count * length)
        unseen = np.maximum(length, 1).astype(np.float64)
        return np.where(longer > 0, tokens / np.maximum(longer, 1) - length, unseen)
