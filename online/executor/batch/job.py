"""Processing of a batch file to its complete output, in one or several runs."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from online.executor.batch.batch_errors import (
    BatchFileError,
    EngineGoneError,
    UnfinishedError,
)
from online.executor.batch.batch_file import BatchFile, BatchRequest, read_batch
from online.executor.batch.batch_method import BatchMethod, start_order
from online.executor.batch.expected_lengths import (
    body_with_hints,
    expected_tokens,
    read_lengths,
)
from online.executor.batch.journal import Header, Journal, sync_folder
from online.executor.batch.ranked_requests import rank
from online.executor.batch.runner import (
    Clock,
    Job,
    Serving,
    refuse_unsupported,
    run_all,
)
from sortedf.atomic import atomic_path, refuse_unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from online.executor.batch.engine_settings import EngineSettings
    from online.executor.batch.ranked_requests import Ranked, RankerUse
    from sortedf.engine_model import EngineModel


logger = logging.getLogger("sortedf")


class BatchServer(Serving, Protocol):
    """Interface of the engine of a batch."""

    rules: EngineModel
    max_model_len: int
    counts: dict[str, int]

    async def prompt_tokens(self, request: BatchRequest) -> list[int]:
        """Token ids of a prompt; none if the request will be refused."""
        ...


Serve: TypeAlias = Callable[
    ["EngineSettings", "Mapping[str, Any]"], AbstractAsyncContextManager[Any]
]
"""Starts an engine with options for its scheduler."""

Report: TypeAlias = Callable[[int, int, int], None]
"""Called as `report(done, failed, total)`."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """A batch job.

    Attributes
    ----------
    input, output : Path
    settings : EngineSettings
    method : BatchMethod
    lengths : Path, optional
        File of expected answer lengths.
    ranking : RankerUse, optional
        Ranker for the requests' scores, and for lengths not known otherwise.
    """

    input: Path
    output: Path
    settings: EngineSettings
    method: BatchMethod
    lengths: Path | None = None
    ranking: RankerUse | None = None

    def header(self, batch: BatchFile) -> Header:
        """Return the journal's header for this job."""
        settings = {
            "scheduler": dict(self.method.scheduler),
            "offline": self.method.offline,
            "kv_budget": self.settings.kv_budget,
            "block_size": self.settings.block_size,
            "max_num_seqs": self.settings.max_num_seqs,
            "max_batched_tokens": self.settings.max_batched_tokens,
            "max_model_len": self.settings.max_model_len,
            "served_model_name": self.settings.served_model_name,
            "arguments": dict(self.settings.arguments),
        }
        return Header(batch.sha256, self.settings.model, settings)


@dataclass(slots=True)
class BatchSummary:
    """Summary of a batch run.

    Attributes
    ----------
    requests, completed, failed : int
        Numbers of all requests, of answers, and of errors.
    resumed : int
        Requests finished before this run.
    seconds : float
        Duration of this run, including the start of the engine.
    mean_completion_s, makespan_s : float, optional
        Completion times of this run's requests since all were sent.
    preemptions : int, optional
    """

    requests: int
    resumed: int
    completed: int = 0
    failed: int = 0
    seconds: float = 0.0
    mean_completion_s: float | None = None
    makespan_s: float | None = None
    preemptions: int | None = None
    began: float = field(default_factory=time.perf_counter, repr=False)

    def note_run(self, clock: Clock, preemptions: int) -> None:
        """Record the measurements of a run."""
        self.mean_completion_s = clock.mean_s
        self.makespan_s = max(clock.done_s, default=None)
        self.preemptions = preemptions

    def note_end(self, failed: int) -> None:
        """Record the number of errors and the duration."""
        self.failed = failed
        self.completed = self.requests - failed
        self.seconds = time.perf_counter() - self.began


def run_job(job: BatchJob, serve: Serve, report: Report) -> BatchSummary:
    """Answer all unfinished requests, and write the output.

    Raises
    ------
    BatchFileError, JournalError, OutputError, ValueError
        If the job is invalid; nothing has been written.
    UnfinishedError
        If the run ended early; the same command resumes it.
    """
    batch = read_batch(job.input)
    lengths = {} if job.lengths is None else read_lengths(job.lengths)
    _refuse_output(job)
    header = job.header(batch)
    journal = Journal(job.output, header)
    try:
        journal.refuse_others(request.custom_id for request in batch.requests)
        if journal.settings != header.settings:
            logger.warning("%s was started with other settings.", journal.path)
        summary = BatchSummary(len(batch.requests), len(journal.entries))
        with _kept(journal, summary.requests):
            left = refuse_unsupported(batch.requests, journal)
            if left:
                _run(job, left, lengths, serve, journal, summary, report)
            _assemble(batch, journal, job.output)
        summary.note_end(journal.num_failed)
        journal.close(remove=True)
        return summary
    finally:
        # An empty journal is removed.
        journal.close(remove=not journal.entries)


def _refuse_output(job: BatchJob) -> None:
    """Raise before a long run if the output cannot be written."""
    output = job.output
    refuse_unwritable(output)
    if output.exists() and not output.is_file():
        raise BatchFileError(f"{output} is no regular file; a journal lies beside it.")
    if output.exists() and output.samefile(job.input):
        raise BatchFileError(f"{output} is the input file; choose another output.")


@contextmanager
def _kept(journal: Journal, total: int) -> Iterator[None]:
    """Convert errors that end a run early to one that says how to resume."""

    def unfinished(what: str) -> UnfinishedError:
        done = len(journal.entries)
        if not done:
            return UnfinishedError(f"{what}; no request was finished.")
        return UnfinishedError(
            f"{what}; {done:,} of {total:,} requests are finished and kept in "
            f"{journal.path}: run the same command again to resume."
        )

    try:
        yield
    except (KeyboardInterrupt, asyncio.CancelledError):
        raise unfinished("interrupted") from None
    except EngineGoneError:
        raise unfinished("the engine died") from None
    except UnfinishedError:
        raise
    except RuntimeError as error:
        raise unfinished(str(error)) from error


def _run(
    job: BatchJob,
    requests: list[BatchRequest],
    lengths: Mapping[str, int],
    serve: Serve,
    journal: Journal,
    summary: BatchSummary,
    report: Report,
) -> None:
    """Start an engine and run the requests in it."""

    def report_progress() -> None:
        report(len(journal.entries), journal.num_failed, summary.requests)

    async def run() -> None:
        _end_on_terminate()
        async with serve(job.settings, job.method.scheduler) as engine:
            jobs = await _jobs(requests, lengths, engine, job)
            report_progress()
            clock = await run_all(jobs, engine, journal, report_progress)
            summary.note_run(clock, engine.counts["preemptions"])

    asyncio.run(run())


def _end_on_terminate() -> None:
    """Handle SIGTERM like Ctrl-C."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(ValueError, RuntimeError, NotImplementedError):  # not the main thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _jobs(
    requests: list[BatchRequest],
    lengths: Mapping[str, int],
    engine: BatchServer,
    job: BatchJob,
) -> list[Job]:
    """Add hints to each request; with an offline method solve for the order."""
    ranked: Mapping[str, Ranked] = {}
    if job.ranking is not None:
        # Only after the engine has started: vLLM may fork, which breaks threads.
        ranked = await asyncio.to_thread(rank, requests, job.ranking)
    expected = [expected_tokens(r, lengths, ranked.get(r.custom_id)) for r in requests]
    if job.method.offline is None:
        return [
            (r, body_with_hints(r, length, _score(ranked.get(r.custom_id))))
            for r, length in zip(requests, expected, strict=True)
        ]
    return await _in_order(requests, expected, engine, job.method)


def _score(ranked: Ranked | None) -> float | None:
    return None if ranked is None else ranked.score


async def _in_order(
    requests: list[BatchRequest],
    expected: list[int | None],
    engine: BatchServer,
    method: BatchMethod,
) -> list[Job]:
    """Solve for the order and sort the requests by it."""
    prompts = [await engine.prompt_tokens(request) for request in requests]
    prompts = [own if len(own) < engine.max_model_len else [] for own in prompts]
    # An unknown answer is assumed to reach the model's limit, as in the scheduler.
    decode = [
        max(1, min(length or engine.max_model_len, engine.max_model_len - len(own)))
        for own, length in zip(prompts, expected, strict=True)
    ]
    order = await asyncio.to_thread(start_order, prompts, decode, engine.rules, method)
    entries = enumerate(zip(requests, expected, order, strict=True))
    jobs = [
        (position, i, (r, body_with_hints(r, length, position)))
        for i, (r, length, position) in entries
    ]
    return [job for _, _, job in sorted(jobs, key=lambda entry: entry[:2])]


def _assemble(batch: BatchFile, journal: Journal, output: Path) -> None:
    """Write the output in the input's order, atomically."""
    order = (request.custom_id for request in batch.requests)
    with atomic_path(output) as unfinished, open(unfinished, "wb") as file:
        for line in journal.output_lines(order):
            file.write(line)
        file.flush()
        os.fsync(file.fileno())
    # The journal may be removed only when the output would survive a power failure.
    sync_folder(Path(os.path.realpath(output)))
