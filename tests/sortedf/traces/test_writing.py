"""What is written reads back the same."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf.arrays import MAX_TOKENS
from sortedf.errors import OutputError, TraceError
from sortedf.traces import Trace, read_trace, write_trace
from sortedf.traces.prefix_ids import PrefixIds
from tests.strategies import examples

TRACE = Trace([3, 1], [2, 4], [0, 1.5])
NAMES = ["t.csv", "t.csv.gz", "t.jsonl", "t.jsonl.gz", "t.parquet", "t", "t.CSV"]

request = st.tuples(
    st.integers(1, MAX_TOKENS),
    st.integers(1, MAX_TOKENS),
    st.floats(0, 1e300, allow_subnormal=True),
)


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_file_reads_back_the_same(tmp_path_factory, name):
    """To the last bit of every arrival time."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path_factory.mktemp("round") / name

    @examples(25)
    @given(st.lists(request, min_size=1, max_size=8))
    def round_trip(requests):
        prefill, decode, arrival_s = map(list, zip(*requests, strict=True))
        written = Trace(prefill, decode, arrival_s)
        write_trace(written, path)
        back = read_trace(path)
        for field in ("prefill", "decode", "arrival_s"):
            assert np.array_equal(getattr(back, field), getattr(written, field))

    round_trip()


@pytest.mark.parametrize("name", NAMES)
def test_ids_of_shared_prefixes_read_back_the_same(tmp_path, name):
    """The column's name says how many tokens an id stands for."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    ids = PrefixIds.of_lists([[7, -8, 2**40], [], [7]], 512)
    write_trace(Trace([1500, 9, 512], [3, 2, 1], prefix_ids=ids), tmp_path / name)
    back = read_trace(tmp_path / name).prefix_ids
    assert back is not None
    assert (back.tokens_per_id, back.ids.tolist()) == (512, ids.ids.tolist())
    assert back.offset.tolist() == [0, 3, 3, 4]


def test_ids_in_csv_are_separated_by_spaces(tmp_path):
    """So that no quotes are needed."""
    ids = PrefixIds.of_lists([[7, 8], []], 16)
    write_trace(Trace([40, 9], [3, 2], prefix_ids=ids), tmp_path / "t.csv")
    lines = (tmp_path / "t.csv").read_text(encoding="utf-8").splitlines()
    assert lines == [
        "arrival_s,prefill_tokens,decode_tokens,hash_ids_16", "0,40,3,7 8", "0,9,2,",
    ]  # fmt: skip


@pytest.mark.parametrize("ids", ["7 x", "7;8", "1.5", "9" * 25, "99999999999999999999"])
def test_wrong_ids_in_csv_are_named(tmp_path, ids):
    """File, line, column and what is allowed."""
    path = tmp_path / "t.csv"
    path.write_text(
        f"prefill_tokens,decode_tokens,hash_ids_16\n40,3,1\n40,3,{ids}\n",
        encoding="utf-8",
    )
    with pytest.raises(TraceError, match=r"line 3: hash_ids_16 = .* must be integers"):
        read_trace(path)


def test_csv_is_plain(tmp_path):
    """The columns that the package calls its own."""
    write_trace(TRACE, tmp_path / "t.csv")
    content = (tmp_path / "t.csv").read_bytes()
    assert content == b"arrival_s,prefill_tokens,decode_tokens\n0,3,2\n1.5,1,4\n"


def test_the_format_can_be_named(tmp_path):
    """Then the suffix counts for gzip only."""
    write_trace(TRACE, tmp_path / "t.txt.gz", format="jsonl")
    content = gzip.decompress((tmp_path / "t.txt.gz").read_bytes())
    first = b'{"arrival_s": 0, "prefill_tokens": 3, "decode_tokens": 2}'
    assert content.splitlines()[0] == first


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    """Gzip would put name and time into the file."""
    write_trace(TRACE, tmp_path / "a.csv.gz")
    write_trace(TRACE, tmp_path / "b.csv.gz")
    a, b = ((tmp_path / name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert a == b
    assert a[4:8] == bytes(4)  # where the time would be


def test_unknown_kinds_are_refused(tmp_path):
    """With the choices, and without a file."""
    with pytest.raises(ValueError, match=r"unknown suffix '.xlsx'; choose one of"):
        write_trace(TRACE, tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="unknown format 'xml'; choose csv, jsonl or"):
        write_trace(TRACE, tmp_path / "t.csv", format="xml")
    with pytest.raises(ValueError, match="Parquet is already compressed"):
        write_trace(TRACE, tmp_path / "t.parquet.gz")
    assert not list(tmp_path.iterdir())


def test_a_missing_folder_is_refused(tmp_path):
    """Nothing is made up on the way."""
    with pytest.raises(OutputError, match=r"folder .*gone does not exist"):
        write_trace(TRACE, tmp_path / "gone" / "t.csv")
    assert not list(tmp_path.iterdir())


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    """A full disk, half-way."""

    def full(_trace):
        yield "half a line"
        raise OSError(28, "No space left on device")

    path = tmp_path / "t.csv"
    path.write_text("before")
    monkeypatch.setitem(write_trace.__globals__["_LINES"], "csv", full)
    with pytest.raises(OutputError, match=r"t.csv cannot be written: No space left"):
        write_trace(TRACE, path)
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]
