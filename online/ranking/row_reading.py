"""Reading of prompts and answer lengths from files of several formats."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from online.ranking.ranking_error import RankingError
from online.ranking.record_formats import (
    BY_RECORD,
    NoLength,
    batch_prompts,
    batch_row,
    benchmark_rows,
    format_of,
)
from online.ranking.records import Record, read_records
from online.ranking.rows import Row, Rows
from sortedf.json_values import read_text
from sortedf.traces.token_counts import token_counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sortedf.traces.format import Count

    Path = str | os.PathLike[str]


def read_rows(
    path: Path,
    *,
    prompts: Path | None = None,
    tokenizer: Count | Path | None = None,
) -> Rows:
    """Read prompts with the lengths of their answers; the format is recognised.

    Parameters
    ----------
    path : path
        JSON lines with `prompt` and `response_tokens` (or `response`, a text) and
        optionally `model` and `source`; or Alpaca JSON, ShareGPT JSON, the output of an
        OpenAI batch, or the detailed result of a vLLM benchmark. Plain or gzip.
    prompts : path, optional
        For the last two: the batch's input, or the benchmark's data set with a `prompt`
        in each line, in the order of the benchmark.
    tokenizer : callable or path, optional
        Counts the tokens of texts; see `token_counter`.

    Raises
    ------
    RankingError
        If a file or one of its rows is invalid; with file and line.
    """
    records = read_records(path)
    name = os.path.basename(os.fspath(path))
    if not records:
        raise RankingError(f"{path} is empty; rows of prompts are needed.")
    count = None if tokenizer is None else token_counter(tokenizer)
    kind = format_of(records[0])
    if kind in BY_RECORD:
        if prompts is not None:
            raise RankingError(f"{path} contains its prompts; leave out {prompts}.")
        return Rows(tuple(BY_RECORD[kind](record, count) for record in records), name)
    if prompts is None:
        what = "the batch's input file" if kind == "OpenAI batch" else "its data set"
        raise RankingError(
            f"{path} is of the format {kind} without prompts; give {what} as well."
        )
    asked = read_records(prompts)
    if kind == "OpenAI batch":
        return _batch_rows(records, asked, name)
    rows, failed = benchmark_rows(records[0], asked)
    return Rows(tuple(rows), name, failed)


def _batch_rows(records: Sequence[Record], asked: Sequence[Record], name: str) -> Rows:
    prompts = batch_prompts(asked)
    rows: list[Row] = []
    failed = 0
    for record in records:
        try:
            rows.append(batch_row(record, prompts))
        except NoLength:
            failed += 1
    return Rows(tuple(rows), name, failed)


def read_prompts(path: Path) -> list[str]:
    """Read prompts to score: JSON lines with `prompt`, or text with one per line.

    Raises
    ------
    RankingError
        If there are none, or one is empty; with file and line.
    """
    shown = os.fspath(path)
    if shown.removesuffix(".gz").endswith((".txt", ".text")):
        return _text_lines(shown)
    records = read_records(path)
    found = []
    for record in records:
        text = record.text("prompt")
        if not text.strip():
            raise RankingError(f"{record.where}: the prompt is empty.")
        found.append(text)
    if not found:
        raise RankingError(f"{path} is empty; prompts are needed.")
    return found


def _text_lines(path: str) -> list[str]:
    lines = read_text(path, RankingError).removesuffix("\n").split("\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise RankingError(f"{path}: line {number}: the prompt is empty.")
    return lines
