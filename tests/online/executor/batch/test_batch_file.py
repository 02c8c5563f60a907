"""Batch files: what is read, and what is refused with file and line."""

from __future__ import annotations

import json

import pytest

from online.executor.batch.batch_errors import BatchFileError
from online.executor.batch.batch_file import read_batch
from tests.online.executor.batch.stub import request, write_batch


def test_reads_requests_in_their_order(tmp_path):
    path = tmp_path / "in.jsonl"
    names = ["b", "a", "ü", "x\n", "\N{ZERO WIDTH JOINER}", "\N{IDEOGRAPHIC SPACE}"]
    lines = [json.dumps(request(name)) for name in names]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n\n".join(lines).encode())
    batch = read_batch(path)
    assert [one.custom_id for one in batch.requests] == names
    assert batch.requests[0].body["messages"][0]["content"] == "hello"
    assert len(batch.sha256) == 64


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"custom_id": None}, "custom_id = null but must be a string"),
        ({"custom_id": 7}, "custom_id = 7 but must be a string"),
        ({"custom_id": "a"}, "'a' is that of line 1 but must be unique"),
        ({"custom_id": "x\ud800"}, r'custom_id = "x\\ud800" is no text'),
        ({"url": "/v1/\ud800"}, r'url = "/v1/\\ud800" is no text'),
        ({"method": "GET"}, "method = 'GET' but must be 'POST'"),
        ({"url": 1}, "url = 1 but must be a string"),
        ({"body": []}, r"body = \[\] but must be an object"),
    ],
)
def test_refuses_a_wrong_field(tmp_path, change, message):
    path = write_batch(tmp_path / "in.jsonl", [request("a"), request("b") | change])
    with pytest.raises(BatchFileError, match=f"in.jsonl: line 2: .*{message}"):
        read_batch(path)


@pytest.mark.parametrize("name", ["custom_id", "method", "url", "body"])
def test_refuses_a_missing_field(tmp_path, name):
    short = request("a")
    del short[name]
    path = write_batch(tmp_path / "in.jsonl", [short])
    with pytest.raises(BatchFileError, match=f"line 1: the field '{name}' is missing"):
        read_batch(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b'{"custom_id": \n', "line 1 is no JSON"),
        (b"[]\n", r"line 1 is \[\] but must be a JSON object"),
        (b"\xff\n", "line 1: 0xff is no UTF-8"),
        (b"[" * 100_000, "line 1 is no JSON"),
    ],
)
def test_refuses_what_is_no_batch(tmp_path, content, message):
    path = tmp_path / "in.jsonl"
    path.write_bytes(content)
    with pytest.raises(BatchFileError, match=message):
        read_batch(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BatchFileError, match=r"none.jsonl cannot be read"):
        read_batch(tmp_path / "none.jsonl")
