"""Runs the requests of a batch and stores each answer when it arrives."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from online.executor.batch.answer_lines import (
    INTERNAL_ERROR,
    Answer,
    error_answer,
    unsupported,
)
from online.executor.batch.batch_errors import EngineGoneError
from online.executor.batch.batch_file import SUPPORTED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from online.executor.batch.batch_file import BatchRequest
    from online.executor.batch.journal import Journal


class Serving(Protocol):
    """Interface of an engine that answers requests."""

    async def answer(self, request: BatchRequest, body: dict[str, Any]) -> Answer:
        """Answer a request; EngineGoneError if the engine is dead."""
        ...

    async def hold(self) -> None:
        """Accept requests without starting any."""
        ...

    async def release(self, expected: int) -> None:
        """Start requests once `expected` have arrived or ended, or after a timeout."""
        ...


Job: TypeAlias = "tuple[BatchRequest, dict[str, Any]]"
"""A request, and its body with hints."""


@dataclass(slots=True)
class Clock:
    """Completion times of this run's requests, in seconds since all were sent.

    Attributes
    ----------
    done_s : list of float
    """

    began: float = field(default_factory=time.perf_counter)
    done_s: list[float] = field(default_factory=list)

    def tick(self) -> None:
        """Record that a request has completed."""
        self.done_s.append(time.perf_counter() - self.began)

    @property
    def mean_s(self) -> float | None:
        """Mean completion time; None if no request has completed."""
        return sum(self.done_s) / len(self.done_s) if self.done_s else None


def refuse_unsupported(
    requests: Sequence[BatchRequest], journal: Journal
) -> list[BatchRequest]:
    """Write the errors of unsupported requests; return the other unfinished ones."""
    left = [r for r in requests if r.custom_id not in journal.entries]
    refused = [r for r in left if r.url not in SUPPORTED]
    if refused:
        journal.append((r.custom_id, unsupported(r.custom_id, r.url)) for r in refused)
    return [r for r in left if r.url in SUPPORTED]


async def run_all(
    jobs: Sequence[Job],
    serving: Serving,
    journal: Journal,
    report: Callable[[], None],
) -> Clock:
    """Send all requests, in this order, and write each answer when it arrives.

    Answers that arrive together are written together, with one sync to disk. If this
    ends early for any reason, all finished requests are in the journal.

    Raises
    ------
    EngineGoneError
        If the engine died.
    """
    finished: asyncio.Queue[tuple[str, Answer] | None] = asyncio.Queue()
    await serving.hold()
    clock = Clock()
    tasks = [asyncio.create_task(_one(job, serving, finished, clock)) for job in jobs]
    releasing = asyncio.create_task(serving.release(len(jobs)))
    answers: list[tuple[str, Answer]] = []
    left = len(jobs)
    try:
        while left:
            group = [await finished.get(), *_drained(finished)]
            answers = [item for item in group if item is not None]
            await asyncio.to_thread(journal.append, answers)
            left -= len(answers)
            report()
            if len(answers) < len(group):
                raise EngineGoneError
        return clock
    finally:
        # The last group may not have been written when this was interrupted.
        last = [item for item in _drained(finished) if item is not None]
        for task in (releasing, *tasks):
            task.cancel()
        await asyncio.gather(releasing, *tasks, return_exceptions=True)
        journal.append([*answers, *last])


async def _one(
    job: Job,
    serving: Serving,
    finished: asyncio.Queue[tuple[str, Answer] | None],
    clock: Clock,
) -> None:
    """Answer one request; its failure is an answer, the engine's failure is None."""
    request, body = job
    task = asyncio.current_task()
    try:
        answer = await serving.answer(request, body)
    except EngineGoneError:
        finished.put_nowait(None)
        return
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        answer = error_answer(request.custom_id, message, INTERNAL_ERROR)
    if task is not None and task.cancelling():
        return  # vLLM answers a cancelled call with "client disconnected"
    clock.tick()
    finished.put_nowait((request.custom_id, answer))


def _drained(
    queue: asyncio.Queue[tuple[str, Answer] | None],
) -> list[tuple[str, Answer] | None]:
    """Remove and return all items of a queue."""
    return [queue.get_nowait() for _ in range(queue.qsize())]
