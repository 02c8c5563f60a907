"""Parquet files. The only module that imports `pyarrow`."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.bounded_file import FREE_BYTES, MOST_TIMES, most_unpacked
from sortedf.errors import MissingExtraError, TraceError
from sortedf.shown import shown
from sortedf.traces.columns import numbers_in_objects
from sortedf.traces.format import match_columns
from sortedf.traces.source import CHUNK_ROWS, Chunk, Source

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from sortedf.traces.columns import Column

PARQUET_MAGIC = b"PAR1"

WIDTH = 8
"""Bytes that a number or a time takes."""


def parquet_source(
    file: io.BufferedReader[Any], path: str, given: Mapping[str, str]
) -> Source:
    """Read a Parquet file, with names of columns by role; see `match_columns`.

    Raises
    ------
    TraceError
        If it is broken, or of no known format.
    MissingExtraError
        If the package `pyarrow` is missing.
    """
    pa, parquet = _pyarrow(path)
    # The footer is read first, and gzip files and pipes cannot seek backwards.
    data = file if _is_plain_file(file) else io.BytesIO(file.read())
    try:
        table = parquet.ParquetFile(data)
        names = table.schema_arrow.names
    except (pa.ArrowException, OSError) as error:
        raise _broken(path, error) from error
    match = match_columns(names, f"{path}: the table", given)
    wanted = [names[match.prefill], names[match.decode]]
    if match.arrival is not None:
        wanted.append(names[match.arrival])
    ids = "" if match.ids is None else names[match.ids[0]]
    clock = wanted[2] if match.arrival is not None and match.format.clock else ""
    turns = match.turns and (names[match.turns[0]], names[match.turns[1]])
    _refuse_bomb(table, [*wanted, *(turns or ())], ids, clock, path, pa)
    if match.arrival is not None and _is_text(table, wanted[2], pa):
        # Each text once, however many rows have it.
        table = parquet.ParquetFile(data, read_dictionary=[wanted[2]])

    def chunks() -> Iterator[Chunk]:
        done = 0
        needed = [*wanted, *(turns or ()), *([ids] if ids else [])]
        try:
            for batch in table.iter_batches(CHUNK_ROWS, columns=needed):
                if batch.num_rows == 0:
                    continue
                columns = [_values(batch.column(name), pa) for name in wanted]
                row = np.arange(done + 1, done + batch.num_rows + 1)
                done += batch.num_rows
                arrival = None if match.arrival is None else columns[2]
                own = batch.column(ids).to_pylist() if ids else None
                both = turns and (
                    _values(batch.column(turns[0]), pa),
                    _values(batch.column(turns[1]), pa),
                )
                yield Chunk(row, columns[0], columns[1], arrival, own, both)
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
        prefix_ids=ids,
        tokens_per_id=0 if match.ids is None else match.ids[1],
        turns=turns,
        names=names,
    )


def write_parquet(
    path: str | os.PathLike[str], columns: Mapping[str, Sequence[Any] | NDArray[Any]]
) -> None:
    """Write columns of equal length to a Parquet file."""
    pa, parquet = _pyarrow(str(path))
    parquet.write_table(pa.table(dict(columns)), path)


def _refuse_bomb(
    table: Any, wanted: list[str], ids: str, clock: str, path: str, pa: Any
) -> None:
    """Refuse a file whose content would fill memory, by its metadata.

    A value repeated in very many rows is stored once, and a long text of one letter
    takes a few bytes.
    """
    for name in wanted:
        kind = table.schema_arrow.field(name).type
        text_time = name == clock and _is_text(table, name, pa)
        if not (_is_number(kind, pa) or _is_time(kind, pa) or text_time):
            raise TraceError(
                f"{path}: the column {shown(name)} holds {shown(str(kind))} but must "
                "hold numbers."
            )
    if ids and not _is_list(table.schema_arrow.field(ids).type, pa):
        kind = str(table.schema_arrow.field(ids).type)
        raise TraceError(
            f"{path}: the column {shown(ids)} holds {shown(kind)} but must hold lists "
            "of integers."
        )
    meta = table.metadata
    parts = [
        meta.row_group(group).column(column)
        for group in range(meta.num_row_groups)
        for column in range(meta.num_columns)
    ]
    packed = sum(part.total_compressed_size for part in parts)
    unpacked = sum(
        part.total_uncompressed_size for part in parts if part.path_in_schema in wanted
    )
    listed = sum(
        part.num_values
        for part in parts
        if ids and part.path_in_schema.split(".")[0] == ids
    )
    held = max(unpacked, (meta.num_rows * len(wanted) + listed) * WIDTH)
    if held > most_unpacked(packed):
        raise TraceError(
            f"{path} cannot be read: its {meta.num_rows:,} rows unpack to more than "
            f"{MOST_TIMES} times its size (and more than {FREE_BYTES >> 20} MiB)."
        )


def _is_text(table: Any, name: str, pa: Any) -> bool:
    kind = table.schema_arrow.field(name).type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: Any, pa: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_list(kind: Any, pa: Any) -> bool:
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return bool(listed and pa.types.is_integer(kind.value_type))


def _is_time(kind: Any, pa: Any) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _values(column: Any, pa: Any) -> Column:
    """Values as an array if they are numbers or times, else as Python objects."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        texts = column.dictionary.to_pylist()
        return [None if i is None else texts[i] for i in column.indices.to_pylist()]
    if column.null_count == 0:
        if _is_time(kind, pa):
            values: NDArray[Any] = column.cast(pa.timestamp("ns")).to_numpy(False)
            return values
        if _is_number(kind, pa):
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
