"""Files that strangers wrote: what they may grow to is bounded, and said."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
import sys

import pytest

from sortedf.bounded_file import (
    FREE_BYTES,
    MOST_VALUES,
    TooLargeFileError,
    read_whole,
    refuse_too_many_values,
)
from sortedf.certificate import read_certificate
from sortedf.errors import CertificateError, TraceError
from sortedf.json_values import read_json
from sortedf.traces import read_trace

HEADER = b"prefill_tokens,decode_tokens\n"


def put(folder, content):
    path = folder / "file.dat"
    path.write_bytes(content)
    return path


def test_packed_or_not(tmp_path):
    assert read_whole(put(tmp_path, b"abc"), TraceError) == b"abc"
    assert read_whole(put(tmp_path, gzip.compress(b"abc")), TraceError) == b"abc"


def test_what_unpacks_to_a_hundred_times_is_read(tmp_path):
    """Real text packs to a fifth; up to 16 MiB anything may."""
    content = b"\0" * FREE_BYTES
    assert read_whole(put(tmp_path, gzip.compress(content)), TraceError) == content
    with pytest.raises(TraceError, match="unpacks to more than 100 times its size"):
        read_whole(put(tmp_path, gzip.compress(content + b"\0")), TraceError)


@pytest.mark.parametrize(
    "line",
    [
        HEADER + b"1" * (1 << 28),
        b'{"prefill_tokens": ' + b" " * (1 << 28),
        HEADER + b"1,1\n" * 5_000_000,
    ],
)
def test_a_packed_trace_that_explodes_is_refused(tmp_path, line):
    """A gigabyte of zeros in a line packs to a megabyte."""
    path = put(tmp_path, gzip.compress(line, 9))
    del line
    with pytest.raises(TraceError, match="gzip unpacks to more than 100 times"):
        read_trace(path)


@pytest.mark.parametrize("value", ["[]", "{}", '{"a":0}', "0", '""', "[[[[]]]]"])
def test_json_of_very_many_values_is_refused(tmp_path, value):
    """Each byte or two would take some 100 in memory."""
    text = "[" + ",".join([value] * MOST_VALUES) + ",1]"
    with pytest.raises(TooLargeFileError, match="more than 10,000,000 JSON values"):
        refuse_too_many_values(text)
    with pytest.raises(TooLargeFileError, match="more than 10,000,000 JSON values"):
        refuse_too_many_values(text.encode())
    with pytest.raises(TraceError, match="more than 10,000,000 JSON values"):
        read_json(put(tmp_path, text.encode()), TraceError)


def test_long_texts_are_not_counted_as_values():
    """A collection of conversations has tens of millions of commas."""
    refuse_too_many_values("well, so I said to all" * (MOST_VALUES + 1))


@pytest.mark.parametrize("kind", ["x" * 10**6, ["x"] * 10**6, {"x": "y" * 10**6}])
def test_a_kind_of_certificate_is_not_echoed_whole(tmp_path, kind):
    with pytest.raises(CertificateError, match="'kind' is") as caught:
        read_certificate(put(tmp_path, json.dumps({"kind": kind}).encode()))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("name", ["", "a\0b", "."])
def test_names_of_no_file(name):
    with pytest.raises(TraceError, match="cannot be read"):
        read_whole(name, TraceError)


def test_endless_files_end(tmp_path):
    """A device that never ends is read up to the limit, and within bounded memory."""
    code = (
        "from sortedf.bounded_file import read_whole\n"
        "from sortedf.errors import TraceError\n"
        "try: read_whole('/dev/zero', TraceError)\n"
        "except TraceError as error: print(error)\n"
    )

    def bound_memory():
        resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        preexec_fn=bound_memory,
        timeout=120,
    )
    assert "more than 1 GiB" in done.stdout, done.stderr
