"""Admission by look-ahead: start requests that never overflow by predicted lengths."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from online.policies.parts.forecast_kernels import NEVER, look_ahead
from online.policies.parts.shared_prefixes import shared

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from online.state import State

Limits: TypeAlias = tuple[int, int, int, int, int, int, int, bool]


class LookAhead:
    """Chooses the requests of a list that can start now, in the list's order.

    A request starts if the schedule stays feasible in every future step by the given
    lengths, in whole blocks, counting shared blocks once; at most `backfill` requests
    that do not fit may be passed over. With correct lengths no request is ever
    preempted.

    Parameters
    ----------
    backfill : int
    """

    def __init__(self, backfill: int = 0) -> None:
        if backfill < 0:
            raise ValueError(f"backfill = {backfill} but must be at least 0.")
        self.backfill = backfill
        self.not_before: dict[int, int] = {}
        self._rules: Limits | None = None
        self._buffers = np.zeros((2, 16), dtype=np.int64)

    def admit(
        self, state: State, head: Sequence[int], lengths: NDArray[np.int64]
    ) -> list[int]:
        """Return the requests that start.

        Parameters
        ----------
        head : sequence of int
            The first requests of the list, or all of them. If all of them start, more
            may fit.
        lengths : int64 array
            Answer lengths by id of all requests.
        """
        candidates = np.array(head, dtype=np.int64)
        if len(head) > self._buffers.shape[1]:
            self._buffers = np.zeros((2, 2 * len(head)), dtype=np.int64)
        started, wait = self._buffers
        requests = state.requests
        leaf, parent, depth, _, found = shared(state, head)
        if self._rules is None:  # constant in a run
            rules = state.rules
            size = rules.block_size
            shift = size.bit_length() - 1 if size & (size - 1) == 0 else -1
            self._rules = (
                size, shift, rules.num_blocks, rules.extra_slots,
                rules.seqs_cap, rules.tokens_cap,
                rules.long_prefill_token_threshold or NEVER, rules.chunked_prefill,
            )  # fmt: skip
        count = look_ahead(
            requests.prefill, lengths, requests.output_tokens, requests.computed,
            state.running, candidates, self.backfill,
            leaf, parent, depth, found, *self._rules, started, wait,
        )  # fmt: skip
        if count and state.prefixes is not None:
            # A started request may share its prefix, so that others need fewer blocks.
            self.not_before.clear()
        step = state.step
        for i, steps in zip(head, wait[: len(head)].tolist(), strict=True):
            self.not_before[i] = step + steps
        chosen: list[int] = started[:count].tolist()
        return chosen

    def wait_until(self, ids: Iterable[int]) -> float:
        """Step before which none of them can start, by earlier valid forecasts."""
        get = self.not_before.get
        return min([get(i, 0) for i in ids], default=math.inf)

    def forget(self, ids: Sequence[int]) -> None:
        """Discard the forecasts of some requests."""
        for i in ids:
            self.not_before.pop(i, None)

    def start_over(self) -> None:
        """Discard all forecasts after an unforeseen event."""
        self.not_before.clear()
