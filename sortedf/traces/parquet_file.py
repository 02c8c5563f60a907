"""Reading and writing Parquet. The only place that imports `pyarrow`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.errors import MissingExtraError, TraceError
from sortedf.traces.columns import numbers_in_objects
from sortedf.traces.formats import match_columns
from sortedf.traces.source import CHUNK_ROWS, Chunk, Source

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from sortedf.traces.columns import Column

PARQUET_MAGIC = b"PAR1"


def parquet_source(file: io.BufferedReader[Any], path: str) -> Source:
    """Read a Parquet file.

    Raises
    ------
    TraceError
        If it is broken, or of no known format.
    MissingExtraError
        If the package `pyarrow` is missing.
    """
    pa, parquet = _pyarrow(path)
    # The footer is read first, and neither gzip nor a pipe can be read backwards.
    data = file if _is_plain_file(file) else io.BytesIO(file.read())
    try:
        table = parquet.ParquetFile(data)
        names = table.schema_arrow.names
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error
    match = match_columns(names, f"{path}: the table")
    wanted = [names[match.prefill], names[match.decode]]
    if match.arrival is not None:
        wanted.append(names[match.arrival])

    def chunks() -> Iterator[Chunk]:
        done = 0
        try:
            for batch in table.iter_batches(CHUNK_ROWS, columns=wanted):
                if batch.num_rows == 0:
                    continue
                columns = [_values(batch.column(name), pa) for name in wanted]
                row = np.arange(done + 1, done + batch.num_rows + 1)
                done += batch.num_rows
                arrival = None if match.arrival is None else columns[2]
                yield Chunk(row, columns[0], columns[1], arrival)
        except (pa.ArrowException, OSError) as error:
            raise _broken(path, error) from error

    return Source(
        path,
        match.format,
        "row",
        prefill=wanted[0],
        decode=wanted[1],
        arrival="" if match.arrival is None else wanted[2],
        parse=numbers_in_objects,
        chunks=chunks(),
    )


def write_parquet(
    path: str | os.PathLike[str], columns: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays of equal length as the columns of a Parquet file."""
    pa, parquet = _pyarrow(str(path))
    parquet.write_table(pa.table(dict(columns)), path)


def _values(column: Any, pa: Any) -> Column:
    """Values as an array if they are numbers or times, else as Python objects."""
    kind = column.type
    if column.null_count == 0:
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            values: NDArray[Any] = column.cast(pa.timestamp("ns")).to_numpy(False)
            return values
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
            return numbers
    objects: list[Any] = column.to_pylist()
    return objects


def _is_plain_file(file: io.BufferedReader[Any]) -> bool:
    return isinstance(file.raw, io.FileIO) and file.seekable()


def _broken(path: str, error: Exception) -> TraceError:
    reason = str(error).strip().splitlines()[0].rstrip(".")
    return TraceError(f"{path}: broken Parquet: {reason}.")


def _pyarrow(path: str) -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError(
            f"{path}: Parquet needs the package pyarrow: pip install "
            "'sortedf[parquet]'."
        ) from None
    return pyarrow, pyarrow.parquet
