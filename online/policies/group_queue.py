"""Waiting requests in Sorted-F's groups, which are selected again as others arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.groups import Pool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.policies.lengths import Lengths
    from online.state import State
    from sortedf.groups import Selector

    Ints = NDArray[np.int64]

ID_BITS = 31
LOWEST_BITS = (1 << ID_BITS) - 1


class GroupQueue:
    """The plan: groups of least `F`, one after the other, over what waits.

    Only as many groups are selected as somebody asks for, since all after them may be
    selected anew before their turn comes.

    Parameters
    ----------
    select : Selector
        Picks the next group.
    lengths : Lengths
        Answer lengths; updated by whoever owns them, before this.
    every : int
        Arrivals after which the plan is thrown away; 0: never, it is used up first.
    keep_group : bool
        Whether the group that has begun to start stays in front of a new plan.
    seed : int
        For selectors that sample.
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
        # All that wait, by (answer length, id), as one number each.
        self._keys: Ints = np.zeros(0, dtype=np.int64)
        self._key: dict[int, int] = {}
        self._groups: list[list[int]] = []
        self._begun = False  # whether somebody of the first group has started
        self._arrivals = 0
        self._state: State | None = None

    def update(self, state: State) -> None:
        """Apply what joined, left and changed; throw the plan away when it is time."""
        self._state = state
        if state.left:
            self._drop(state.left, started=True)
        if state.changed:
            self._drop(state.changed, started=False)
        if not (state.joined or state.changed):
            return
        both = dict.fromkeys([*state.joined, *state.changed])
        ids = [i for i in both if i not in self._key and state.is_waiting(i)]
        if not ids:
            return
        self._insert(state, ids)
        self._arrivals += len(ids)
        if self._every and self._arrivals >= self._every:
            self._arrivals = 0
            frozen = self._keep_group and self._begun
            self._groups = self._groups[:1] if frozen else []

    def head(self, count: int) -> list[int]:
        """Return the first `count` ids of the plan; it grows group by group."""
        count = min(count, len(self._key))
        while sum(map(len, self._groups)) < count:
            self._groups.append(self._next_group())
        first: list[int] = []
        for group in self._groups:
            first += group[: count - len(first)]
        return first

    def _drop(self, ids: Sequence[int], *, started: bool) -> None:
        gone = {i for i in ids if i in self._key}
        keys = np.array([self._key.pop(i) for i in gone], dtype=np.int64)
        self._keys = np.delete(self._keys, np.searchsorted(self._keys, keys))
        groups = [[i for i in group if i not in gone] for group in self._groups]
        if started and groups and len(groups[0]) < len(self._groups[0]):
            self._begun = True
        while groups and not groups[0]:
            groups.pop(0)
            self._begun = False
        self._groups = [group for group in groups if group]

    def _insert(self, state: State, ids: list[int]) -> None:
        many = np.array(ids, dtype=np.int64)
        # What it has made is part of the prompt now.
        left = np.maximum(self._lengths.by_id[many] - state.requests.made[many], 1)
        keys = left << ID_BITS | many
        self._key.update(zip(ids, keys.tolist(), strict=True))
        keys.sort()
        self._keys = np.insert(self._keys, np.searchsorted(self._keys, keys), keys)

    def _next_group(self) -> list[int]:
        """Select a group among those that are in none."""
        assert self._state is not None
        requests, rules = self._state.requests, self._state.rules
        taken = [self._key[i] for group in self._groups for i in group]
        keys = self._keys
        if taken:
            keys = np.delete(keys, np.searchsorted(keys, np.sort(taken)))
        ids, decode = keys & LOWEST_BITS, keys >> ID_BITS
        prefill = requests.prefill[ids] + requests.made[ids]
        size = rules.block_size
        need = prefill + decode - 1 + rules.extra_slots
        peak = np.minimum(-(-need // size), rules.num_blocks) * size
        pool = Pool(ids, prefill, decode, peak, rules.num_blocks * size, size)
        group: list[int] = ids[self._select(pool, self._rng)].tolist()
        return group
