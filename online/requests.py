"""The request table: the state of every request, one array per field.

Ids are positions in the table. A simulator fills it once; a server adds requests as
they arrive and reuses the ids of finished ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from online import step_kernels as k

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from online.prompt_chains import PromptChains
    from sortedf.request_set import RequestSet
    from sortedf.traces.sessions import Sessions

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

Number = TypeVar("Number", np.int64, np.float64)

UNKNOWN = 2**31
"""Value for an answer length that is not known in advance."""


class RequestTable:
    """Arrays that grow; row `f` of `ints` is a field, column `i` a request.

    Attributes
    ----------
    ints : int64 array, shape (fields, capacity)
        Prompt, true and predicted answer length, tokens computed and made, blocks
        held, preemptions, tokens to compute again, step of the last token.
    arrival_s, score : float64 arrays, shape (capacity,)
        Arrival in seconds; learned rank, lower first, nan if there is none.
    num_ids : int
        Upper limit of ids.
    chains : PromptChains, optional
        Shared prefixes of prompts, for an engine with prefix caching.
    sessions : Sessions, optional
        Requests that a driver adds only after others have completed. Their think times
        are in the unit of `arrival_s`.
    """

    def __init__(self, capacity: int = 64) -> None:
        self.ints: Ints = np.zeros((k.NUM_FIELDS, capacity), dtype=np.int64)
        self.arrival_s: Floats = np.zeros(capacity)
        self.score: Floats = np.full(capacity, np.nan)
        self.num_ids = 0
        self.chains: PromptChains | None = None
        self.sessions: Sessions | None = None
        self._vacant: list[int] = []
        self._view: RequestView | None = None
        self._fields = _fields_of(self)

    @classmethod
    def of_instance(
        cls,
        requests: RequestSet,
        *,
        step_s: float = 1.0,
        predicted: ArrayLike | None = None,
        score: ArrayLike | None = None,
    ) -> RequestTable:
        """Fill a table with requests, or those of an instance, with the same ids.

        Parameters
        ----------
        step_s : float
            Seconds per step of the arrivals.
        predicted : array_like of int, shape (n,), optional
            Answer lengths that a policy may use; the true ones if left out.
        score : array_like of float, shape (n,), optional
            Learned ranks.
        """
        return cls.of_arrays(
            requests.prefill,
            requests.decode,
            requests.arrival * step_s,
            predicted=predicted,
            score=score,
        )

    @classmethod
    def of_arrays(
        cls,
        prefill: Ints,
        decode: Ints,
        arrival_s: ArrayLike,
        *,
        predicted: ArrayLike | None = None,
        score: ArrayLike | None = None,
    ) -> RequestTable:
        """Fill a table from one array per field, each of shape (n,); see above."""
        n = len(prefill)
        table = cls(max(n, 1))
        guess = decode if predicted is None else np.asarray(predicted)
        if guess.shape != (n,):
            raise ValueError(f"predicted has shape {guess.shape} but must be ({n},).")
        table.ints[k.PREFILL, :n] = prefill
        table.ints[k.DECODE, :n] = decode
        table.ints[k.PREDICTED, :n] = np.maximum(guess, 1)
        table.ints[k.LAST_TOKEN, :n] = -1
        table.arrival_s[:n] = arrival_s
        if score is not None:
            table.score[:n] = score
        table.num_ids = n
        return table

    def add(
        self,
        prefill: int,
        decode: int,
        predicted: int,
        arrival_s: float,
        score: float = float("nan"),
    ) -> int:
        """Add a request; return its id, which may be that of a finished one."""
        if self._vacant:
            i = self._vacant.pop()
        else:
            i = self.num_ids
            self.num_ids += 1
            if i == self.ints.shape[1]:
                self._grow()
        ints = (prefill, decode, max(predicted, 1), 0, 0, 0, 0, 0, -1, 0)
        for field, value in zip(self._fields, (*ints, arrival_s, score), strict=True):
            field[i] = value
        return i

    def remove(self, i: int) -> None:
        """Remove a request; its id can be reused."""
        self._vacant.append(i)

    def update_hint(self, i: int, predicted: int | None, score: float | None) -> bool:
        """Update predicted length and score; return whether one of them changed."""
        new = False
        if predicted is not None and self.ints[k.PREDICTED, i] != max(predicted, 1):
            self.ints[k.PREDICTED, i] = max(predicted, 1)
            new = True
        if score is not None and self.score[i] != score:
            self.score[i] = score
            new = True
        return new

    def _grow(self) -> None:
        self.ints = np.concatenate([self.ints, np.zeros_like(self.ints)], axis=1)
        self.arrival_s = np.concatenate([self.arrival_s, np.zeros_like(self.arrival_s)])
        self.score = np.concatenate([self.score, np.full_like(self.score, np.nan)])
        self._view = None
        self._fields = _fields_of(self)

    @property
    def view(self) -> RequestView:
        """Read-only view of the table for policies."""
        if self._view is None:
            self._view = RequestView(self)
        return self._view


def _fields_of(table: RequestTable) -> tuple[Any, ...]:
    """Memoryviews of the rows in order, then of arrival and score.

    Setting an entry of a memoryview takes a third of the time of an array's.
    """
    return tuple(memoryview(a) for a in (*table.ints, table.arrival_s, table.score))


def _read_only(array: NDArray[Number]) -> NDArray[Number]:
    view = array.view()
    view.flags.writeable = False
    return view


class RequestView:
    """Read-only arrays over all requests, by id, without true answer lengths.

    Attributes
    ----------
    prefill, predicted : int64 arrays
        Prompt length, and predicted answer length.
    computed, output_tokens, preemptions : int64 arrays
        Tokens with KV in the cache, output tokens so far, preemptions.
    arrival_s, score : float64 arrays
        Arrival in seconds, learned rank.
    ints : int64 array
        The whole table, for kernels.
    each : EachRequest
        The same fields with fast access to single requests.
    """

    __slots__ = (
        "arrival_s", "computed", "each", "ints", "output_tokens", "predicted",
        "preemptions", "prefill", "score",
    )  # fmt: skip

    def __init__(self, table: RequestTable) -> None:
        self.ints = _read_only(table.ints)
        self.prefill = self.ints[k.PREFILL]
        self.predicted = self.ints[k.PREDICTED]
        self.computed = self.ints[k.COMPUTED]
        self.output_tokens = self.ints[k.OUTPUT_TOKENS]
        self.preemptions = self.ints[k.PREEMPTIONS]
        self.arrival_s = _read_only(table.arrival_s)
        self.score = _read_only(table.score)
        self.each = EachRequest(self)


class EachRequest:
    """Fields of a view as memoryviews, whose entries are read many times faster.

    Attributes
    ----------
    prefill, predicted, computed, output_tokens, preemptions : memoryviews of int
    arrival_s, score : memoryviews of float
    """

    __slots__ = (
        "arrival_s", "computed", "output_tokens", "predicted", "preemptions", "prefill",
        "score",
    )  # fmt: skip

    def __init__(self, view: RequestView) -> None:
        fields: Any = view
        self.prefill: memoryview[int] = memoryview(fields.prefill)
        self.predicted: memoryview[int] = memoryview(fields.predicted)
        self.computed: memoryview[int] = memoryview(fields.computed)
        self.output_tokens: memoryview[int] = memoryview(fields.output_tokens)
        self.preemptions: memoryview[int] = memoryview(fields.preemptions)
        self.arrival_s: memoryview[float] = memoryview(fields.arrival_s)
        self.score: memoryview[float] = memoryview(fields.score)
