"""Every bad file is refused in one line that says what, where, and what is allowed."""

from __future__ import annotations

import builtins
import bz2
import gzip
import lzma
import re

import pytest

from sortedf.arrays import MAX_TOKENS
from sortedf.errors import TraceError
from sortedf.traces import read_trace
from tests.sortedf.traces.files import OWN, OWN_LINE, put

ALLOWED = f"must be an integer from 1 to {MAX_TOKENS}."


def refusal(path) -> str:
    """The message with which a file is refused, without the folder."""
    with pytest.raises(TraceError) as caught:
        read_trace(path)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{path}", path.name)


@pytest.mark.parametrize("shape", ["one block", "with quotes"])
@pytest.mark.parametrize(
    "value",
    [
        "abc",
        "0",
        "-3",
        "nan",
        "1e30",
        "5.5",
        "inf",
        "1_000",
        "5 5",
        "0x10",
        "2147483648",
    ],
)
def test_a_length_that_is_none_is_named_with_line_and_column(tmp_path, value, shape):
    """In CSV, whether the fast or the careful way of splitting is taken."""
    quote = '"' if shape == "with quotes" else ""
    path = put(tmp_path, f"{OWN}0,7,8\n0,{quote}{value}{quote},9\n0,1,1\n")
    expected = f"trace.dat: line 3: prefill_tokens = {value} but {ALLOWED}"
    assert refusal(path) == expected


def test_odd_values_are_quoted_and_long_ones_cut(tmp_path):
    """A message stays one short line, whatever the file holds."""
    path = put(tmp_path, OWN + "0,1,\n")
    assert refusal(path) == f"trace.dat: line 2: decode_tokens = '' but {ALLOWED}"
    path = put(tmp_path, OWN + '0,1,"a\nb"\n')
    assert "line 3: decode_tokens = 'a\\nb' but" in refusal(path)
    path = put(tmp_path, OWN + f"0,1,{'9' * 5000}\n")
    assert f"decode_tokens = {'9' * 40}... but" in refusal(path)
    path = put(tmp_path, OWN + "0,1,٣\n")  # int() would take this Arabic digit
    assert "decode_tokens = ٣ but" in refusal(path)


@pytest.mark.parametrize(
    "value",
    ['"5"', "true", "null", "NaN", "1e+30", "5.5", "0", "-3", "[1]", "Infinity", "{}"],
)
def test_a_json_value_of_the_wrong_kind_is_named(tmp_path, value):
    """A number in quotes is no number, and true is not 1."""
    line = OWN_LINE.replace("2}", f"{value}}}")
    path = put(tmp_path, OWN_LINE + line)
    expected = f"trace.dat: line 2: decode_tokens = {value} but {ALLOWED}"
    assert refusal(path) == expected
    path = put(tmp_path, f"[{OWN_LINE}, {line}]")
    assert refusal(path) == expected.replace("line", "item")


def test_huge_json_numbers_are_refused(tmp_path):
    """Python's own limits on digits do not come through as a traceback."""
    line = OWN_LINE.replace("2}", "9" * 400 + "}")
    assert "decode_tokens = 9999" in refusal(put(tmp_path, line))
    line = OWN_LINE.replace("2}", "9" * 5000 + "}")
    message = refusal(put(tmp_path, OWN_LINE + line))
    assert message == "trace.dat: line 2 is no JSON: a number has too many digits."


@pytest.mark.parametrize("value", ["nan", "-1", "x", "inf", ""])
def test_an_arrival_that_is_no_time_is_named(tmp_path, value):
    """Arrivals are finite and not negative."""
    path = put(tmp_path, f"{OWN}0,7,8\n{value},1,9\n")
    shown = value or "''"
    expected = (
        f"trace.dat: line 3: arrival_s = {shown} but must be a number, 0 or more."
    )
    assert refusal(path) == expected


@pytest.mark.parametrize(
    "value", ["2024-02-30 00:00:00", "yesterday", "7", "9999-01-01 00:00:00", "NaT", ""]
)
def test_a_time_of_day_that_is_none_is_named(tmp_path, value):
    """The 30th of February, and years that nanoseconds cannot hold."""
    header = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    path = put(tmp_path, f"{header}2024-02-01 00:00:00,1,2\n{value},1,2\n")
    assert refusal(path) == (
        f"trace.dat: line 3: TIMESTAMP = {value or repr('')} but must be a date with a "
        "time of day such as 2023-11-16 18:17:03.9799600."
    )


def test_a_failed_request_of_burstgpt_is_explained(tmp_path):
    """The real trace has such rows; they are refused like every other 0."""
    header = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    path = put(tmp_path, header + "5,ChatGPT,472,0,472,Conversation log\n")
    assert refusal(path) == (
        f"trace.dat: line 2: Response tokens = 0 but {ALLOWED[:-1]} (BurstGPT logs a "
        "failed request with 0 response tokens; take such rows out of the file)."
    )


@pytest.mark.parametrize("content", ["", "\n\n", " \r\n", "\ufeff", gzip.compress(b"")])
def test_an_empty_file_is_refused(tmp_path, content):
    """Blank lines make no trace."""
    expected = "trace.dat is empty; a trace has at least one request."
    assert refusal(put(tmp_path, content)) == expected


def test_a_header_alone_is_refused(tmp_path):
    """As is an empty list."""
    assert refusal(put(tmp_path, OWN)) == "trace.dat has a header but no requests."
    assert "no requests" in refusal(put(tmp_path, "[]"))


def test_unknown_columns_are_listed_beside_the_known_formats(tmp_path):
    """So that the user can rename them."""
    message = refusal(put(tmp_path, "when,prompt,answer\n1,2,3\n"))
    assert "the header in line 1 has when, prompt, answer, which is no" in message
    for known in ("prefill_tokens", "ContextTokens", "Request tokens", "input_length"):
        assert known in message
    message = refusal(put(tmp_path, '{"a": 1}'))
    assert message.startswith("trace.dat: the first object has a, which is no known")


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    """Which of the two is meant is not known."""
    path = put(tmp_path, "decode_tokens,prefill_tokens,Decode_Tokens\n1,2,3\n")
    expected = "trace.dat: the header in line 1 has decode_tokens more than once."
    assert refusal(path) == expected


@pytest.mark.parametrize("row", ["0,1", "0,1,2,3", "0", "0,1,2,"])
def test_rows_of_unequal_length_are_refused(tmp_path, row):
    """Even one comma too many: the columns may have moved."""
    message = refusal(put(tmp_path, f"{OWN}0,1,2\n{row}\n"))
    fields = row.count(",") + 1
    assert message == (
        f"trace.dat: line 3 has {fields} fields but the header has 3; every row must "
        "have as many."
    )


def test_csv_that_is_none_is_refused(tmp_path):
    """A quote that is never closed would swallow the rest of the file."""
    message = refusal(put(tmp_path, OWN + '0,"1,2\n0,3,4\n'))
    assert message == "trace.dat: line 3 is no CSV: unexpected end of data."
    assert "line 2 is no CSV" in refusal(put(tmp_path, OWN + '0,"1"x,2\n'))
    assert "line 1 is no CSV" in refusal(put(tmp_path, '"prefill_tokens,decode\n'))


@pytest.mark.parametrize("cut", [5, 12, 40, -1])
def test_truncated_gzip_is_refused(tmp_path, cut):
    """A download that stopped half-way gives no half trace."""
    packed = gzip.compress((OWN + "0,1,2\n" * 5000).encode())
    assert "trace.dat: broken or truncated gzip: " in refusal(
        put(tmp_path, packed[:cut])
    )


def test_broken_gzip_is_refused(tmp_path):
    """Be it the header, the content, the checksum, or what comes after."""
    packed = gzip.compress((OWN + "0,1,2\n" * 5000).encode())
    broken = [
        b"\x1f\x8bnothing of the kind",
        packed[:12] + b"\xff" * 8 + packed[20:],
        packed[:-8] + bytes(4) + packed[-4:],
        packed + b"more",
    ]
    for content in broken:
        assert "broken or truncated gzip: " in refusal(put(tmp_path, content))


def test_binary_junk_is_refused(tmp_path):
    """A picture is no trace, and a zero byte no text."""
    message = refusal(put(tmp_path, b"\x89PNG\r\n\x1a\n"))
    assert "line 1: 0x89 is no UTF-8; a trace is CSV, JSON or" in message
    message = refusal(put(tmp_path, bytes(range(100))))
    assert message.startswith("trace.dat is no text (byte 1 is 0); a trace is CSV,")
    message = refusal(put(tmp_path, OWN.encode("utf-16")))
    assert "is no text" in message


@pytest.mark.parametrize("quote", [b"", b'"'])
def test_invalid_utf8_is_named_with_its_line(tmp_path, quote):
    """Even in a column that is not read."""
    content = b"note,prefill_tokens,decode_tokens\nx,1,2\n%bK\xf6ln%b,3,4\n"
    path = put(tmp_path, content % (quote, quote))
    assert "trace.dat: line 3: 0xf6 is no UTF-8" in refusal(path)
    path = put(tmp_path, OWN_LINE.encode() + b'{"\xf6": 1}\n')
    assert "trace.dat: line 2: 0xf6 is no UTF-8" in refusal(path)


def test_json_syntax_errors_are_named_with_their_line(tmp_path):
    """In JSONL and in a list."""
    message = refusal(put(tmp_path, OWN_LINE + '{"prefill_tokens": }\n'))
    assert message == "trace.dat: line 2 is no JSON: expecting value at column 20."
    message = refusal(put(tmp_path, OWN_LINE + '{"a": 1} {"b": 2}\n'))
    assert message == "trace.dat: line 2 is no JSON: extra data at column 10."
    message = refusal(put(tmp_path, OWN_LINE + '{"a": 1\n'))
    assert message.startswith("trace.dat: line 2 is no JSON: expecting ',' delimiter")
    message = refusal(put(tmp_path, f"\n[{OWN_LINE},\n x]"))
    assert message == "trace.dat: line 4 is no JSON: expecting value at column 2."
    message = refusal(put(tmp_path, "[" * 100_000))
    assert message == "trace.dat: line 1 is no JSON: nested too deeply."


@pytest.mark.parametrize("value", ["[1, 2]", "5", '"x"', "null"])
def test_a_json_line_that_is_no_object_is_refused(tmp_path, value):
    """As is an item of a list that is none."""
    rule = f"is {value} but must be a JSON object."
    path = put(tmp_path, f"{OWN_LINE}{value}\n")
    assert refusal(path) == f"trace.dat: line 2 {rule}"
    path = put(tmp_path, f"[{OWN_LINE},{value}]")
    assert refusal(path) == f"trace.dat: item 2 {rule}"


def test_objects_with_other_keys_are_refused(tmp_path):
    """A missing arrival is not 0, and a late one is not to be passed over."""
    line = '{"prefill_tokens": 1, "decode_tokens": 2}\n'
    message = refusal(put(tmp_path, OWN_LINE + line))
    assert message.startswith("trace.dat: line 2 has no arrival_s but the first object")
    message = refusal(put(tmp_path, line + OWN_LINE))
    assert message.startswith(
        "trace.dat: line 2 has arrival_s but the first object has"
    )


def test_what_is_no_file_is_refused(tmp_path):
    """A missing file, a folder, and names that no file can have."""
    path = tmp_path / "missing.csv"
    assert refusal(path) == "missing.csv cannot be read: No such file or directory."
    assert refusal(tmp_path).endswith("cannot be read: Is a directory.")
    for name in ("", "a\0b"):
        with pytest.raises(TraceError, match=re.escape(f"{name!r} cannot be read")):
            read_trace(name)


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    """With the system's reason."""

    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    path = put(tmp_path, OWN)
    monkeypatch.setattr(builtins, "open", refuse)
    assert refusal(path) == "trace.dat cannot be read: Permission denied."


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (bz2.compress(OWN.encode()), "bzip2 -d"),
        (lzma.compress(OWN.encode()), "xz -d"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd -d"),
        (b"PK\x03\x04\x14\0", "unzip"),
        (b"7z\xbc\xaf\x27\x1c", "7z x"),
    ],
)
def test_packed_files_are_refused_with_the_cure(tmp_path, content, word):
    """They were "no UTF-8" or "no text", which says nothing of what to do."""
    with pytest.raises(TraceError, match=word):
        read_trace(put(tmp_path, content))
