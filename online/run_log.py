"""The log of a run: one format for simulated and real engines.

It contains all data for `online.metrics`: a row for each step, a row for each request,
and each pause between two tokens that is longer than a step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from online.step_engine import StepRecord

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

NEVER = -1
"""Step of an event that did not happen."""


@dataclass(frozen=True, slots=True, eq=False)
class StepTable:
    """One entry per step; see `StepRecord` for the counts.

    Attributes
    ----------
    begin_s, end_s : float64 arrays
        Begin and end of the step.
    """

    begin_s: Floats
    end_s: Floats
    num_running: Ints
    num_waiting: Ints
    prefill_tokens: Ints
    num_decoding: Ints
    output_tokens: Ints
    kv_tokens: Ints
    used_blocks: Ints
    cached_tokens: Ints
    preemptions: Ints
    evictions: Ints


@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """Record of every request and every step of a run.

    Attributes
    ----------
    prefill, decode : int64 arrays, shape (n,)
        Prompt and true answer lengths.
    arrival_s : float64 array, shape (n,)
    start_step, first_token_step, completion_step : int64 arrays, shape (n,)
        Steps, counted from 1, in which a request first ran, made its first and its
        last token; -1 if that did not happen.
    preemptions, recomputed_tokens : int64 arrays, shape (n,)
        Number of losses of its KV, and tokens computed again because of them.
    cached_tokens : int64 array, shape (n,)
        Tokens whose KV was found in the cache and not computed, at its first start and
        after each loss.
    pauses : int64 array, shape (k, 3)
        Request, step of a token, and step of its next token, if that is not the next
        step.
    steps : StepTable
    refused : dict of int to str
        Requests that could never run, with the reason.
    """

    prefill: Ints
    decode: Ints
    arrival_s: Floats
    start_step: Ints
    first_token_step: Ints
    completion_step: Ints
    preemptions: Ints
    recomputed_tokens: Ints
    cached_tokens: Ints
    pauses: Ints
    steps: StepTable
    refused: dict[int, str]

    @property
    def num_steps(self) -> int:
        """Number of steps of the engine."""
        return len(self.steps.end_s)

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which requests made their last token."""
        return np.asarray(self.completion_step != NEVER)

    def end_of(self, step: Ints) -> Floats:
        """End of each of the given steps, in seconds; nan for a step of -1."""
        ends = np.append(self.steps.end_s, np.nan)  # index -1
        return np.asarray(ends[np.where(step == NEVER, len(ends), step) - 1])

    @property
    def completion_s(self) -> Floats:
        """Time of each request's last token; nan if it was not made."""
        return self.end_of(self.completion_step)

    @property
    def first_token_s(self) -> Floats:
        """Time of each request's first token; nan if it was not made."""
        return self.end_of(self.first_token_step)

    @property
    def start_s(self) -> Floats:
        """Begin of the step in which each request first ran; nan if it did not run."""
        begins = np.append(self.steps.begin_s, np.nan)
        step = self.start_step
        return np.asarray(begins[np.where(step == NEVER, len(begins), step) - 1])


_COUNTS = (
    "num_running", "num_waiting", "prefill_tokens", "num_decoding", "output_tokens",
    "kv_tokens", "used_blocks", "cached_tokens",
)  # fmt: skip


@dataclass(slots=True)
class LogBuilder:
    """Collects step records; `finish` returns the log."""

    num_requests: int
    refused: dict[int, str] = field(default_factory=dict)
    _records: list[StepRecord] = field(default_factory=list)
    _begin_s: list[float] = field(default_factory=list)
    _end_s: list[float] = field(default_factory=list)

    def add(self, record: StepRecord, begin_s: float, end_s: float) -> None:
        """Add the next step; steps are numbered consecutively from 1."""
        self._records.append(record)
        self._begin_s.append(begin_s)
        self._end_s.append(end_s)

    def finish(
        self,
        prefill: Ints,
        decode: Ints,
        arrival_s: Floats,
        preemptions: Ints,
        recomputed_tokens: Ints,
        cached_tokens: Ints,
    ) -> RunLog:
        """Return the log; the arrays are by request."""
        first, start, done = (
            np.full(self.num_requests, NEVER, dtype=np.int64) for _ in range(3)
        )
        pauses: list[tuple[int, int, int]] = []
        for record in self._records:
            for i in record.started:
                if start[i] == NEVER:
                    start[i] = record.step
            for i, after in record.resumed:
                if first[i] == NEVER:
                    first[i] = record.step
                else:
                    pauses.append((i, after, record.step))
            for i in record.finished:
                done[i] = record.step
        return RunLog(
            prefill.copy(),
            decode.copy(),
            arrival_s.copy(),
            start,
            first,
            done,
            preemptions.copy(),
            recomputed_tokens.copy(),
            cached_tokens.copy(),
            np.array(pauses, dtype=np.int64).reshape(-1, 3),
            self._step_table(),
            self.refused,
        )

    def _step_table(self) -> StepTable:
        columns = {
            name: np.array([getattr(r, name) for r in self._records], dtype=np.int64)
            for name in _COUNTS
        }
        return StepTable(
            np.array(self._begin_s),
            np.array(self._end_s),
            **columns,
            preemptions=np.array(
                [len(r.preempted) for r in self._records], dtype=np.int64
            ),
            evictions=np.array([len(r.evicted) for r in self._records], dtype=np.int64),
        )
