"""Expected answer lengths: from the request, a file, a ranker or a limit."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING, Any, TypeGuard

from online.executor.batch.batch_errors import BatchFileError
from online.executor.hints import PREDICTED_KEY, SCORE_KEY
from online.requests import UNKNOWN
from sortedf.json_values import json_lines, read_text
from sortedf.shown import shown_repr

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from os import PathLike

    from online.executor.batch.batch_file import BatchRequest
    from online.executor.batch.ranked_requests import Ranked

COLUMNS = ("custom_id", "tokens")


def read_lengths(path: str | PathLike[str]) -> dict[str, int]:
    """Read expected answer lengths by `custom_id`.

    Parameters
    ----------
    path : path
        JSON lines, or a CSV file with a header; in both `custom_id` and `tokens`.

    Raises
    ------
    BatchFileError
        With file and line.
    """
    text = read_text(path, BatchFileError)
    if text.lstrip().startswith("{"):
        rows = json_lines(text.split("\n"), path, BatchFileError)
    else:
        rows = _csv_rows(text, path)
    lengths: dict[str, int] = {}
    for number, row in rows:
        where = f"{path}: line {number}"
        for name in COLUMNS:
            if row.get(name) is None:
                raise BatchFileError(f"{where}: the field {name!r} is missing.")
        custom_id = str(row["custom_id"])
        if custom_id in lengths:
            raise BatchFileError(
                f"{where}: custom_id {shown_repr(custom_id)} occurs twice."
            )
        lengths[custom_id] = _tokens(row["tokens"], where)
    return lengths


def _csv_rows(
    text: str, path: str | PathLike[str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        reader = csv.DictReader(io.StringIO(text))
        if not set(COLUMNS) <= set(reader.fieldnames or ()):
            raise BatchFileError(
                f"{path}: the first line must name the columns custom_id and tokens."
            )
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise BatchFileError(
            f"{path} is neither JSON lines nor CSV: {error}."
        ) from None


def _tokens(value: object, where: str) -> int:
    try:
        tokens = math.nan if isinstance(value, bool) else float(str(value))
    except ValueError:
        tokens = math.nan
    if not (math.isfinite(tokens) and tokens > 0):
        raise BatchFileError(
            f"{where}: tokens = {shown_repr(value)} but must be above 0."
        )
    return math.ceil(tokens)


def expected_tokens(
    request: BatchRequest, from_file: Mapping[str, int], ranked: Ranked | None = None
) -> int | None:
    """Return the expected answer length; None if unknown.

    In order of priority: the request's own hint, the length file, the ranker's length
    limited by the request's token limit, and that limit itself.
    """
    body = request.body
    limits = (body.get("max_completion_tokens"), body.get("max_tokens"))
    limit = next((value for value in limits if _is_length(value)), None)
    by_rank = None if ranked is None else min(ranked.tokens, limit or ranked.tokens)
    candidates = (
        _arguments(request).get(PREDICTED_KEY),
        from_file.get(request.custom_id),
        by_rank,
        limit,
    )
    found = next((value for value in candidates if _is_length(value)), None)
    return None if found is None else math.ceil(min(found, UNKNOWN))


def _is_length(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 1 and (isinstance(value, int) or math.isfinite(value))


def _arguments(request: BatchRequest) -> dict[str, Any]:
    found = request.body.get("vllm_xargs")
    return found if isinstance(found, dict) else {}


def body_with_hints(
    request: BatchRequest, expected: int | None, score: float | None
) -> dict[str, Any]:
    """Return the request's body with hints for the scheduler; existing ones are kept.

    Parameters
    ----------
    expected : int, optional
        Expected length of the answer.
    score : float, optional
        Position in the order, lower first.
    """
    if request.body.get("vllm_xargs") is not None and not _arguments(request):
        return request.body  # not an object: the engine's API refuses it
    hints: dict[str, Any] = {}
    if expected is not None:
        hints[PREDICTED_KEY] = expected
    if score is not None:
        hints[SCORE_KEY] = score
    hints |= _arguments(request)
    return {**request.body, "vllm_xargs": hints} if hints else request.body
