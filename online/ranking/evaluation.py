"""Evaluation of a ranker on prompts not used in training."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.kendall import tau_b
from online.ranking.embedding import Embedding
from online.ranking.network import network_of
from online.ranking.pairs import informative_pairs, num_informative
from online.ranking.ranking_error import RankingError
from online.ranking.rivals import RIVALS
from online.ranking.rows import check_rankable, digest

if TYPE_CHECKING:
    from collections.abc import Container

    from numpy.typing import NDArray

    from online.ranking.ranker import Ranker
    from online.ranking.rows import Prompts
    from online.ranking.training import Training

    Floats = NDArray[np.float64]

RESAMPLES = 200
MOST_FOR_PAIRS = 5000


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Quality of a ranker's order and of its calibrated lengths.

    Attributes
    ----------
    n : int
        Number of prompts.
    tau_b : float
    tau_b_low, tau_b_high : float
        90 % bootstrap interval of `tau_b`.
    pairs_right : float or None
        Share of the informative pairs (relative difference 0.2) in the right order;
        None without such pairs, or with more than `MOST_FOR_PAIRS` prompts.
    prompt_length_tau_b : float
        tau_b of the prompt's length as a score.
    median_ratio : float
        Median of the true length over the calibrated median.
    below_p90 : float
        Share of the true lengths that are at most the calibrated 90 % quantile.
    """

    n: int
    tau_b: float
    tau_b_low: float
    tau_b_high: float
    pairs_right: float | None
    prompt_length_tau_b: float
    median_ratio: float
    below_p90: float

    def as_dict(self) -> dict[str, Any]:
        """Return the values by name."""
        return asdict(self)


def evaluate(ranker: Ranker, prompts: Prompts, seed: int = 0) -> Evaluation:
    """Score prompts and compare with the true answer lengths."""
    check_rankable(prompts)
    scores, length = ranker.score(prompts.text), prompts.length
    low, high = _interval(scores, length, seed)
    letters = [len(text) for text in prompts.text]
    return Evaluation(
        n=len(prompts),
        tau_b=tau_b(scores, length),
        tau_b_low=low,
        tau_b_high=high,
        pairs_right=pairs_right(scores, length),
        prompt_length_tau_b=tau_b(letters, length),
        median_ratio=float(np.median(length / ranker.lengths(scores))),
        below_p90=float(np.mean(length <= ranker.lengths(scores, 0.9))),
    )


def unseen(prompts: Prompts, seen: Container[str]) -> Prompts:
    """Leave out prompts whose digests are among those of training or validation.

    Raises
    ------
    RankingError
        If fewer than two prompts are left.
    """
    kept = [i for i, text in enumerate(prompts.text) if digest(text) not in seen]
    if len(kept) < 2:
        raise RankingError(
            f"{prompts.name}: {len(prompts) - len(kept):,} of {len(prompts):,} prompts "
            "were used in training or validation, so too few are left to evaluate; "
            "give other prompts."
        )
    return prompts.take(kept)


def rival_tau_b(training: Training) -> dict[str, float]:
    """Train every rival on the same prompts; return tau_b on the same test part."""
    settings, tokens = training.card["settings"], training.tokens
    network = network_of(
        settings["encoder"], settings["layers"], training.card["encoder_revision"]
    )
    device = next(training.network.module.parameters()).device
    embedding = Embedding(network, tokens, device)
    prompts, parts = training.prompts, training.parts
    train, validation, test = map(
        prompts.take, (parts.train, parts.validation, parts.test)
    )
    return {
        name: tau_b(
            fit(train, validation, embedding, settings["seed"])(test.text), test.length
        )
        for name, fit in RIVALS.items()
    }


def pairs_right(scores: Floats, length: Floats, delta: float = 0.2) -> float | None:
    """Share of the informative pairs whose longer answer has the higher score."""
    if len(length) > MOST_FOR_PAIRS or num_informative(length, delta) == 0:
        return None
    longer, shorter = informative_pairs(length, delta)
    return float(np.mean(scores[longer] > scores[shorter]))


def _interval(scores: Floats, length: Floats, seed: int) -> tuple[float, float]:
    rng = np.random.default_rng(seed)
    n = len(scores)
    drawn = [rng.integers(0, n, n) for _ in range(RESAMPLES)]
    taus = [tau_b(scores[at], length[at]) for at in drawn]
    low, high = np.quantile(taus, [0.05, 0.95])
    return float(low), float(high)
