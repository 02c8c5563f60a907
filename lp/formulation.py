"""The time-indexed program as sparse columns.

Variables `x_{i,t}`: request `i` starts at step `t`. Rows, in this order:

* for each request, `sum_t x_{i,t} = 1`;
* for each step, running requests hold at most `M`: a start at `t` has the entries
  `w_{i,1}, ..., w_{i,o}` in the rows of the steps `t + 1, ..., t + o`, where `w_{i,j}`
  is `s_i + j` in whole blocks;
* if the engine has `max_num_seqs`, for each step the number of running requests;
* if it has `max_batched_tokens`, for each step the tokens processed: `s_i` in the first
  step of a request and 1 in each later one.

Steps in which no request can run have no rows. `lp.textbook` states the same program in
a modelling language.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lp.highs import Columns
from sortedf.errors import TooLargeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.instance import Instance

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

MAX_NONZEROS = 75_000_000
"""Entries of the largest matrix; at 80 bytes of HiGHS for each entry, 6 GB."""


@dataclass(frozen=True, slots=True, eq=False)
class Formulation:
    """Rows of the program and the starts that have columns.

    Attributes
    ----------
    instance : Instance
    latest : int64 array, shape (n,)
        Latest start of each request; before the arrival if it has no start.
    caps : bool
        Whether the caps of a step have rows.
    step : int64 array, shape (k,)
        The steps that have rows, ascending.
    first : int64 array, shape (n,)
        Index in `step` of each request's first possible step, `a_i + 1`.
    """

    instance: Instance
    latest: Ints
    caps: bool
    step: Ints
    first: Ints

    @property
    def row_upper(self) -> Floats:
        """Right-hand sides: 1, then the budget, then the caps."""
        n, k = self.instance.num_requests, len(self.step)
        limits = [float(self.instance.usable_kv), *self._cap_values()]
        return np.concatenate([np.ones(n), np.repeat(limits, k)])

    @property
    def row_lower(self) -> Floats:
        """1 for the requests, none for the others."""
        lower = np.full(len(self.row_upper), -np.inf)
        lower[: self.instance.num_requests] = 1.0
        return lower

    def all_starts(self) -> tuple[Ints, Ints]:
        """Every start as (request, step), by request, then step."""
        arrival = self.instance.arrival
        count = np.maximum(self.latest - arrival + 1, 0)
        request = np.repeat(np.arange(len(count)), count)
        rank = np.arange(len(request)) - np.repeat(np.cumsum(count) - count, count)
        return request, arrival[request] + rank

    def columns(self, request: Ints, start: Ints) -> Columns:
        """Columns of some starts.

        Parameters
        ----------
        request : int64 array, shape (m,)
            Ascending.
        start : int64 array, shape (m,)
            From the arrival to the latest start of each request.
        """
        instance = self.instance
        decode = instance.decode[request]
        bands = num_bands(instance, caps=self.caps)
        begin = np.zeros(len(request) + 1, dtype=np.int32)
        np.cumsum(1 + bands * decode, out=begin[1:])
        row = np.empty(begin[-1], dtype=np.int32)
        value = np.empty(begin[-1])
        ids, first = np.unique(request, return_index=True)
        ends = np.append(first, len(request))[1:]
        for i, low, high in zip(ids, first, ends, strict=True):
            # All columns of a request are the same, shifted in time.
            offset, entry = self._pattern(int(i))
            shape = (high - low, 1 + len(entry))
            part = slice(begin[low], begin[high])
            rows, values = row[part].reshape(shape), value[part].reshape(shape)
            begins = self.first[i] + start[low:high] - instance.arrival[i]
            rows[:, 0] = i
            rows[:, 1:] = offset + begins[:, None]
            values[:, 0] = 1.0
            values[:, 1:] = entry
        cost = start + decode - instance.arrival[request]
        return Columns(cost.astype(np.float64), begin, row, value)

    def prices(self, row_dual: Floats) -> Floats:
        """Prices of the memory rows by step, for `lp.prices`.

        Entry `k` is that of step `k + 1`. The dual of a row `<=` is at most 0 up to
        rounding; positive ones become 0.
        """
        n, k = self.instance.num_requests, len(self.step)
        prices = np.zeros(int(self.step[-1]) if k else 0)
        prices[self.step - 1] = np.maximum(-row_dual[n : n + k], 0.0)
        return prices

    def _cap_values(self) -> list[float]:
        engine = self.instance.engine
        caps = [engine.max_num_seqs, engine.max_batched_tokens]
        return [float(cap) for cap in caps if self.caps and cap is not None]

    def _pattern(self, i: int) -> tuple[Ints, Floats]:
        """Rows and values of a column of `i` without its first entry.

        Rows are those of a start at the first step that has a row.
        """
        instance, engine = self.instance, self.instance.engine
        j = np.arange(int(instance.decode[i]))
        s, block = int(instance.prefill[i]), engine.block_size
        values = [-(-(s + 1 + j) // block) * block]
        if self.caps and engine.max_num_seqs is not None:
            values.append(np.ones_like(j))
        if self.caps and engine.max_batched_tokens is not None:
            values.append(np.where(j == 0, s, 1))
        k = len(self.step)
        rows = [instance.num_requests + band * k + j for band in range(len(values))]
        return np.concatenate(rows), np.concatenate(values).astype(np.float64)


def formulate(instance: Instance, latest: Ints, *, caps: bool = True) -> Formulation:
    """Define the rows of the program.

    Parameters
    ----------
    instance : Instance
    latest : int64 array, shape (n,)
        Latest start of each request.
    caps : bool
        Whether to keep the engine's caps on a step; without them it is a relaxation.
    """
    arrival = instance.arrival
    last = np.where(latest >= arrival, latest + instance.decode, arrival)
    step, first = _covered_steps(arrival + 1, last)
    return Formulation(instance, latest, caps, step, first)


def num_nonzeros(instance: Instance, latest: Ints, *, caps: bool = True) -> int:
    """Entries of the matrix of all starts, computed without building it."""
    starts = np.maximum(latest - instance.arrival + 1, 0).tolist()
    bands = num_bands(instance, caps=caps)
    lengths = instance.decode.tolist()
    return sum(m * (1 + bands * o) for m, o in zip(starts, lengths, strict=True))


def num_bands(instance: Instance, *, caps: bool = True) -> int:
    """Rows of the program per step: memory, and each cap that is kept."""
    engine = instance.engine
    given = [engine.max_num_seqs is not None, engine.max_batched_tokens is not None]
    return 1 + caps * sum(given)


def refuse_too_large(nonzeros: int, limit: int = MAX_NONZEROS) -> None:
    """Raise if a program would have more entries than the limit."""
    if nonzeros > limit:
        raise TooLargeError(
            f"the time-indexed program of this instance has {nonzeros:,} entries, more "
            f'than {limit:,}; bound(instance, method="dual") proves nearly the same '
            "bound at any size."
        )


def _covered_steps(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """List the steps in the union of the intervals `first[i]` to `last[i]`.

    Returns
    -------
    step : int64 array, shape (k,)
        Ascending.
    index : int64 array, shape (n,)
        Index of `first[i]` in `step`; 0 for empty intervals.
    """
    index = np.zeros(len(first), dtype=np.int64)
    order = np.flatnonzero(first <= last)
    order = order[np.argsort(first[order], kind="stable")]
    if not len(order):
        return np.empty(0, dtype=np.int64), index
    begins, ends = first[order], np.maximum.accumulate(last[order])
    opens = np.append(True, begins[1:] > ends[:-1])  # starts of disjoint intervals
    low, high = begins[opens], ends[np.append(opens[1:], True)]
    length = high - low + 1
    before = np.cumsum(length) - length
    interval = np.cumsum(opens) - 1
    index[order] = before[interval] + begins - low[interval]
    step = np.arange(int(length.sum())) + np.repeat(low - before, length)
    return step, index
