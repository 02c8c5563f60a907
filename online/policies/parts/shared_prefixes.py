"""Shared prefixes of a snapshot, as arrays for kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from online.state import State

    Ints = NDArray[np.int64]

NONE: Ints = np.zeros(0, dtype=np.int64)


def shared(state: State, ids: Sequence[int]) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Forest of a snapshot, and the cached tokens of each waiting request in `ids`.

    Returns
    -------
    leaf, parent, depth, held : int64 arrays
        See `PrefixForest`; empty if no prefix is shared.
    found : int64 array, shape (len(ids),)
    """
    prefixes = state.prefixes
    if prefixes is None:
        return NONE, NONE, NONE, NONE, np.zeros(len(ids), dtype=np.int64)
    each = state.requests.each
    prefill, output_tokens = each.prefill, each.output_tokens
    found = prefixes.look_up(ids, [prefill[i] + output_tokens[i] for i in ids])
    return prefixes.leaf, prefixes.parent, prefixes.depth, prefixes.held, found
