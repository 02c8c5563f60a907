"""Parquet is read like the rest, where its package is there."""

from __future__ import annotations

import datetime
import gzip
import sys

import numpy as np
import pytest

from sortedf.errors import MissingExtraError, TraceError
from sortedf.traces import Trace, read_trace, write_trace
from tests.sortedf.traces.files import OWN, put

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

MIDNIGHT = datetime.datetime(2024, 5, 10)


def written(folder, **columns):
    path = folder / "trace.dat"
    parquet.write_table(pa.table(columns), path)
    return path


def refusal(path) -> str:
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    assert "\n" not in str(caught.value)
    return str(caught.value).replace(f"{path}", path.name)


@pytest.mark.parametrize(
    ("names", "times", "source"),
    [
        (("arrival_s", "prefill_tokens", "decode_tokens"), [1.0, 3.5], "sortedf"),
        (("Timestamp", "Request tokens", "Response tokens"), [1.0, 3.5], "BurstGPT"),
        (("arrived_at", "num_prefill_tokens", "num_decode_tokens"), [1, 3.5], "Vidur"),
        (("timestamp", "input_length", "output_length"), [1000, 3500], "Mooncake"),
        (
            ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
            [
                datetime.datetime(2024, 5, 10, 0, 0, s, us)
                for s, us in ((0, 0), (2, 500_000))
            ],
            "Azure",
        ),
        (
            ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
            ["2024-05-10 00:00:00", "2024-05-10 00:00:02.5"],
            "Azure",
        ),
    ],
)
def test_tables_are_recognised_by_their_columns(tmp_path, names, times, source):
    """The same formats as in CSV, with times as numbers, texts or timestamps."""
    values = (times, [10, 20], pa.array([3, 4], pa.uint16()))
    trace = read_trace(written(tmp_path, **dict(zip(names, values, strict=True))))
    assert (trace.source, trace.row.tolist()) == (source, [1, 2])
    assert (trace.prefill.tolist(), trace.decode.tolist()) == ([10, 20], [3, 4])
    assert trace.arrival_s.tolist() == [0, 2.5]


def test_a_packed_table_is_read(tmp_path):
    """Parquet within gzip makes little sense, but is unpacked all the same."""
    path = written(tmp_path, prefill_tokens=[1], decode_tokens=[2.0], other=["x"])
    trace = read_trace(put(tmp_path, gzip.compress(path.read_bytes())))
    assert (trace.prefill.tolist(), trace.decode.tolist()) == ([1], [2])


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([1, 0], "0"),
        ([1, None], "null"),
        ([1.0, float("nan")], "NaN"),
        ([1.0, 5.5], "5.5"),
        ([1.0, 1e30], "1e+30"),
        ([5, -1], "-1"),
        ([2**40, 2**41], "1099511627776"),
    ],
)
def test_a_length_that_is_none_is_named_with_row_and_column(tmp_path, values, shown):
    """Rows of a table are counted from 1."""
    message = refusal(written(tmp_path, prefill_tokens=[1, 1], decode_tokens=values))
    row = 1 if shown == "1099511627776" else 2
    assert f"trace.dat: row {row}: decode_tokens = {shown} but must be an" in message


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["x", "y"], "string"), ([True, False], "bool"), ([[1], [2]], "list<")],
)
def test_columns_of_no_numbers_are_refused_unread(tmp_path, values, kind):
    message = refusal(written(tmp_path, prefill_tokens=[1, 1], decode_tokens=values))
    assert f"the column decode_tokens holds {kind}" in message
    assert message.endswith("but must hold numbers.")


def repeated(value, rows):
    """One value in each of many rows, stored once."""
    return pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(rows, np.int8)), pa.array([value])
    )


def written_plain(folder, **columns):
    """As `made`, with columns of plain values for any reader."""
    path = folder / "trace.dat"
    parquet.write_table(pa.table(columns), path, store_schema=False)
    return path


def test_few_bytes_that_fill_memory_are_refused(tmp_path):
    """1,500 bytes filled 4 GiB: one text, or one number, in each of very many rows."""
    ones = repeated(1, 20_000_000)
    path = written_plain(tmp_path, prefill_tokens=ones, decode_tokens=ones)
    assert path.stat().st_size < 200_000
    assert "its 20,000,000 rows unpack to more than 100 times" in refusal(path)
    text = "2024-05-10 00:00:00" + "0" * 2**25
    table = pa.table(
        {"TIMESTAMP": [text], "ContextTokens": [1], "GeneratedTokens": [1]}
    )
    parquet.write_table(table, path, compression="zstd", write_statistics=False)
    assert "unpack to more than 100 times its size" in refusal(path)


def test_a_long_text_in_many_rows_is_held_once(tmp_path):
    rows = 9_000
    times = repeated("2024-05-10 00:00:00" + "0" * 2**20, rows)
    ones = np.ones(rows, np.int64)
    columns = {"TIMESTAMP": times, "ContextTokens": ones, "GeneratedTokens": ones}
    path = written_plain(tmp_path, **columns)
    assert 'row 1: TIMESTAMP = "2024-05-10 00:00:000' in refusal(path)


def test_a_date_where_a_number_is_due_is_refused(tmp_path):
    """Our own arrivals are seconds."""
    path = written(
        tmp_path, prefill_tokens=[1], decode_tokens=[1], arrival_s=[MIDNIGHT]
    )
    assert "row 1: arrival_s = 2024-05-10T00:00:00" in refusal(path)


def test_unknown_and_missing_content_is_refused(tmp_path):
    """Other columns, and no rows."""
    assert "the table has a, which is no known format" in refusal(
        written(tmp_path, a=[1])
    )
    none = pa.array([], pa.int64())
    path = written(tmp_path, prefill_tokens=none, decode_tokens=none, arrival_s=none)
    assert refusal(path) == "trace.dat has a header but no requests."


def test_a_broken_table_is_refused(tmp_path):
    """Cut off at the end, or damaged in the middle."""
    whole = written(tmp_path, prefill_tokens=[1] * 99, decode_tokens=range(1, 100))
    content = whole.read_bytes()
    assert "broken Parquet: " in refusal(put(tmp_path, content[:-20]))
    assert "broken Parquet: " in refusal(put(tmp_path, b"PAR1"))
    damaged = content[:4] + b"\xff" * 60 + content[64:]
    assert "broken Parquet: " in refusal(put(tmp_path, damaged))


def test_a_missing_package_names_its_extra(tmp_path, monkeypatch):
    """For reading and writing, and for Parquet only."""
    path = written(tmp_path, prefill_tokens=[1], decode_tokens=[2])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    hint = r"Parquet needs the package pyarrow: pip install 'sortedf\[parquet\]'"
    with pytest.raises(MissingExtraError, match=hint):
        read_trace(path)
    trace = Trace(np.array([1]), np.array([2]))
    with pytest.raises(MissingExtraError, match=hint):
        write_trace(trace, tmp_path / "out.parquet")
    assert not list(tmp_path.glob("*out*"))
    assert not list(tmp_path.glob(".tmp*"))
    assert read_trace(put(tmp_path, OWN + "0,1,2\n")).num_requests == 1
