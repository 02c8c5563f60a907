"""Prompts with the lengths of their answers."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from online.ranking.ranking_error import RankingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MODELS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Row:
    """A prompt with the length of one answer.

    Attributes
    ----------
    prompt : str
    response_tokens : int
        Length of the answer, including hidden reasoning if it is known.
    model : str
        Model that answered; empty if unknown.
    source : str
        Source of the prompt; empty if unknown.
    """

    prompt: str
    response_tokens: int
    model: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file.

    Attributes
    ----------
    rows : tuple of Row
    name : str
        Name of the file, for messages and data cards.
    num_failed : int
        Failed requests in the file, which have no length.
    """

    rows: tuple[Row, ...]
    name: str
    num_failed: int = 0

    def models(self) -> list[str]:
        """Names of all models, the most frequent first."""
        return [name for name, _ in Counter(r.model for r in self.rows).most_common()]


@dataclass(frozen=True, slots=True, eq=False)
class Prompts:
    """Distinct prompts with the mean length of one model's answers.

    Attributes
    ----------
    text : tuple of str
    length : float64 array, shape (n,)
    model : str
    name : str
        Name of their file.
    sources : dict of str to int
        Number of prompts by source.
    """

    text: tuple[str, ...]
    length: NDArray[np.float64]
    model: str = ""
    name: str = "data"
    sources: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.text)

    def take(self, at: Sequence[int] | NDArray[np.int64]) -> Prompts:
        """Return some of the prompts, by position."""
        return Prompts(
            tuple(self.text[i] for i in at), self.length[at], self.model, self.name
        )


def prompts_of(rows: Rows, model: str | None = None) -> Prompts:
    """Group one model's rows by prompt; several answers to one prompt are averaged.

    Parameters
    ----------
    rows : Rows
    model : str, optional
        Model whose answers to use; needed if there are several models, since their
        lengths are not comparable.

    Raises
    ------
    RankingError
        If the model is unknown or needed but missing, or fewer than two prompts are
        left, or all answers are equally long.
    """
    known = rows.models()
    if model is None and len(known) > 1:
        raise RankingError(
            f"{rows.name} has answers of {len(known)} models, whose lengths cannot be "
            f"compared; choose one: {_listed(known)}."
        )
    if model is not None and model not in known:
        raise RankingError(
            f"{rows.name} has no answers of model {model!r}; it has: {_listed(known)}."
        )
    lengths: dict[str, list[int]] = {}
    sources: dict[str, str] = {}
    for row in rows.rows:
        if model is None or row.model == model:
            lengths.setdefault(row.prompt, []).append(row.response_tokens)
            sources[row.prompt] = row.source
    found = Prompts(
        tuple(lengths),
        np.array([np.mean(answers) for answers in lengths.values()]),
        model if model is not None else (known[0] if known else ""),
        rows.name,
        dict(Counter(source for source in sources.values() if source)),
    )
    check_rankable(found)
    return found


def check_rankable(prompts: Prompts) -> None:
    """Raise RankingError if prompts cannot be ranked.

    Raises
    ------
    RankingError
        If there are fewer than two prompts or all lengths are equal.
    """
    n = len(prompts)
    if n < 2:
        raise RankingError(
            f"{prompts.name} has {n or 'no'} prompt{'s' * (n != 1)} but ranking needs "
            "at least two."
        )
    if np.ptp(prompts.length) == 0:
        raise RankingError(
            f"{prompts.name}: all {n:,} answers have {prompts.length[0]:g} tokens, so "
            "no pair of prompts has a longer and a shorter answer."
        )


def digest(text: str) -> str:
    """Hash that identifies a prompt without storing it."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _listed(models: list[str]) -> str:
    shown = [model or "(none)" for model in models[:MODELS_SHOWN]]
    more = len(models) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
