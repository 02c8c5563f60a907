"""How far the hints of each client are believed, by its past answers.

A hint is what a request says of its answer: a length in tokens, or a rank. A client
that understates its answers would be served before all others, so its hints are read as
labels: what they mean is learned from its completed answers.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from online import step_kernels as k
from online.answer_lengths import AnswerLengths

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from numpy.typing import NDArray

    from online.requests import RequestTable

    Ints = NDArray[np.int64]

TRUST_MODES = ("on", "corrected", "off")
"""Believe hints, correct them by each client's past answers, or ignore them."""

COLD = 256
"""Expected length, in tokens, while too few answers are known."""

LEAST = 16
"""Completed answers from which a population's distribution is used."""

PRIOR = 4.0
"""Answers that the prior weighs."""

MEMORY = 256.0
"""Answers of a client with similar hints after which all of them count half."""

MOST_CLIENTS = 10_000
"""Clients that are remembered; the one unused for longest is forgotten."""

NUM_SCORES, NUM_RANKS = 256, 16
"""Scores seen before they are told apart, and the number of groups by rank."""


class Evidence:
    """Completed answers with similar hints.

    Attributes
    ----------
    count, hinted, output_tokens : float
        Number of answers, and the sums of their hints and of their lengths.
    """

    __slots__ = ("count", "hinted", "output_tokens")

    def __init__(self) -> None:
        self.count = self.hinted = self.output_tokens = 0.0

    def add(self, hint: float, output_tokens: int) -> None:
        """Add an answer; old ones lose weight."""
        if self.count >= MEMORY:
            self.count /= 2
            self.hinted /= 2
            self.output_tokens /= 2
        self.count += 1
        self.hinted += hint
        self.output_tokens += output_tokens

    def add_part(self, other: Evidence, part: float) -> None:
        """Add other evidence with a weight."""
        self.count += part * other.count
        self.hinted += part * other.hinted
        self.output_tokens += part * other.output_tokens

    def blend(self, prior: float, hint: float) -> float:
        """Return the expected length for this hint, given a prior expectation."""
        if not self.count:
            return prior
        mine = hint * self.output_tokens / self.hinted
        return (PRIOR * prior + self.count * mine) / (PRIOR + self.count)


class ClientPast:
    """The completed answers of a client, by kind of hint and its group."""

    def __init__(self) -> None:
        self._whole = Evidence()
        self._groups: dict[str, dict[int, Evidence]] = {}

    def expect(self, hint: HintLabel, prior: float) -> float:
        """Return the expected length of an answer with this hint.

        The prior is corrected by all answers of the client, whatever their hints; then
        by the relation of answers to hints, where each group further away counts half;
        and then by those with similar hints: each weighs as much as there are answers
        behind it. So a hint of a size that a client has never given is hardly believed,
        however honest it was with others.
        """
        groups = self._groups.get(hint.kind, {})
        others = Evidence()
        for group, found in groups.items():
            others.add_part(found, 0.5 ** abs(group - hint.group))
        prior = others.blend(self._whole.blend(prior, 1.0), hint.weight)
        similar = groups.get(hint.group)
        return prior if similar is None else similar.blend(prior, hint.weight)

    def add(self, hint: HintLabel, output_tokens: int) -> None:
        """Add a completed answer."""
        self._whole.add(1.0, output_tokens)
        groups = self._groups.setdefault(hint.kind, {})
        groups.setdefault(hint.group, Evidence()).add(hint.weight, output_tokens)


class HintLabel(NamedTuple):
    """A hint as a label.

    Attributes
    ----------
    kind : str
        "length", "score", or "none" for a request without a hint.
    group : int
        Hints of a group are similar.
    weight : float
        Answers of a group are in proportion to it.
    """

    kind: str
    group: int
    weight: float


class HintTrust:
    """Replaces hints by what they have meant.

    A hint of a length or of a rank becomes an expected length, in the same way: the
    mean of completed answers of the same client with similar hints, in proportion to
    the hint if it is a length. A client without a past gets the mean of all clients'
    answers, whatever it says.
    Ranks become expected lengths, so that they can be compared between clients; they
    are equal, and so decide nothing, until answers are known.

    Parameters
    ----------
    believes : bool
        Whether hints tell anything; otherwise every request gets the mean.
    longest : int
        Largest length distinguished.
    """

    def __init__(self, *, believes: bool = True, longest: int = 16_384) -> None:
        self._believes = believes
        self._answers = AnswerLengths(longest, LEAST)
        self._past: OrderedDict[Hashable, ClientPast] = OrderedDict()
        self._open: dict[int, tuple[Hashable, list[HintLabel]]] = {}
        self._scores: list[float] = []
        self._edges: list[float] = []

    def enter(
        self, i: int, client: Hashable, length: int | None, score: float
    ) -> tuple[int, float]:
        """Return the length and the score to expect of an arriving request.

        Parameters
        ----------
        i : int
            Its id, until `ended`.
        client : hashable
        length : int, optional
            Its hint, in tokens.
        score : float
            Its hint; nan if there is none.
        """
        hints = []
        if self._believes and length is not None:
            hints.append(HintLabel("length", length.bit_length(), float(length)))
        if self._believes and not math.isnan(score):
            hints.append(HintLabel("score", self._rank(score), 1.0))
        if self._believes and not hints:
            hints.append(HintLabel("none", 0, 1.0))
        self._open[i] = client, hints
        prior = float(self._answers.predict() or COLD)
        past = self._past.get(client)
        expected = {
            hint.kind: prior if past is None else past.expect(hint, prior)
            for hint in hints
        }
        length = max(1, round(next(iter(expected.values()), prior)))
        return length, score if math.isnan(score) else expected.get("score", prior)

    def ended(self, i: int, output_tokens: int | None) -> None:
        """Learn from a request that has ended, with an answer of so many tokens.

        None if it was cancelled.
        """
        client, hints = self._open.pop(i)
        if output_tokens is None:
            return
        self._answers.observe([output_tokens])
        if not hints:
            return
        past = self._past.setdefault(client, ClientPast())
        self._past.move_to_end(client)
        for hint in hints:
            past.add(hint, output_tokens)
        if len(self._past) > MOST_CLIENTS:
            self._past.popitem(last=False)

    def raise_outlived(
        self, table: RequestTable, ids: Ints, limit: Callable[[int], int]
    ) -> list[int]:
        """Raise the lengths of requests that have made as many tokens as expected.

        To the mean of longer answers, and by at least half, so that a request is raised
        a few times only. `limit` returns the largest length of a request. Returns the
        ids whose lengths changed.
        """
        output_tokens, expected = (
            table.ints[k.OUTPUT_TOKENS, ids],
            table.ints[k.PREDICTED, ids],
        )
        raised = []
        for i, tokens in zip(
            ids[output_tokens >= expected].tolist(),
            output_tokens[output_tokens >= expected].tolist(),
            strict=True,
        ):
            least = tokens + max(tokens // 2, 8)
            longer = max(self._answers.predict(tokens) or 0, least)
            if table.update_hint(i, min(longer, limit(i)), None):
                raised.append(i)
        return raised

    def _rank(self, score: float) -> int:
        """Group of a score by its rank among those of all clients."""
        if len(self._scores) < NUM_SCORES:
            self._scores.append(score)
            if len(self._scores) == NUM_SCORES:
                parts = np.arange(1, NUM_RANKS) / NUM_RANKS
                self._edges = np.quantile(self._scores, parts).tolist()
        return bisect_right(self._edges, score)


def make_trust(mode: str, *, longest: int = 16_384) -> HintTrust | None:
    """Return the object for one of `TRUST_MODES`; None if hints are believed."""
    if mode not in TRUST_MODES:
        raise ValueError(
            f"trust_hints = {mode!r} but must be one of: {', '.join(TRUST_MODES)}."
        )
    if mode == "on":
        return None
    return HintTrust(believes=mode == "corrected", longest=longest)


def steps_to_outlive(table: RequestTable, ids: Ints) -> float:
    """Fewest steps after which one of these requests may have outlived its length.

    It does at least one step; lengths that were limited are never outlived.
    """
    if not len(ids):
        return math.inf
    left = table.ints[k.PREDICTED, ids] - table.ints[k.OUTPUT_TOKENS, ids]
    left = left[left > 0]
    return float(left.min()) if len(left) else math.inf
