"""Admission by expected KV usage in future steps."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.expected_kernels import held_by_others
from online.policies.parts.shared_prefixes import shared

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.answer_lengths import AnswerLengths
    from online.state import State

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

POINTS = 24
"""Future steps evaluated, from the next one to the longest answer."""


class ExpectedRoom:
    """Admits requests by the expected KV usage in future steps.

    A running request holds `s + output_tokens + h` tokens `h` steps from now with the
    probability that its answer is that long. The mean of the total usage plus `margin`
    standard deviations must fit the cache at every evaluated step. A histogram predicts
    the total of many answers well, though not a single one. Blocks that it shares with
    others count with the probability that none of the requests before it holds them.

    Parameters
    ----------
    answers : AnswerLengths
        Must be updated before each call.
    margin : float
    """

    def __init__(self, answers: AnswerLengths, margin: float) -> None:
        if not (math.isfinite(margin) and margin >= 0):
            raise ValueError(f"margin = {margin} but must be a number, 0 or more.")
        self.margin = margin
        self._answers = answers

    def admit(self, state: State, head: Sequence[int]) -> list[int]:
        """Return the requests of `head` up to the first that does not fit."""
        if not (head and self._answers.count):
            return list(head)  # no data yet
        steps = self._steps()
        mean, variance = self._usage(state, head, steps)
        count = len(state.running)
        used = mean[:count].sum(axis=0) + np.cumsum(mean[count:], axis=0)
        spread = variance[:count].sum(axis=0) + np.cumsum(variance[count:], axis=0)
        budget = state.rules.num_blocks * state.rules.block_size
        fits = (used + self.margin * np.sqrt(spread) <= budget).all(axis=1)
        if not len(state.running):
            fits[0] = True  # a request always fits alone
        first = len(head) if fits.all() else int(np.argmin(fits))
        return list(head[:first])

    def _steps(self) -> Ints:
        """Return the steps ahead to evaluate, denser in the near future."""
        return np.unique(
            np.geomspace(1, self._answers.longest + 1, POINTS).astype(np.int64)
        )

    def _usage(
        self, state: State, head: Sequence[int], steps: Ints
    ) -> tuple[Floats, Floats]:
        """Mean and variance of each request's tokens at each step ahead.

        Of those that run, then of `head`.
        """
        requests = state.requests
        ids = np.append(state.running, np.array(head, dtype=np.int64))
        output_tokens = requests.output_tokens[ids]
        chance = self._answers.go_on(output_tokens, steps - 1)
        padding = (state.rules.block_size - 1) / 2
        tokens = (
            (requests.prefill[ids] + output_tokens)[:, None] + steps[None, :] + padding
        )
        if state.prefixes is not None:
            leaf, parent, depth, _, _ = shared(state, head)
            most = (requests.prefill[ids] + output_tokens - 1) // state.rules.block_size
            most[: len(state.running)] = depth.max()
            blocks = held_by_others(ids, most, chance, leaf, parent, depth)
            tokens = tokens - blocks * state.rules.block_size
        return tokens * chance, tokens**2 * chance * (1 - chance)
