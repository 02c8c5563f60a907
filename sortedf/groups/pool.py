"""Input of a group selector: the requests that are not in a group yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sortedf.arrays import exact_sum

if TYPE_CHECKING:
    from sortedf.instance import Instance


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Requests without a group, in order of (answer length, id).

    Attributes
    ----------
    ids : int64 array, shape (m,)
        Request ids.
    prefill, decode, peak : int64 arrays, shape (m,)
        `s`, `o`, and `s + o` in whole blocks, in tokens.
    kv_budget : int
        Budget of a group's peaks, in tokens: whole blocks.
    block_size : int
        Tokens per block.
    """

    ids: NDArray[np.int64]
    prefill: NDArray[np.int64]
    decode: NDArray[np.int64]
    peak: NDArray[np.int64]
    kv_budget: int
    block_size: int

    @classmethod
    def of(cls, instance: Instance) -> Pool:
        """All requests of an instance."""
        ids = np.argsort(instance.decode, kind="stable")
        return cls(
            ids,
            instance.prefill[ids],
            instance.decode[ids],
            instance.peak[ids],
            instance.usable_kv,
            instance.engine.block_size,
        )

    def without(self, positions: NDArray[np.int64]) -> Pool:
        """Pool without the requests of a group."""
        keep = np.ones(len(self.ids), dtype=bool)
        keep[positions] = False
        return replace(
            self,
            ids=self.ids[keep],
            prefill=self.prefill[keep],
            decode=self.decode[keep],
            peak=self.peak[keep],
        )


def f_metric(decode_sum: int, size: int) -> float:
    """`F(X) = sum of o / |X|^2`, the value of a group; smaller is better.

    A quotient of integers below 2**53 is rounded correctly, so equal values of F are
    equal floats, and different ones compare correctly for groups below 9,000 requests.
    """
    return decode_sum / (size * size)


def group_key(pool: Pool, positions: NDArray[np.int64]) -> tuple[float, int]:
    """Sort key of a group: smaller `F` first, then larger groups."""
    size = len(positions)
    return f_metric(exact_sum(pool.decode[positions]), size), -size


def largest_size(pool: Pool) -> int:
    """Most requests of the pool whose peaks fit the budget together."""
    fitting = np.cumsum(np.sort(pool.peak)) <= pool.kv_budget
    return int(np.count_nonzero(fitting))


Selector: TypeAlias = Callable[[Pool, np.random.Generator], NDArray[np.int64]]
"""Selects a group: positions in the pool, ascending; at least one."""
