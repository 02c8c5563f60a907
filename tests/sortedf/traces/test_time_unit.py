"""Units of arrival times, and times under other names."""

from __future__ import annotations

import json

import pytest

from sortedf.errors import TraceError
from sortedf.traces import read_trace
from sortedf.traces.reading import read_reported
from tests.sortedf.traces.files import put

MOONCAKE = "timestamp,input_length,output_length\n"
TOKENS = "prefill_tokens,decode_tokens\n"

# content, options, unit, span in seconds
UNITS = {
    "mooncake in ms": (MOONCAKE + "0,9,1\n2000,9,1\n", {}, "ms", 2),
    "fractions are seconds": (MOONCAKE + "0.5,9,1\n2,9,1\n", {}, "s", 1.5),
    "too many a second for ms": (
        MOONCAKE + "".join(f"{k},9,1\n" for k in range(100)),
        {},
        "s",
        99,
    ),
    "as said": (MOONCAKE + "0,9,1\n2000,9,1\n", {"time_unit": "s"}, "s", 2000),
    "us as said": (MOONCAKE + "0,9,1\n5,9,1\n", {"time_unit": "us"}, "us", 5e-6),
    "stamps in s": (
        "created,prompt_tokens,completion_tokens\n1764500000,9,1\n1764500004,9,1\n",
        {},
        "s",
        4,
    ),
    "stamps in ms": (
        "created,prompt_tokens,completion_tokens\n"
        "1764500000000,9,1\n1764500004000,9,1\n",
        {},
        "ms",
        4,
    ),
    "stamps in ns": (
        "created,prompt_tokens,completion_tokens\n"
        "1764500000000000000,9,1\n1764500004000000000,9,1\n",
        {},
        "ns",
        4,
    ),
    "unit in the name": (
        "arrival_time_us,prefill_tokens,decode_tokens\n0,9,1\n3000000,9,1\n",
        {},
        "us",
        3,
    ),
    "timestamp beside tokens": (
        "timestamp,prefill_tokens,decode_tokens\n10,9,1\n13,9,1\n",
        {},
        "s",
        3,
    ),
    "request_created_at": (
        "request_created_at,prefill_tokens,decode_tokens\n"
        "2026-11-01T10:00:00Z,9,1\n2026-11-01T10:00:01.5Z,9,1\n",
        {},
        "date",
        1.5,
    ),
    "startTime of objects": (
        json.dumps({"startTime": 5, "prompt_tokens": 9, "completion_tokens": 1})
        + "\n"
        + json.dumps({"startTime": 6, "prompt_tokens": 9, "completion_tokens": 1}),
        {},
        "s",
        1,
    ),
    "all columns given": (
        "when,in,out\n0,9,1\n7,9,1\n",
        {"columns": {"arrival": "when", "prefill": "in", "decode": "out"}},
        "s",
        7,
    ),
    "arrival given": (
        "when,prefill_tokens,decode_tokens\n0,9,1\n7,9,1\n",
        {"columns": {"arrival": "when"}, "time_unit": "ms"},
        "ms",
        0.007,
    ),
}


@pytest.mark.parametrize("case", UNITS.values(), ids=list(UNITS))
def test_times_are_read_in_their_unit(tmp_path, case):
    """Seconds were read as milliseconds, and times under other names were dropped."""
    content, options, unit, span_s = case
    trace, report = read_reported(put(tmp_path, content), **options)
    assert report.time_unit == unit
    assert trace.arrival_s.max() == pytest.approx(span_s)
    assert set(trace.prefill.tolist()) == {9}


def test_a_guess_of_the_unit_is_said(tmp_path):
    """Whether whole numbers are seconds or milliseconds can be a guess."""
    _, report = read_reported(put(tmp_path, MOONCAKE + "0,9,1\n2000,9,1\n"))
    assert any("--time-unit" in warning for warning in report.warnings())


def test_unused_times_are_named(tmp_path):
    """A backlog may be meant, but not without a word."""
    content = "enqueue_timestamp,prefill_tokens,decode_tokens,end_time\n5,9,1,8\n"
    trace, report = read_reported(put(tmp_path, content))
    assert not trace.arrival_s.any()
    assert report.unused_times == ("enqueue_timestamp",)
    assert "--columns arrival=enqueue_timestamp" in report.warnings()[0]


def test_missing_and_unknown_names_are_refused(tmp_path):
    """The message names what the file has."""
    path = put(tmp_path, TOKENS + "1,2\n")
    with pytest.raises(TraceError, match=r"has no when but prefill_tokens"):
        read_trace(path, columns={"arrival": "when"})
    with pytest.raises(ValueError, match="choose from arrival"):
        read_trace(path, columns={"start": "when"})
    with pytest.raises(ValueError, match="choose one of: s, ms"):
        read_trace(path, time_unit="minutes")


def test_times_that_only_later_objects_have_are_refused(tmp_path):
    """They were dropped without a word."""
    first = json.dumps({"prefill_tokens": 4, "decode_tokens": 2})
    later = json.dumps({"prefill_tokens": 4, "decode_tokens": 2, "timestamp": 5})
    with pytest.raises(TraceError, match="line 2 has timestamp but the first"):
        read_trace(put(tmp_path, f"{first}\n{later}\n"))
