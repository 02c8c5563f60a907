"""Calibration of scores: quantiles of the answer length as functions of the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import isotonic_regression

from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

QUANTILES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
"""Stored quantiles; others are interpolated."""

LEAST_PER_BIN, MOST_BINS = 5, 20

MOST_LOG = 50.0
"""No logarithm of a length is as large."""


@dataclass(frozen=True, slots=True, eq=False)
class LengthCalibration:
    """Quantiles of the answer length by score.

    Attributes
    ----------
    score : float64 array, shape (k,)
        Ascending.
    log_length : float64 array, shape (len(QUANTILES), k)
        Natural logarithm of each quantile of the length at each score; non-decreasing
        along both axes.
    """

    score: Floats
    log_length: Floats

    def __post_init__(self) -> None:
        score, log_length = self.score, self.log_length
        fits = score.ndim == 1 and len(score) > 0
        if not fits or log_length.shape != (len(QUANTILES), len(score)):
            raise ValueError("scores and lengths are not of one shape")
        if not (np.isfinite(score).all() and (np.abs(log_length) < MOST_LOG).all()):
            raise ValueError("a score or a length is out of range")
        falls = np.diff(score), np.diff(log_length, axis=0), np.diff(log_length)
        if any((steps < 0).any() for steps in falls):
            raise ValueError("a score or a length falls")

    def lengths(self, scores: ArrayLike, quantile: float = 0.5) -> Floats:
        """Quantile of the answer length for each score, at least 1 token.

        Outside the stored scores and quantiles the nearest one is used.
        """
        if not 0 < quantile < 1:
            raise ValueError(f"quantile = {quantile} but must be between 0 and 1.")
        at = np.array(
            [np.interp(quantile, QUANTILES, row) for row in self.log_length.T]
        )
        found = np.exp(np.interp(np.asarray(scores, dtype=float), self.score, at))
        return np.asarray(np.maximum(found, 1.0), dtype=np.float64)

    def as_dict(self) -> dict[str, Any]:
        """Return the entries for a data card."""
        return {
            "quantiles": list(QUANTILES),
            "score": self.score.tolist(),
            "log_length": self.log_length.tolist(),
        }

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> LengthCalibration:
        """Create it from the result of `as_dict`."""
        if tuple(content["quantiles"]) != QUANTILES:
            raise RankingError(
                f"calibration has the quantiles {content['quantiles']} but must have "
                f"{list(QUANTILES)}."
            )
        return cls(
            np.array(content["score"], dtype=np.float64),
            np.array(content["log_length"], dtype=np.float64),
        )


def calibrate(scores: ArrayLike, lengths: ArrayLike) -> LengthCalibration:
    """Fit lengths to the scores of prompts not used in training.

    The prompts, sorted by score, are divided into bins of about equal size; the
    quantiles of their lengths are made monotone by isotonic regression on the
    logarithm.

    Parameters
    ----------
    scores, lengths : array_like, shape (n,)
        Finite; at least one.
    """
    order = np.argsort(scores, kind="stable")
    score = np.asarray(scores, dtype=np.float64)[order]
    log_length = np.log(np.asarray(lengths, dtype=np.float64)[order])
    if not len(score):
        raise ValueError("scores is empty but must have at least one entry.")
    bins = min(MOST_BINS, max(1, len(score) // LEAST_PER_BIN))
    parts = list(
        zip(np.array_split(score, bins), np.array_split(log_length, bins), strict=True)
    )
    raw = np.array([np.quantile(part, QUANTILES) for _, part in parts]).T
    weights = [len(part) for part, _ in parts]
    # The same weights for every quantile, so that they do not cross.
    fitted = [isotonic_regression(row, weights=weights).x for row in raw]
    return LengthCalibration(
        np.array([part.mean() for part, _ in parts]), np.array(fitted)
    )
