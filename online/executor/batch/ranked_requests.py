"""Scores and expected lengths of a batch's requests, by a trained ranker."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    from online.executor.batch.batch_file import BatchRequest

    Floats = NDArray[np.float64]

logger = logging.getLogger("sortedf")


class PromptScorer(Protocol):
    """Interface of a ranker; see `online.ranking.Ranker`."""

    def score(self, prompts: Sequence[str]) -> Floats:
        """Score prompts, lower for shorter answers."""
        ...

    def lengths(self, scores: ArrayLike, quantile: float) -> Floats:
        """Quantile of the answer length for each score."""
        ...


@dataclass(frozen=True, slots=True)
class RankerUse:
    """A ranker, and the quantile of the answer length to use for its scores."""

    ranker: PromptScorer
    quantile: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise ValueError(f"quantile = {self.quantile} but must be between 0 and 1.")


@dataclass(frozen=True, slots=True)
class Ranked:
    """Score of a request by a ranker, and its length in tokens."""

    score: float
    tokens: int


def rank(requests: Sequence[BatchRequest], ranking: RankerUse) -> dict[str, Ranked]:
    """Rank the requests that have a text, by `custom_id`.

    If the ranker fails, or returns no finite score for a request, the request has no
    score, and a warning is logged.
    """
    texts = {r.custom_id: prompt_text(r.body) for r in requests}
    asked = {name: text for name, text in texts.items() if text is not None}
    if not asked:
        return {}
    try:
        scores = ranking.ranker.score(list(asked.values()))
        tokens = ranking.ranker.lengths(scores, ranking.quantile)
        found = {
            name: Ranked(float(score), math.ceil(length))
            for name, score, length in zip(asked, scores, tokens, strict=True)
            if math.isfinite(score) and math.isfinite(length)
        }
    except Exception as error:
        logger.warning(
            "the ranker failed (%s: %s); lengths come from max_tokens.",
            type(error).__name__,
            error,
        )
        return {}
    if len(found) < len(requests):
        logger.warning(
            "%d of %d requests have no score; their lengths come from max_tokens.",
            len(requests) - len(found),
            len(requests),
        )
    return found


def prompt_text(body: dict[str, Any]) -> str | None:
    """Prompt or messages of a request as one text, as in training; None if empty.

    Examples
    --------
    >>> prompt_text({"messages": [{"content": "Be kind."}, {"content": "Hi"}]}).split()
    ['Be', 'kind.', 'Hi']
    """
    prompt = body.get("prompt")
    text = prompt if isinstance(prompt, str) else _messages_text(body.get("messages"))
    if text is None or not text.strip():
        return None
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return None
    return text


def _messages_text(messages: object) -> str | None:
    """Texts of messages, one per line; images and other parts are ignored."""
    if not isinstance(messages, list):
        return None
    contents = [m.get("content") for m in messages if isinstance(m, dict)]
    texts: list[str] = []
    for content in contents:
        parts = content if isinstance(content, list) else [{"text": content}]
        found = [part.get("text") for part in parts if isinstance(part, dict)]
        texts += [text for text in found if isinstance(text, str)]
    return "\n".join(texts)
