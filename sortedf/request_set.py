"""Requests without an engine: lengths, arrivals in steps, and shared prefixes."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.arrays import MAX_STEP, MAX_TOKENS, frozen_ints, locked, unchecked
from sortedf.shared_prefixes import SharedPrefixes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from numpy.typing import ArrayLike, NDArray

    from sortedf.engine_model import EngineModel
    from sortedf.traces.prefix_ids import PrefixIds


@dataclass(frozen=True, slots=True, eq=False)
class RequestSet:
    """Requests with their arrivals. Checked once, then read-only.

    Parameters
    ----------
    prefill : array_like of int, shape (n,)
        Prompt lengths `s`, in tokens, at least 1.
    decode : array_like of int, shape (n,)
        Answer lengths `o`, in tokens, at least 1.
    arrival : array_like of int, shape (n,), optional
        First step after which a request may run, `a`; 0 for all (a backlog) if left
        out.
    prefix_ids : PrefixIds, optional
        Ids of the blocks of each prompt, which say what prompts share; nothing if left
        out.

    Raises
    ------
    ValueError, TypeError
        If an entry is out of range or no integer; the message names it.

    Examples
    --------
    >>> RequestSet(prefill=[3, 1], decode=[2, 4]).num_requests
    2
    """

    prefill: NDArray[np.int64]
    decode: NDArray[np.int64]
    arrival: NDArray[np.int64] = field(default=None)  # type: ignore[arg-type]
    prefix_ids: PrefixIds | None = None

    if TYPE_CHECKING:  # accepted types; the fields above have the converted ones

        def __init__(
            self,
            prefill: ArrayLike,
            decode: ArrayLike,
            arrival: ArrayLike | None = None,
            prefix_ids: PrefixIds | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("prefill", "decode"):
            values = frozen_ints(
                name, getattr(self, name), minimum=1, maximum=MAX_TOKENS
            )
            put(self, name, values)
        arrival = np.zeros(len(self.prefill)) if self.arrival is None else self.arrival
        arrival = frozen_ints("arrival", arrival, minimum=0, maximum=MAX_STEP)
        put(self, "arrival", arrival)
        refuse_unequal(self, ("decode", "arrival", "prefix_ids"))

    def __reduce__(self) -> tuple[type[RequestSet], tuple[Any, ...]]:
        # Default pickling would restore writeable, unchecked arrays.
        return RequestSet, (self.prefill, self.decode, self.arrival, self.prefix_ids)

    @property
    def num_requests(self) -> int:
        """`n`; request ids are 0 to n - 1."""
        return len(self.prefill)

    @property
    def is_backlog(self) -> bool:
        """Whether every request arrives at step 0."""
        return not self.arrival.any()

    def shared_prefixes(self, engine: EngineModel) -> SharedPrefixes | None:
        """Find what prompts share in the cache of an engine; None if it is nothing."""
        if self.prefix_ids is None or not engine.prefix_caching:
            return None
        return SharedPrefixes.of_prefix_ids(
            self.prefix_ids, self.prefill, engine.block_size
        )

    def subset(
        self, ids: Sequence[int] | NDArray[np.int64] | NDArray[np.bool_]
    ) -> Self:
        """Return some of the requests, renumbered from 0, and all else as it is.

        Parameters
        ----------
        ids : array_like of int, or of bool with shape (n,)
            Request ids in the order wanted, or a mask of those to keep.

        Raises
        ------
        ValueError, TypeError
            If an entry is no id, or a mask has another length.
        """
        keep = self._ids(ids)
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("prefill", "decode", "arrival"):
            values[name] = locked(values[name][keep])
        for name in ("prefix_ids", "prefixes"):
            if values.get(name) is not None:
                values[name] = values[name].subset(keep)
        return unchecked(type(self), **values)

    def _ids(self, ids: ArrayLike) -> NDArray[np.int64]:
        """Return ids, or those that a mask keeps."""
        mask = np.asarray(ids)
        if mask.dtype != np.bool_:
            return frozen_ints("ids", ids, minimum=0, maximum=self.num_requests - 1)
        if mask.shape != (self.num_requests,):
            raise ValueError(
                f"a mask of shape {mask.shape} cannot choose from {self.num_requests} "
                "requests; it must have one entry for each."
            )
        return np.flatnonzero(mask)


def refuse_unequal(requests: Any, names: Sequence[str]) -> None:
    """Raise a ValueError if one of these fields has another length than `prefill`."""
    n = len(requests.prefill)
    for name in names:
        values = getattr(requests, name)
        if values is not None and len(values) != n:
            raise ValueError(
                f"{name} has {len(values)} entries but prefill has {n}; they must be "
                "equally long."
            )
