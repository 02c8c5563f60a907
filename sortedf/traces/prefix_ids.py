"""Ids of the blocks of a trace's prompts, which give their shared prefixes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from sortedf.shown import shown, shown_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from sortedf.traces.location import Location

ParseIds: TypeAlias = "Callable[[Sequence[Any], Location], list[NDArray[np.int64]]]"
"""Converts a raw column of ids; errors name the first invalid value."""

_IDS = re.compile(r"\s*(-?[0-9]{1,20}\s+)*(-?[0-9]{1,20})?\s*", re.ASCII)


@dataclass(frozen=True, slots=True, eq=False)
class PrefixIds:
    """Ids of each prompt's blocks, in order.

    Two prompts have the same tokens as far as their ids agree from the start; single
    ids have no meaning. Tokens beyond a prompt's ids are not shared.

    Attributes
    ----------
    offset : int64 array, shape (n + 1,)
        The ids of request `i` are `ids[offset[i] : offset[i + 1]]`.
    ids : int64 array
    tokens_per_id : int
        Tokens of a block; a prompt's last one may be shorter.
    """

    offset: NDArray[np.int64]
    ids: NDArray[np.int64]
    tokens_per_id: int

    def __post_init__(self) -> None:
        for array in (self.offset, self.ids):
            array.flags.writeable = False

    def __reduce__(self) -> tuple[type[PrefixIds], tuple[Any, ...]]:
        # Default pickling would restore writeable arrays.
        return PrefixIds, (self.offset, self.ids, self.tokens_per_id)

    @classmethod
    def of_lists(cls, lists: Iterable[ArrayLike], tokens_per_id: int) -> PrefixIds:
        """Make them from one list of ids per prompt."""
        rows = [np.asarray(own, dtype=np.int64) for own in lists]
        offset = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(own) for own in rows], out=offset[1:])
        ids = np.concatenate([*rows, np.zeros(0, dtype=np.int64)])
        return cls(offset, ids, tokens_per_id)

    def subset(self, rows: NDArray[np.int64]) -> PrefixIds:
        """Return the ids of some of the prompts, in the order wanted."""
        return PrefixIds.of_lists([self[i] for i in rows.tolist()], self.tokens_per_id)

    def __len__(self) -> int:
        return len(self.offset) - 1

    def __getitem__(self, i: int) -> NDArray[np.int64]:
        return self.ids[self.offset[i] : self.offset[i + 1]]


class BlockIds:
    """Ids of blocks of tokens: equal where prompts agree from their begin to there.

    Parameters
    ----------
    tokens_per_id : int
    """

    def __init__(self, tokens_per_id: int) -> None:
        self._size = tokens_per_id
        self._known: dict[tuple[int, tuple[int, ...]], int] = {}

    def of(self, prompt: Sequence[int]) -> list[int]:
        """Ids of the full blocks of a prompt's tokens."""
        ids, before = [], -1
        for end in range(self._size, len(prompt) + 1, self._size):
            block = tuple(prompt[end - self._size : end])
            before = self._known.setdefault((before, block), len(self._known))
            ids.append(before)
        return ids


def ids_in_text(values: Sequence[str], location: Location) -> list[NDArray[np.int64]]:
    """Convert the ids of a CSV column: integers separated by spaces."""
    rule = "integers separated by spaces"
    found = []
    for i, value in enumerate(values):
        if not _IDS.fullmatch(value):
            location.refuse(i, shown(value), rule)
        try:
            found.append(np.array(list(map(int, value.split())), dtype=np.int64))
        except OverflowError:
            location.refuse(i, "a list with an integer beyond 64 bits", rule)
    return found


def ids_in_objects(
    values: Sequence[Any], location: Location
) -> list[NDArray[np.int64]]:
    """Check ids of JSON or Parquet: a list of integers for each prompt."""
    rule = "a list of integers"
    checked = []
    for i, value in enumerate(values):
        if not isinstance(value, list):
            location.refuse(i, shown_json(value), rule)
        if set(map(type, value)) - {int}:
            location.refuse(i, "a list with other values", rule)
        try:
            checked.append(np.array(value, dtype=np.int64))
        except OverflowError:
            location.refuse(i, "a list with an integer beyond 64 bits", rule)
    return checked
