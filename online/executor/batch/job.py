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
from online.executor.batch.cached_prompts import CachedPrompts, expected_cached
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
    from collections.abc import Iterator, Mapping, Sequence

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

Expect: TypeAlias = Callable[[CachedPrompts], None]
"""Called before the start with what the cache of prefixes is expected to save."""


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
    expected_cached, cached : CachedPrompts, optional
        Prompt tokens of this run that were expected in the cache of prefixes, and that
        the engine found there, if it has such a cache.
    """

    requests: int
    resumed: int
    completed: int = 0
    failed: int = 0
    seconds: float = 0.0
    mean_completion_s: float | None = None
    makespan_s: float | None = None
    preemptions: int | None = None
    expected_cached: CachedPrompts | None = None
    cached: CachedPrompts | None = None
    began: float = field(default_factory=time.perf_counter, repr=False)

    def note_run(self, clock: Clock, counts: Mapping[str, int]) -> None:
        """Record the measurements of a run."""
        self.mean_completion_s = clock.mean_s
        self.makespan_s = max(clock.done_s, default=None)
        self.preemptions = counts["preemptions"]
        if self.expected_cached is not None:
            self.cached = CachedPrompts(
                counts["cached_tokens"], counts["prompt_tokens"]
            )

    def note_end(self, failed: int) -> None:
        """Record the number of errors and the duration."""
        self.failed = failed
        self.completed = self.requests - failed
        self.seconds = time.perf_counter() - self.began


def run_job(
    job: BatchJob, serve: Serve, report: Report, expect: Expect | None = None
) -> BatchSummary:
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
                _run(job, left, lengths, serve, journal, summary, report, expect)
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
    expect: Expect | None,
) -> None:
    """Start an engine and run the requests in it."""

    def report_progress() -> None:
        report(len(journal.entries), journal.num_failed, summary.requests)

    async def run() -> None:
        _end_on_terminate()
        async with serve(job.settings, job.method.scheduler) as engine:
            jobs, cached = await _jobs(requests, lengths, engine, job)
            if cached is not None:
                summary.expected_cached = cached
                if expect is not None:
                    expect(cached)
            report_progress()
            clock = await run_all(jobs, engine, journal, report_progress)
            summary.note_run(clock, engine.counts)

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
) -> tuple[list[Job], CachedPrompts | None]:
    """Add hints to each request; with an offline method solve for the order.

    Where the engine caches prefixes, also count what this is expected to save.
    """
    ranked: Mapping[str, Ranked] = {}
    if job.ranking is not None:
        # Only after the engine has started: vLLM may fork, which breaks threads.
        ranked = await asyncio.to_thread(rank, requests, job.ranking)
    expected = [expected_tokens(r, lengths, ranked.get(r.custom_id)) for r in requests]
    rank_of: Sequence[float | None] = [
        _score(ranked.get(r.custom_id)) for r in requests
    ]
    order: Sequence[int] = range(len(requests))
    cached = None
    if job.method.offline is not None or engine.rules.prefix_caching:
        prompts, decode = await _tokens(requests, expected, engine)
        if job.method.offline is not None:
            rank_of = position = await asyncio.to_thread(
                start_order, prompts, decode, engine.rules, job.method
            )
            order = sorted(order, key=position.__getitem__)
        if engine.rules.prefix_caching:
            cached = expected_cached(
                (
                    (prompts[i], decode[i])
                    for i in order
                    for _ in range(requests[i].num_answers)
                ),
                engine.rules,
            )
    jobs = [
        (requests[i], body_with_hints(requests[i], expected[i], rank_of[i]))
        for i in order
    ]
    return jobs, cached


def _score(ranked: Ranked | None) -> float | None:
    return None if ranked is None else ranked.score


async def _tokens(
    requests: list[BatchRequest], expected: list[int | None], engine: BatchServer
) -> tuple[list[list[int]], list[int]]:
    """Return prompts, none if too long, and expected answer lengths."""
    prompts = [await engine.prompt_tokens(request) for request in requests]
    prompts = [own if len(own) < engine.max_model_len else [] for own in prompts]
    # An unknown answer is assumed to reach the model's limit, as in the scheduler.
    decode = [
        max(1, min(length or engine.max_model_len, engine.max_model_len - len(own)))
        for own, length in zip(prompts, expected, strict=True)
    ]
    return prompts, decode


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
