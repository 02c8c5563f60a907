"""Traces: lengths of requests in tokens and their arrival times in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.arrays import MAX_STEP, MAX_TOKENS, frozen_ints, locked, unchecked
from sortedf.errors import OversizeError, TraceError
from sortedf.instance import Instance, oversize_message, planned_engine
from sortedf.request_set import RequestSet, refuse_unequal
from sortedf.traces.sessions import BOUNDARY_TOLERANCE, Sessions

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from sortedf.engine_model import EngineModel
    from sortedf.traces.prefix_ids import PrefixIds


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Requests in file order. Checked once, then read-only.

    Parameters
    ----------
    prefill, decode : array_like of int, shape (n,)
        Prompt and answer lengths, in tokens, at least 1.
    arrival_s : array_like of float, shape (n,), optional
        Arrival times in seconds, at least 0, in any order. They are shifted so that
        the first is 0. Zeros if left out.
    row : array_like of int, shape (n,), optional
        Position of each request in its file, counted from 1, for messages: the line of
        a text file, the row of a Parquet file, the item of a JSON list. 1 to n if left
        out.
    source : str
        Name of the format.
    name : str
        The file's path, for messages.
    prefix_ids : PrefixIds, optional
        Shared prefixes of prompts, if the format has them.
    sessions : Sessions, optional
        Requests that follow others, if the format has them. Unless all arrivals were
        recorded, `arrival_s` counts for first turns only.

    Raises
    ------
    ValueError, TypeError
        If there is no request, or an entry is out of range; the message names it.
    """

    prefill: NDArray[np.int64]
    decode: NDArray[np.int64]
    arrival_s: NDArray[np.float64] = field(default=None)  # type: ignore[arg-type]
    row: NDArray[np.int64] = field(default=None)  # type: ignore[arg-type]
    source: str = "arrays"
    name: str = ""
    prefix_ids: PrefixIds | None = None
    sessions: Sessions | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        for name in ("prefill", "decode"):
            values = frozen_ints(
                name, getattr(self, name), minimum=1, maximum=MAX_TOKENS
            )
            put(self, name, values)
        n = len(self.prefill)
        if n == 0:
            raise ValueError("a trace needs at least one request.")
        seconds = np.zeros(n) if self.arrival_s is None else self.arrival_s
        put(self, "arrival_s", _frozen_seconds("arrival_s", seconds))
        row = np.arange(1, n + 1) if self.row is None else self.row
        put(self, "row", frozen_ints("row", row, minimum=1, maximum=MAX_STEP))
        refuse_unequal(self, ("decode", "arrival_s", "row", "prefix_ids", "sessions"))

    def __reduce__(self) -> tuple[type[Trace], tuple[Any, ...]]:
        # Default pickling would restore writeable, unchecked arrays.
        fields = (self.prefill, self.decode, self.arrival_s, self.row)
        rest = (self.source, self.name, self.prefix_ids, self.sessions)
        return Trace, (*fields, *rest)

    def __repr__(self) -> str:
        last = float(self.arrival_s.max())
        online = f", last arrival {last:g} s" if last else ""
        name = f", {self.name!r}" if self.name else ""
        return f"Trace({self.num_requests} requests, {self.source}{name}{online})"

    @property
    def num_requests(self) -> int:
        """`n`, the number of requests."""
        return len(self.prefill)

    def subset(self, keep: ArrayLike) -> Trace:
        """Return a trace of some requests, in increasing order of their positions.

        The arrival times are shifted so that the first is 0.

        Parameters
        ----------
        keep : array_like of int
            Their positions.
        """
        kept = np.asarray(keep, dtype=np.int64)
        ids, sessions = self.prefix_ids, self.sessions
        return Trace(
            self.prefill[kept],
            self.decode[kept],
            self.arrival_s[kept],
            self.row[kept],
            self.source,
            self.name,
            None if ids is None else ids.subset(kept),
            None if sessions is None else sessions.subset(kept),
        )

    def to_instance(
        self,
        kv_budget: int | None = None,
        *,
        engine: EngineModel | None = None,
        step_time_s: float = 1.0,
        backlog: bool = False,
        drop_oversize: bool = False,
    ) -> tuple[Instance, NDArray[np.int64]]:
        """Convert seconds to steps, and check every request against the budget.

        Parameters
        ----------
        kv_budget : int, optional
            `M`, in tokens, for an engine of the papers' model.
        engine : EngineModel, optional
            The engine with its budget, if it is another one.
        step_time_s : float
            Seconds per step. A request that arrives within a step may run after it:
            arrivals are rounded up, up to `BOUNDARY_TOLERANCE`.
        backlog : bool
            Ignore the arrival times: every request arrives at step 0.
        drop_oversize : bool
            Leave out requests that can never run, instead of raising an error.

        Returns
        -------
        instance : Instance
        kept : int64 array
            For each request of the instance its position in the trace.

        Raises
        ------
        OversizeError
            If a request can never run and `drop_oversize` is not set, or if none can.
        TraceError
            If arrivals depend on the schedule, because turns of sessions follow others.
        ValueError, TypeError
            If an argument is out of range.
        """
        engine = planned_engine(kv_budget, engine)
        requests = self.to_requests(step_time_s=step_time_s, backlog=backlog)
        kept = np.arange(self.num_requests)
        try:
            return Instance.of_requests(requests, engine=engine), kept
        except OversizeError as error:
            ids = error.request_ids
        if not drop_oversize or len(ids) == self.num_requests:
            raise self._oversize_error(ids, engine, drop_oversize)
        kept = np.delete(kept, ids)
        return Instance.of_requests(requests.subset(kept), engine=engine), kept

    def to_requests(
        self, *, step_time_s: float = 1.0, backlog: bool = False
    ) -> RequestSet:
        """Convert seconds to steps; the lengths are shared with the trace.

        Parameters and errors are those of `to_instance`.
        """
        if not backlog:
            self._refuse_sessions()
        return unchecked(
            RequestSet,
            prefill=self.prefill,
            decode=self.decode,
            arrival=locked(self._arrival_steps(step_time_s, backlog)),
            prefix_ids=self.prefix_ids,
        )

    def with_arrivals(self, arrival_s: ArrayLike) -> Trace:
        """Return the same requests with other arrival times, in seconds.

        Raises
        ------
        ValueError, TypeError
            If an entry is out of range, or their number is not that of the requests.
        """
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        values["arrival_s"] = _frozen_seconds("arrival_s", arrival_s)
        changed = unchecked(Trace, **values)
        refuse_unequal(changed, ("arrival_s",))
        return changed

    def _refuse_sessions(self) -> None:
        """Raise TraceError if turns arrive when the turns before them have ended."""
        if self.sessions is None or self.sessions.is_recorded:
            return
        later = np.flatnonzero(~self.sessions.is_first)
        if len(later):
            raise TraceError(
                f"{self._prefix}{len(later):,} requests (the first in row "
                f"{self.row[later[0]]}) arrive after others have completed, so that "
                "their arrivals depend on the schedule: 'sortedf simulate' and "
                "'sortedf run --mode policy' serve them; a plan or a bound needs fixed "
                "arrivals, or backlog (--backlog), by which all are there at once."
            )

    def _arrival_steps(self, step_time_s: float, backlog: bool) -> NDArray[np.int64]:
        if not (math.isfinite(step_time_s) and step_time_s > 0):
            raise ValueError(
                f"step_time_s = {step_time_s} but must be a number of seconds above 0."
            )
        if backlog:
            return np.zeros(self.num_requests, dtype=np.int64)
        steps = np.ceil(self.arrival_s / step_time_s - BOUNDARY_TOLERANCE)
        late = steps > MAX_STEP
        if late.any():
            i = int(np.argmax(late))
            raise TraceError(
                f"{self._prefix}row {self.row[i]} arrives after {self.arrival_s[i]:g} "
                f"s, which is step {steps[i]:g}, but steps go up to {MAX_STEP}."
            )
        return steps.astype(np.int64)

    def _oversize_error(
        self, ids: tuple[int, ...], engine: EngineModel, drop: bool
    ) -> OversizeError:
        s, o = self.prefill, self.decode
        rows = [(int(self.row[i]), int(s[i]), int(o[i])) for i in ids[:5]]
        message = oversize_message("row", rows, len(ids), len(s), engine)
        way = "drop_oversize (--drop-oversize) leaves them out"
        end = "none is left" if drop else way
        return OversizeError(f"{self._prefix}{message}; {end}.", ids)

    @property
    def _prefix(self) -> str:
        return f"{self.name}: " if self.name else ""


def _frozen_seconds(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Copy `values`, shifted so that the first is 0, into a read-only float array."""
    raw = np.asarray(values)
    if raw.ndim != 1 or raw.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a one-dimensional array of numbers.")
    seconds = raw.astype(np.float64)
    bad = ~((seconds >= 0) & np.isfinite(seconds))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"{name}[{i}] = {seconds[i]} but must be a number of seconds, at least 0."
        )
    if len(seconds):
        seconds -= seconds.min()
    return locked(seconds)
