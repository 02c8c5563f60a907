"""Admission by look-ahead: start what will never overflow, if lengths are right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.forecast_kernels import look_ahead

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.state import State


class LookAhead:
    """Tells which of a list of requests can start now, in the list's order.

    A request starts if the schedule stays feasible in every coming step by the
    lengths it is told, block by block; at most `backfill` requests that do not fit may
    be passed over. With right lengths nothing is ever preempted.

    Parameters
    ----------
    backfill : int
    """

    def __init__(self, backfill: int = 0) -> None:
        if backfill < 0:
            raise ValueError(f"backfill = {backfill} but must be at least 0.")
        self.backfill = backfill
        self.not_before: dict[int, int] = {}

    def admit(
        self, state: State, head: Sequence[int], lengths: NDArray[np.int64]
    ) -> list[int]:
        """Choose who starts.

        Parameters
        ----------
        head : sequence of int
            The first requests of the list, or all of them. When every one of them
            starts, there may be room for more.
        lengths : int64 array
            Answer length to reckon with, by id of all requests.
        """
        candidates = np.array(head, dtype=np.int64)
        started = np.empty(len(head), dtype=np.int64)
        wait = np.zeros(len(head), dtype=np.int64)
        rules, requests = state.rules, state.requests
        count = look_ahead(
            requests.prefill, lengths, requests.made, requests.computed,
            state.running, candidates, self.backfill,
            rules.block_size, rules.num_blocks, rules.extra_slots, rules.seqs_cap,
            rules.tokens_cap, rules.chunked_prefill, started, wait,
        )  # fmt: skip
        for i, steps in zip(head, wait.tolist(), strict=True):
            self.not_before[i] = state.step + steps
        chosen: list[int] = started[:count].tolist()
        return chosen

    def must_wait(self, state: State, i: int) -> bool:
        """Whether an earlier forecast, still valid, says that `i` cannot start yet."""
        return self.not_before.get(i, 0) > state.step

    def forget(self, ids: Sequence[int]) -> None:
        """Drop what is remembered of requests that no longer wait."""
        for i in ids:
            self.not_before.pop(i, None)

    def start_over(self) -> None:
        """Drop all that is remembered, after something that was not foreseen."""
        self.not_before.clear()
