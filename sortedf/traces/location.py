"""Location of a value in a file, for error messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from sortedf.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Location:
    """A column of a file, or a chunk of one.

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
        Meaning of a value of 0, for the error message.
    """

    path: str
    unit: str
    column: str
    row: Sequence[int] | NDArray[np.int64]
    zero_note: str = ""

    def refuse(self, i: int, value: str, rule: str) -> NoReturn:
        """Raise `TraceError` about the `i`-th value; `rule` states the allowed ones."""
        note = f" ({self.zero_note})" if self.zero_note and value == "0" else ""
        raise TraceError(
            f"{self.path}: {self.unit} {self.row[i]}: {self.column} = {value} but must "
            f"be {rule}{note}."
        )
