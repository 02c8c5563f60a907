"""Training losses: pairwise, pointwise, listwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.ranking.libraries import torch
from online.ranking.pairs import informative_pairs
from sortedf.registry import Table

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Tensor = Any
    Loss = Callable[[Tensor, NDArray[np.float64], "Target"], Tensor | None]

LOSSES: Table[Loss] = Table("loss")
"""Losses by name; each takes a batch's scores and true lengths, and returns None for a
batch without information."""


@dataclass(frozen=True, slots=True)
class Target:
    """Parameters of the losses.

    Attributes
    ----------
    delta : float
        Least relative difference of a pair.
    margin : float
        Required difference of the scores of a pair.
    mean, spread : float
        Mean and standard deviation of the log lengths of all training prompts.
    """

    delta: float
    margin: float
    mean: float
    spread: float


@LOSSES.register("pairwise")
def pairwise(scores: Tensor, length: NDArray[np.float64], target: Target) -> Any:
    """Mean of `max(0, margin - (s_longer - s_shorter))` over the informative pairs."""
    longer, shorter = informative_pairs(length, target.delta)
    if not len(longer):
        return None
    return torch().nn.functional.margin_ranking_loss(
        scores[longer],
        scores[shorter],
        torch().ones(len(longer), device=scores.device),
        margin=target.margin,
    )


@LOSSES.register("pointwise")
def pointwise(scores: Tensor, length: NDArray[np.float64], target: Target) -> Any:
    """Mean squared error of the standardised log length."""
    wanted = (np.log(length) - target.mean) / target.spread
    return torch().nn.functional.mse_loss(scores, _like(scores, wanted))


@LOSSES.register("listwise")
def listwise(scores: Tensor, length: NDArray[np.float64], target: Target) -> Any:
    """ListMLE: negative log likelihood of the true order, longest first, per prompt.

    The probability of an order is that of drawing the prompts one by one, each with
    probability proportional to the exponential of its score among the remaining ones.
    """
    ordered = scores[np.argsort(-length, kind="stable")]
    left = torch().logcumsumexp(ordered.flip(0), 0).flip(0)
    return (left - ordered).mean()


def _like(scores: Tensor, values: NDArray[np.float64]) -> Tensor:
    return torch().as_tensor(values, dtype=scores.dtype, device=scores.device)
