"""`sortedf run-batch`: answer a batch file in solver order, resumable."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sortedf.cli.common_options import SeedOption, TimeLimitOption
from sortedf.cli.engine_options import (
    BlockSizeOption,
    MaxBatchedTokensOption,
    MaxNumSeqsOption,
    parse_kv_budget,
)
from sortedf.cli.output import (
    JsonOption,
    note,
    print_json,
    print_table,
    standard_output_kept,
)
from sortedf.cli.problem import takes_problem
from sortedf.cli.progress import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from online.executor.batch.cached_prompts import CachedPrompts
    from online.executor.batch.engine_settings import EngineSettings
    from online.executor.batch.job import BatchSummary
    from online.executor.batch.ranked_requests import RankerUse

HELP = "Answer an OpenAI batch file with vLLM, in solver order; resumable."
EXAMPLE = (
    "Example: sortedf run-batch -i in.jsonl -o out.jsonl --model "
    "meta-llama/Llama-3.1-8B-Instruct --method svf"
)


@dataclass(frozen=True, slots=True)
class BatchEngine:
    """The engine of a batch; each field is an option."""

    model: Annotated[
        str, typer.Option(help="Folder or hub name, also used in the requests.")
    ]
    kv_budget: Annotated[
        str | None,
        typer.Option(
            help="KV cache in tokens, in whole blocks; default: what memory allows.",
            metavar="M",
        ),
    ] = None
    block_size: BlockSizeOption = None
    max_num_seqs: MaxNumSeqsOption = None
    max_batched_tokens: MaxBatchedTokensOption = None
    max_model_len: Annotated[
        int | None, typer.Option(help="Longest prompt and answer together.", min=1)
    ] = None
    served_model_name: Annotated[
        str | None, typer.Option(help="Name of the model in the requests.")
    ] = None
    engine_arg: Annotated[
        list[str] | None,
        typer.Option(
            help="Any other argument of vLLM's engine; the value as JSON. Repeatable.",
            metavar="NAME=VALUE",
        ),
    ] = None

    def settings(self) -> EngineSettings:
        """Return the engine's settings."""
        from online.executor.batch.engine_settings import EngineSettings, read_arguments

        budget = None if self.kv_budget is None else parse_kv_budget(self.kv_budget)
        return EngineSettings(
            self.model,
            budget,
            self.block_size,
            self.max_num_seqs,
            self.max_batched_tokens,
            self.max_model_len,
            self.served_model_name,
            read_arguments(self.engine_arg or ()),
        )


@takes_problem
def command(
    engine: BatchEngine,
    input: Annotated[Path, typer.Option("-i", "--input-file", help="Batch to read.")],
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output-file",
            help="Answers to write, in the input's order; a journal beside it exists "
            "until all are complete.",
        ),
    ],
    method: Annotated[
        str,
        typer.Option(help="A policy, as for simulate, or a method, as for solve."),
    ] = "svf",
    lengths: Annotated[
        Path | None,
        typer.Option(
            help="Expected answer lengths, CSV or JSON lines with custom_id and "
            "tokens; default: each request's max_tokens."
        ),
    ] = None,
    ranker: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a trained ranker (sortedf rank train): scores for pars, "
            "and lengths of requests not in --lengths."
        ),
    ] = None,
    ranker_quantile: Annotated[
        float, typer.Option(help="Quantile of the length to use for a score.")
    ] = 0.5,
    ranker_device: Annotated[
        str, typer.Option(help="Device of the ranker: cpu, cuda, cuda:1, ...")
    ] = "cpu",
    backfill: Annotated[
        int | None,
        typer.Option(
            help="Requests that do not fit and may be passed over in a step.", min=0
        ),
    ] = None,
    max_wait: Annotated[
        float | None,
        typer.Option(help="Seconds after which a request is served first.", min=0),
    ] = None,
    time_limit: TimeLimitOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Answer the requests, or resume, and print a summary."""
    from online.executor.batch.batch_method import read_method
    from online.executor.batch.job import BatchJob, run_job
    from online.executor.batch.serving import serve

    chosen = read_method(
        method, backfill=backfill, max_wait_s=max_wait, time_limit=time_limit, seed=seed
    )
    ranking = _ranking(ranker, ranker_quantile, ranker_device)
    job = BatchJob(input, output, engine.settings(), chosen, lengths, ranking)
    with standard_output_kept(), _progress() as report:
        summary = run_job(job, serve, report, _say_expected)
    if as_json:
        print_json(_content(summary, method, output))
    else:
        _print(summary, method, output)
    if summary.requests and not summary.completed:
        raise typer.Exit(1)


def _ranking(ranker: Path | None, quantile: float, device: str) -> RankerUse | None:
    """Load the ranker before the engine, so that a wrong folder fails early."""
    if ranker is None:
        return None
    from online.executor.batch.ranked_requests import RankerUse
    from online.ranking import load_ranker

    return RankerUse(load_ranker(ranker, device), quantile)


@contextmanager
def _progress() -> Iterator[Callable[[int, int, int], None]]:
    """Show requests done: a bar on a terminal, lines in a log."""
    began: list[float] = []

    def report(done: int, failed: int, total: int) -> None:
        if not began:
            began.append(time.perf_counter())
            if done:
                note(f"{done:,} of {total:,} requests are already done.")
        if sys.stderr.isatty():
            show.report(done, total)
            return
        seconds = time.perf_counter() - began[0]
        errors = f", {failed:,} with an error" if failed else ""
        show.note(f"{done:,} of {total:,} requests done{errors}, {seconds:.0f} s")

    with shown("requests") as show:
        yield report


def _say_expected(expected: CachedPrompts) -> None:
    note(f"Expected from shared prefixes: {_found(expected)}.")


def _found(prompts: CachedPrompts) -> str:
    return (
        f"{prompts.cached:,} of {prompts.total:,} prompt tokens in the cache "
        f"({prompts.share:.1%})"
    )


def _content(summary: BatchSummary, method: str, output: Path) -> dict[str, Any]:
    content = asdict(summary)
    del content["began"]
    for name in ("expected_cached", "cached"):
        found = getattr(summary, name)
        content[name] = None if found is None else found.content()
    return {**content, "method": method, "path": str(output)}


def _print(summary: BatchSummary, method: str, output: Path) -> None:
    rows = [
        ("completed", f"{summary.completed:,} of {summary.requests:,} requests"),
        ("failed", f"{summary.failed:,}"),
        ("done before", f"{summary.resumed:,}"),
        ("seconds", f"{summary.seconds:.1f}"),
    ]
    if summary.mean_completion_s is not None:
        rows.append(("mean completion", f"{summary.mean_completion_s:.2f} s"))
        rows.append(("makespan", f"{summary.makespan_s:.2f} s"))
    if summary.preemptions is not None:
        rows.append(("preemptions", f"{summary.preemptions:,}"))
    if summary.expected_cached is not None:
        rows.append(("expected", _found(summary.expected_cached)))
    if summary.cached is not None:
        rows.append(("found", _found(summary.cached)))
    print_table(str(output), (method, ""), rows)
