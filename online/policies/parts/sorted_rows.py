"""Sorted rows of integers, stored as columns of a table for kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from sortedf.jit import kernel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

MANY = 32
"""Number of new rows above which sorting is faster than single insertions."""


class SortedRows:
    """Rows sorted by their first two entries, which are unique.

    An insertion or removal moves the rows before or after it, whichever are fewer: none
    if the first row is removed.

    Parameters
    ----------
    width : int
        Entries of a row.
    """

    def __init__(self, width: int) -> None:
        self._table: Ints = np.zeros((width, 64), dtype=np.int64)
        self._one: Ints = np.zeros(width, dtype=np.int64)
        self._begin = self._count = 0

    def __len__(self) -> int:
        return self._count

    def columns(self) -> Ints:
        """Return the table, shape (width, rows), valid until the next change."""
        return self._table[:, self._begin : self._begin + self._count]

    def insert(self, rows: Sequence[tuple[int, ...]]) -> None:
        """Insert rows at their sorted positions."""
        self._make_room(len(rows))
        if len(rows) > MANY:
            before = self._begin + self._count
            self._table[:, before : before + len(rows)] = np.array(rows).T
            self._count += len(rows)
            columns = self.columns()
            columns[:] = columns[:, np.lexsort((columns[1], columns[0]))]
            return
        for row in rows:
            self._one[:] = row
            self._begin = _insert(self._table, self._begin, self._count, self._one)
            self._count += 1

    def remove(self, keys: Sequence[tuple[int, int]]) -> None:
        """Remove the rows with these first two entries; all must exist."""
        if len(keys) > MANY:
            columns, stay = self.columns(), np.ones(self._count, dtype=np.bool_)
            _mark(columns, np.array(keys, dtype=np.int64), stay)
            kept = columns[:, stay]
            self._count = kept.shape[1]
            self.columns()[:] = kept
            return
        for first, second in keys:
            self._begin = _remove(self._table, self._begin, self._count, first, second)
            self._count -= 1

    def _make_room(self, number: int) -> None:
        """Ensure capacity for `number` further rows after the others."""
        need = self._count + number
        if self._begin + need <= self._table.shape[1]:
            return
        table = np.zeros((len(self._table), 2 * need), dtype=np.int64)
        table[:, : self._count] = self.columns()
        self._table, self._begin = table, 0


@kernel
def _place(table: Ints, begin: int, count: int, first: int, second: int) -> int:
    """Column of a key, or its insertion position."""
    low, high = begin, begin + count
    while low < high:
        middle = (low + high) // 2
        here = table[0, middle]
        if here < first or (here == first and table[1, middle] < second):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _insert(table: Ints, begin: int, count: int, row: Ints) -> int:
    """Insert a row; the table has a free column at the end. Returns the new begin."""
    place = _place(table, begin, count, row[0], row[1])
    before = begin > 0 and place - begin < count // 2
    for c in range(len(row)):
        if before:
            for m in range(begin - 1, place - 1):
                table[c, m] = table[c, m + 1]
            table[c, place - 1] = row[c]
        else:
            for m in range(begin + count, place, -1):
                table[c, m] = table[c, m - 1]
            table[c, place] = row[c]
    return begin - before


@kernel
def _remove(table: Ints, begin: int, count: int, first: int, second: int) -> int:
    """Remove a row. Returns the new begin."""
    place = _place(table, begin, count, first, second)
    before = place - begin < count // 2
    for c in range(len(table)):
        if before:
            for m in range(place, begin, -1):
                table[c, m] = table[c, m - 1]
        else:
            for m in range(place, begin + count - 1):
                table[c, m] = table[c, m + 1]
    return begin + before


@kernel
def _mark(columns: Ints, keys: Ints, stay: NDArray[np.bool_]) -> None:
    """Set `stay` to False (modified in place) for the rows of some keys."""
    for k in range(len(keys)):
        place = _place(columns, 0, columns.shape[1], keys[k, 0], keys[k, 1])
        stay[place] = False
