"""Learned ranks from a file, one for each request of a trace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from online.requests import UNKNOWN
from sortedf.errors import TraceError
from sortedf.json_values import read_lines
from sortedf.shown import shown_json

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """Ranks of requests, in the order of their trace.

    Attributes
    ----------
    score : float64 array, shape (n,)
        Lower first.
    length : int64 array, shape (n,), optional
        Predicted lengths that belong to them, in tokens.
    """

    score: Floats
    length: Ints | None


def read_scores(path: str | PathLike[str], num_requests: int) -> Scores:
    """Read JSON lines with `score`, and `length` in all of them or in none.

    `sortedf rank score -o` writes such a file.

    Raises
    ------
    TraceError
        If a line is invalid, with file and line, or if the number of lines differs from
        that of requests.
    """
    scores: list[float] = []
    lengths: list[int] = []
    for number, row in read_lines(path, TraceError):
        where = f"{path}: line {number}"
        scores.append(_number(row, "score", where))
        if "length" in row:
            tokens = _number(row, "length", where, least=1)
            lengths.append(math.ceil(min(tokens, UNKNOWN)))
        if len(lengths) not in (0, len(scores)):
            raise TraceError(f"{where}: length must be in every line or in none.")
    if len(scores) != num_requests:
        raise TraceError(
            f"{path} has {len(scores):,} scores but the trace {num_requests:,} "
            "requests; there must be one for each, in the same order."
        )
    length = np.array(lengths, dtype=np.int64) if lengths else None
    return Scores(np.array(scores, dtype=np.float64), length)


def _number(
    row: dict[str, Any], name: str, where: str, least: float = -math.inf
) -> float:
    if name not in row:
        raise TraceError(f"{where}: the field {name!r} is missing.")
    value = row[name]
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and number >= least:
            return number
    allowed = "a number" if least == -math.inf else f"a number, {least:g} or more"
    raise TraceError(f"{where}: {name} = {shown_json(value)} but must be {allowed}.")
