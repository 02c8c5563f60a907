"""A batch file from its reading to its complete output, in as many runs as it takes."""

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
    from online.rules import StepRules


logger = logging.getLogger("sortedf")


class BatchServer(Serving, Protocol):
    """What a batch needs of an engine, beside answers."""

    rules: StepRules
    max_model_len: int
    counts: dict[str, int]

    async def num_prompt_tokens(self, request: BatchRequest) -> int:
        """Count a prompt's tokens; 0 if the request will be refused."""
        ...


Serve: TypeAlias = Callable[
    ["EngineSettings", "Mapping[str, Any]"], AbstractAsyncContextManager[Any]
]
"""Starts an engine with options for its scheduler."""

Report: TypeAlias = Callable[[int, int, int], None]
"""Called as `report(done, failed, total)`."""


@dataclass(frozen=True, slots=True)
class BatchJob:
    """What is asked for.

    Attributes
    ----------
    input, output : Path
    settings : EngineSettings
    method : BatchMethod
    lengths : Path, optional
        File of expected answer lengths.
    ranking : RankerUse, optional
        By which requests get a score, and a length where nothing better is known.
    """

    input: Path
    output: Path
    settings: EngineSettings
    method: BatchMethod
    lengths: Path | None = None
    ranking: RankerUse | None = None

    def header(self, batch: BatchFile) -> Header:
        """Return what the journal is to say of this."""
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
    """What became of a batch.

    Attributes
    ----------
    requests, completed, failed : int
        Requests of the file; how many were answered, and how many got an error.
    resumed : int
        How many of them were done before this run began.
    seconds : float
        How long this run took, with the engine's start.
    mean_completion_s, makespan_s : float, optional
        Of the requests of this run, since all were sent.
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
        """Take in what a run measured."""
        self.mean_completion_s = clock.mean_s
        self.makespan_s = max(clock.done_s, default=None)
        self.preemptions = preemptions

    def note_end(self, failed: int) -> None:
        """Take in the output."""
        self.failed = failed
        self.completed = self.requests - failed
        self.seconds = time.perf_counter() - self.began


def run_job(job: BatchJob, serve: Serve, report: Report) -> BatchSummary:
    """Answer all requests that are not answered yet, and write the output.

    Raises
    ------
    BatchFileError, JournalError, OutputError, ValueError
        If something is wrong with what was asked for; nothing has been written.
    UnfinishedError
        If the run ended early; the same command goes on.
    """
    batch = read_batch(job.input)
    told = {} if job.lengths is None else read_lengths(job.lengths)
    _refuse_output(job)
    header = job.header(batch)
    journal = Journal(job.output, header)
    try:
        journal.refuse_others(request.custom_id for request in batch.requests)
        if journal.settings != header.settings:
            logger.warning("%s was begun with other settings.", journal.path)
        summary = BatchSummary(len(batch.requests), len(journal.entries))
        with _kept(journal, summary.requests):
            left = refuse_unsupported(batch.requests, journal)
            if left:
                _run(job, left, told, serve, journal, summary, report)
            _assemble(batch, journal, job.output)
        summary.note_end(journal.num_failed)
        journal.close(remove=True)
        return summary
    finally:
        # A journal that holds nothing is of no use to anybody.
        journal.close(remove=not journal.entries)


def _refuse_output(job: BatchJob) -> None:
    """Refuse now what would fail after long work."""
    output = job.output
    refuse_unwritable(output)
    if output.exists() and not output.is_file():
        raise BatchFileError(f"{output} is no regular file; a journal lies beside it.")
    if output.exists() and output.samefile(job.input):
        raise BatchFileError(f"{output} is the input file; choose another output.")


@contextmanager
def _kept(journal: Journal, total: int) -> Iterator[None]:
    """Turn what ends a run early into an error that says how to go on."""

    def unfinished(what: str) -> UnfinishedError:
        done = len(journal.entries)
        if not done:
            return UnfinishedError(f"{what}; no request was done.")
        return UnfinishedError(
            f"{what}; {done:,} of {total:,} requests are done and kept in "
            f"{journal.path}: run the same command again to go on."
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
    told: Mapping[str, int],
    serve: Serve,
    journal: Journal,
    summary: BatchSummary,
    report: Report,
) -> None:
    """Start an engine and let the requests run in it."""

    def update_hint() -> None:
        report(len(journal.entries), journal.num_failed, summary.requests)

    async def run() -> None:
        _end_on_terminate()
        async with serve(job.settings, job.method.scheduler) as engine:
            jobs = await _jobs(requests, told, engine, job)
            update_hint()
            clock = await run_all(jobs, engine, journal, update_hint)
            summary.note_run(clock, engine.counts["preemptions"])

    asyncio.run(run())


def _end_on_terminate() -> None:
    """Let SIGTERM end the run as Ctrl-C does."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(ValueError, RuntimeError, NotImplementedError):  # no main thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


async def _jobs(
    requests: list[BatchRequest],
    told: Mapping[str, int],
    engine: BatchServer,
    job: BatchJob,
) -> list[Job]:
    """Give each request its hints; with an offline method solve for the order."""
    ranked: Mapping[str, Ranked] = {}
    if job.ranking is not None:
        # Not before the engine runs: vLLM may fork, which threads do not survive.
        ranked = await asyncio.to_thread(rank, requests, job.ranking)
    expected = [expected_tokens(r, told, ranked.get(r.custom_id)) for r in requests]
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
    """Solve for the order, and put the requests into it."""
    prefill = [await engine.num_prompt_tokens(request) for request in requests]
    prefill = [s if s < engine.max_model_len else 0 for s in prefill]
    # Who says nothing may go on to the model's end; the scheduler reckons so, too.
    decode = [
        max(1, min(length or engine.max_model_len, engine.max_model_len - s))
        for s, length in zip(prefill, expected, strict=True)
    ]
    place = await asyncio.to_thread(start_order, prefill, decode, engine.rules, method)
    entries = enumerate(zip(requests, expected, place, strict=True))
    jobs = [
        (place, i, (r, body_with_hints(r, length, place)))
        for i, (r, length, place) in entries
    ]
    return [job for _, _, job in sorted(jobs, key=lambda entry: entry[:2])]


def _assemble(batch: BatchFile, journal: Journal, output: Path) -> None:
    """Write the output in the input's order, whole or not at all."""
    order = (request.custom_id for request in batch.requests)
    with atomic_path(output) as unfinished, open(unfinished, "wb") as file:
        for line in journal.output_lines(order):
            file.write(line)
        file.flush()
        os.fsync(file.fileno())
    # The journal may go only when the output would survive a loss of power.
    sync_folder(Path(os.path.realpath(output)))
