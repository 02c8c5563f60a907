"""The log of a run: one format for simulated and real engines.

Everything that `online.metrics` computes comes from here: a row for each step, a row
for each request, and each pause between two tokens that is longer than a step.
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
"""Step of what did not happen."""


@dataclass(frozen=True, slots=True, eq=False)
class StepTable:
    """One entry per step; see `StepRecord` for the counts.

    Attributes
    ----------
    begin_s, end_s : float64 arrays
        When the step began and ended.
    """

    begin_s: Floats
    end_s: Floats
    num_running: Ints
    num_waiting: Ints
    prefill_tokens: Ints
    decode_tokens: Ints
    made_tokens: Ints
    kv_tokens: Ints
    used_blocks: Ints
    preemptions: Ints
    evictions: Ints


@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """What happened to every request, and in every step.

    Attributes
    ----------
    prefill, decode : int64 arrays, shape (n,)
        Prompt and true answer lengths.
    arrival_s : float64 array, shape (n,)
    start_step, first_token_step, completion_step : int64 arrays, shape (n,)
        Steps, counted from 1, in which a request first ran, made its first and its
        last token; -1 if that did not happen.
    preemptions, recomputed_tokens : int64 arrays, shape (n,)
        How often it lost its KV, and how many tokens were computed again for that.
    pauses : int64 array, shape (k, 3)
        Request, step of a token, and the later step of the next one, wherever that
        is not the step after.
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
    pauses: Ints
    steps: StepTable
    refused: dict[int, str]

    @property
    def num_steps(self) -> int:
        """How many steps the engine ran."""
        return len(self.steps.end_s)

    @property
    def completed(self) -> NDArray[np.bool_]:
        """Which requests made their last token."""
        return np.asarray(self.completion_step != NEVER)

    def end_of(self, step: Ints) -> Floats:
        """When each of the given steps ended, in seconds; nan for a step of -1."""
        ends = np.append(self.steps.end_s, np.nan)  # index -1
        return np.asarray(ends[np.where(step == NEVER, len(ends), step) - 1])

    @property
    def completion_s(self) -> Floats:
        """When each request made its last token; nan if it did not."""
        return self.end_of(self.completion_step)

    @property
    def first_token_s(self) -> Floats:
        """When each request made its first token; nan if it did not."""
        return self.end_of(self.first_token_step)

    @property
    def start_s(self) -> Floats:
        """When the step began in which each request first ran; nan if it did not."""
        begins = np.append(self.steps.begin_s, np.nan)
        step = self.start_step
        return np.asarray(begins[np.where(step == NEVER, len(begins), step) - 1])


_COUNTS = (
    "num_running", "num_waiting", "prefill_tokens", "decode_tokens", "made_tokens",
    "kv_tokens", "used_blocks",
)  # fmt: skip


@dataclass(slots=True)
class LogBuilder:
    """Collects step records; `finish` makes the log."""

    num_requests: int
    refused: dict[int, str] = field(default_factory=dict)
    _records: list[StepRecord] = field(default_factory=list)
    _begin_s: list[float] = field(default_factory=list)
    _end_s: list[float] = field(default_factory=list)

    def add(self, record: StepRecord, begin_s: float, end_s: float) -> None:
        """Take in one step; they are numbered from 1 without a gap."""
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
    ) -> RunLog:
        """Make the log; the arrays are by request."""
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
