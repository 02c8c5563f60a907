"""Running requests of a real engine and their progress, at little cost per step."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from online import step_kernels as k

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.requests import RequestTable

    Ints = NDArray[np.int64]


class Started(NamedTuple):
    """A request that started in a step.

    Attributes
    ----------
    i : int
    tokens : int
        Its tokens in this step.
    computed : int
        Its tokens with KV after this step.
    """

    i: int
    tokens: int
    computed: int


class Running:
    """Ids of the running requests, in the engine's order.

    In most steps each of them makes one token and there is no other event. Such a step
    is only counted; the table is updated before the next decision.

    Parameters
    ----------
    table : RequestTable
    room : int
        Initial capacity.

    Attributes
    ----------
    count : int
        Number of running requests.
    """

    def __init__(self, table: RequestTable, room: int) -> None:
        self._table = table
        self._ids: Ints = np.zeros(room, dtype=np.int64)
        self._gone: Ints = np.zeros(room, dtype=np.int64)
        self.count = 0
        self._behind = 0
        self._step = 0

    def __len__(self) -> int:
        return self.count

    def ids(self) -> Ints:
        """Return a read-only copy of the ids."""
        ids = self._ids[: self.count].copy()
        ids.setflags(write=False)
        return ids

    def each_made_one(self, step: int) -> None:
        """Count a step in which each made one token."""
        self._behind += 1
        self._step = step

    def catch_up(self, gone: Sequence[int] = ()) -> None:
        """Update the table, and remove the running requests among `gone`."""
        if not (self._behind or gone):
            return
        number = len(gone)
        if number > len(self._gone):
            self._gone = np.zeros(2 * number, dtype=np.int64)
        if number:
            self._gone[:number] = gone
        self.count = k.catch_up(
            self._table.ints, self._ids, self.count, self._behind, self._step,
            self._gone, number,
        )  # fmt: skip
        self._behind = 0

    def start(self, ids: Sequence[int]) -> None:
        """Add requests after all others."""
        self.catch_up()
        more = self.count + len(ids)
        if more > len(self._ids):
            self._ids = np.concatenate([self._ids, np.zeros(more, dtype=np.int64)])
        self._ids[self.count : more] = ids
        self.count = more

    def start_whole(self, started: Sequence[Started]) -> bool:
        """Add requests whose prompts a step has completely computed; else return False.

        The step must then be counted by `each_made_one`, as for the other requests.
        """
        each = self._table.view.each
        prefill, output_tokens = each.prefill, each.output_tokens
        for one in started:
            if prefill[one.i] + output_tokens[one.i] != one.computed:
                return False
        self.start([one.i for one in started])
        ints = self._table.ints
        for one in started:
            ints[k.COMPUTED, one.i] = one.computed - 1
        return True

    def replace(self, ids: Sequence[int]) -> None:
        """Replace all running requests, in this order."""
        self.catch_up()
        self.count = 0
        self.start(ids)
