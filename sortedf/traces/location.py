"""Saying where in a file a value stands, and refusing it there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from sortedf.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

MAX_SHOWN = 40
"""Longer values are cut in messages."""


@dataclass(frozen=True, slots=True)
class Location:
    """A column of a file, or a stretch of one.

    Attributes
    ----------
    path : str
    unit : str
        What `row` counts: "line", "row" or "item".
    column : str
        The column's name as the file has it.
    row : sequence of int
        Number of each value's row, counted from 1.
    zero_note : str
        What a 0 means here, for its refusal.
    """

    path: str
    unit: str
    column: str
    row: Sequence[int] | NDArray[np.int64]
    zero_note: str = ""

    def refuse(self, i: int, value: str, rule: str) -> NoReturn:
        """Raise `TraceError` about the `i`-th value; `rule` says what is allowed."""
        note = f" ({self.zero_note})" if self.zero_note and value == "0" else ""
        raise TraceError(
            f"{self.path}: {self.unit} {self.row[i]}: {self.column} = {value} but must "
            f"be {rule}{note}."
        )


def shown(text: str) -> str:
    """`text` as a message can hold it: in one line, not too long, quoted if odd."""
    text = text.strip()
    plain = text.isprintable() and text
    text = text if plain else repr(text)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def shown_json(value: object) -> str:
    """`value` in JSON's own words, so that the string "5" and the number 5 differ."""
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        text = f"a very large {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
