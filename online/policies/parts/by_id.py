"""Arrays by request id that grow with the request table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.state import State

Scalar = TypeVar("Scalar", bound=np.generic)


def grown(array: NDArray[Scalar], state: State) -> NDArray[Scalar]:
    """Return `array`, extended with zeros to the size of the request table."""
    missing = len(state.requests.output_tokens) - len(array)
    if missing <= 0:
        return array
    return np.concatenate([array, np.zeros(missing, dtype=array.dtype)])


def newcomers(state: State) -> NDArray[np.int64]:
    """Ids of requests that wait for the first time, including reused ids."""
    never_ran = state.requests.preemptions
    fresh = [i for i in state.joined if never_ran[i] == 0]
    return np.array(fresh, dtype=np.int64)
