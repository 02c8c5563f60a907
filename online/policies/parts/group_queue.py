"""Waiting requests in Sorted-F's groups, selected again as requests arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from online.policies.parts.sorted_rows import SortedRows
from sortedf.groups import Pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.policies.parts.lengths import Lengths
    from online.state import State
    from sortedf.groups import Selector

    Ints = NDArray[np.int64]


class GroupQueue:
    """The plan: groups of least `F`, one after the other, of the waiting requests.

    Only as many groups are selected as are needed, since later ones may be selected
    again before they start.

    Parameters
    ----------
    select : Selector
        Selects the next group.
    lengths : Lengths
        Answer lengths; must be updated before each call.
    every : int
        Arrivals after which the plan is discarded; 0: never.
    keep_group : bool
        Whether a group of which some requests have started stays first in a new plan.
    seed : int
        Seed of selectors that sample.
    """

    def __init__(
        self,
        select: Selector,
        lengths: Lengths,
        *,
        every: int = 1,
        keep_group: bool = False,
        seed: int = 0,
    ) -> None:
        if every < 0:
            raise ValueError(f"every = {every} but must be at least 0.")
        self._select = select
        self._lengths = lengths
        self._every = every
        self._keep_group = keep_group
        self._rng = np.random.default_rng(seed)
        self._rows = SortedRows(4)  # answer length, id, prompt, peak
        self._decode: dict[int, int] = {}  # of all waiting requests
        self._groups: list[list[int]] = []
        self._begun = False  # whether a request of the first group has started
        self._arrivals = 0
        self._state: State | None = None

    def update(self, state: State) -> None:
        """Apply what joined, left and changed; discard the plan if it is due."""
        self._state = state
        if state.left:
            self._drop(state.left, started=True)
        if state.changed:
            self._drop(state.changed, started=False)
        if not (state.joined or state.changed):
            return
        both = dict.fromkeys([*state.joined, *state.changed])
        ids = [i for i in both if i not in self._decode and state.is_waiting(i)]
        if not ids:
            return
        self._insert(state, ids)
        self._arrivals += len(ids)
        if self._every and self._arrivals >= self._every:
            self._arrivals = 0
            frozen = self._keep_group and self._begun
            self._groups = self._groups[:1] if frozen else []

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids of the plan, selecting groups as needed."""
        count = min(count, len(self._decode))
        while sum(map(len, self._groups)) < count:
            self._groups.append(self._next_group())
        first: list[int] = []
        for group in self._groups:
            first += group[: count - len(first)]
        return first

    def _drop(self, ids: Sequence[int], *, started: bool) -> None:
        gone = {i for i in ids if i in self._decode}
        self._rows.remove([(self._decode.pop(i), i) for i in gone])
        groups = [[i for i in group if i not in gone] for group in self._groups]
        if started and groups and len(groups[0]) < len(self._groups[0]):
            self._begun = True
        while groups and not groups[0]:
            groups.pop(0)
            self._begun = False
        self._groups = [group for group in groups if group]

    def _insert(self, state: State, ids: list[int]) -> None:
        rules, each, lengths = state.rules, state.requests.each, self._lengths.by_id
        size, most, extra = rules.block_size, rules.num_blocks, rules.extra_slots
        rows = []
        for i in ids:
            # Output tokens of an evicted request are prefilled with its prompt.
            decode = max(lengths.item(i) - each.output_tokens[i], 1)
            prefill = each.prefill[i] + each.output_tokens[i]
            blocks = min(-(-(prefill + decode - 1 + extra) // size), most)
            rows.append((decode, i, prefill, blocks * size))
            self._decode[i] = decode
        self._rows.insert(rows)

    def _next_group(self) -> list[int]:
        """Select a group among the requests without one."""
        assert self._state is not None
        rules = self._state.rules
        decode, ids, prefill, peak = self._rows.columns()
        if self._groups:
            taken = [i for group in self._groups for i in group]
            free = ~np.isin(ids, taken)
            decode, ids, prefill, peak = (
                column[free] for column in (decode, ids, prefill, peak)
            )
        size = rules.block_size
        pool = Pool(ids, prefill, decode, peak, rules.num_blocks * size, size)
        group: list[int] = ids[self._select(pool, self._rng)].tolist()
        return group
