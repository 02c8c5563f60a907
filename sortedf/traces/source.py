"""Source of a trace: a file of known format, read in chunks of raw columns."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sortedf.traces.location import Location
from sortedf.traces.prefix_ids import ids_in_objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from sortedf.traces.columns import Column, Parse
    from sortedf.traces.format import Format
    from sortedf.traces.prefix_ids import ParseIds

    Rows = Sequence[int] | NDArray[np.int64]

CHUNK_ROWS = 10_000
"""Rows held as Python objects at a time."""

T = TypeVar("T")


class Chunk(NamedTuple):
    """Consecutive rows of a file, by column, not yet converted."""

    row: Rows
    prefill: Column
    decode: Column
    arrival: Column | None
    prefix_ids: Sequence[Any] | None = None
    turns: tuple[Column, Column] | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """A file whose format is known, to be read once.

    Attributes
    ----------
    path : str
    format : Format
    unit : str
        What row numbers count: "line", "row" or "item".
    prefill, decode, arrival : str
        Names of the columns as the file has them.
    parse : callable
        Converts a raw column to numbers; depends on the type of file.
    chunks : iterator of Chunk
    prefix_ids : str
        Name of the column of ids, "" if the file has none.
    tokens_per_id : int
    names : sequence of str
        Names of all columns.
    parse_ids : callable
        Converts a raw column of ids to arrays.
    turns : tuple of str, optional
        Names of the two columns of sessions.
    """

    path: str
    format: Format
    unit: str
    prefill: str
    decode: str
    arrival: str
    parse: Parse
    chunks: Iterator[Chunk]
    prefix_ids: str = ""
    tokens_per_id: int = 0
    names: Sequence[str] = ()
    parse_ids: ParseIds = ids_in_objects
    turns: tuple[str, str] | None = None

    @property
    def columns(self) -> dict[str, str]:
        """Names of the columns in use, by role."""
        used = {"prefill": self.prefill, "decode": self.decode}
        return {**used, "arrival": self.arrival} if self.arrival else used

    def location(self, column: str, row: Rows) -> Location:
        """Location of the values of `column`, for messages."""
        return Location(self.path, self.unit, column, row, self.format.zero_note)


def in_chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield `items` in lists of `CHUNK_ROWS`, the last one shorter."""
    rest = iter(items)
    while chunk := list(islice(rest, CHUNK_ROWS)):
        yield chunk
