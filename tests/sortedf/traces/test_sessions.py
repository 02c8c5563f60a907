"""Sessions: turns that follow others, as data."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf.errors import TraceError
from sortedf.traces import Trace, read_trace, write_trace
from sortedf.traces.sessions import FIRST_TURN, Sessions
from tests.strategies import examples

NAMES = ["t.csv", "t.csv.gz", "t.jsonl", "t.parquet"]


@pytest.mark.parametrize("name", NAMES)
def test_sessions_read_back_the_same(tmp_path, name):
    """To the last bit of every think time."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    sessions = Sessions([-1, 0, -1, 1], [0.0, 0.1 + 0.2, 0.0, 7.0])
    write_trace(Trace([3, 9, 1, 20], [2, 4, 1, 1], sessions=sessions), tmp_path / name)
    back = read_trace(tmp_path / name).sessions
    assert back is not None
    assert not back.is_recorded
    assert back.previous.tolist() == sessions.previous.tolist()
    assert back.think_s.tolist() == sessions.think_s.tolist()
    again = pickle.loads(pickle.dumps(back))
    assert not again.previous.flags.writeable


def test_bailian_names_the_turn_before(tmp_path):
    """A turn whose parent is not in the file begins a session; times are recorded."""
    path = tmp_path / "bailian.jsonl"
    rows = [(7, -1, 1.5), (8, 7, 11.5), (9, 3, 12.5), (10, 8, 21.0)]
    path.write_text(
        "".join(
            f'{{"chat_id": {own}, "parent_chat_id": {parent}, "timestamp": {at}, '
            '"input_length": 33, "output_length": 2, "hash_ids": [8, 9, 10]}\n'
            for own, parent, at in rows
        ),
        encoding="utf-8",
    )
    trace = read_trace(path)
    assert trace.sessions is not None
    assert trace.sessions.is_recorded
    assert trace.sessions.previous.tolist() == [-1, 0, -1, 1]
    assert trace.sessions.think_s.tolist() == [0, 10, 0, 9.5]
    instance, _ = trace.to_instance(kv_budget=100)  # recorded times can be planned
    assert instance.arrival.tolist() == [0, 10, 11, 20]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("2,2", "line 3: previous = 2 but must be the number of an earlier request"),
        ("-1,2", "line 3: previous = -1 but must be the number of an earlier"),
        ("x,2", "line 3: previous = x but must be an integer"),
        ("1,-2", "line 3: think_s = -2 but must be a number, 0 or more"),
        ("0.5,2", "line 3: previous = 0.5 but must be an integer"),
    ],
)
def test_bad_columns_are_refused(tmp_path, row, words):
    """One line that names file, line and column."""
    path = tmp_path / "t.csv"
    header = "prefill_tokens,decode_tokens,arrival_s,previous,think_s"
    path.write_text(f"{header}\n5,2,0,0,0\n9,2,0,{row}\n", encoding="utf-8")
    with pytest.raises(TraceError, match=words):
        read_trace(path)


def test_plans_need_fixed_arrivals():
    """Arrivals that depend on the schedule are refused, but for a backlog."""
    trace = Trace([3, 9], [2, 4], sessions=Sessions([-1, 0], [0, 5]))
    with pytest.raises(TraceError, match=r"1 requests \(the first in row 2\) arrive"):
        trace.to_instance(kv_budget=100)
    instance, _ = trace.to_instance(kv_budget=100, backlog=True)
    assert instance.num_requests == 2


@pytest.mark.parametrize(
    ("previous", "think_s", "words"),
    [
        ([0], [0.0], r"previous\[0\] = 0 but must be an earlier position"),
        ([-2], [0.0], r"previous\[0\] = -2"),
        ([-1, 0], [0.0, float("nan")], r"think_s\[1\] = nan but must be a number"),
        ([-1, 0], [0.0], "must be lists of equal length"),
    ],
)
def test_bad_sessions_are_refused(previous, think_s, words):
    with pytest.raises(ValueError, match=words):
        Sessions(previous, think_s)


def test_think_times_in_steps_are_rounded_up():
    """But not for a rounding error."""
    sessions = Sessions([-1, 0, 1, 2], [0.0, 0.3, 0.31, 0.0])
    assert sessions.in_steps(0.1).think_s.tolist() == [0, 3, 4, 0]


@examples(100)
@given(st.data(), st.integers(1, 9))
def test_a_subset_follows_the_nearest_turn_that_stays(data, n):
    """Equal to walking back turn by turn."""
    previous = [data.draw(st.integers(-1, i - 1)) for i in range(n)]
    keep = sorted(data.draw(st.sets(st.integers(0, n - 1), min_size=1)))
    think = [float(2**i) for i in range(n)]
    part = Sessions(previous, think).subset(np.array(keep))
    for place, i in enumerate(keep):
        before, late = previous[i], think[i]
        while before != FIRST_TURN and before not in keep:
            late += think[before]
            before = previous[before]
        wanted = FIRST_TURN if before == FIRST_TURN else keep.index(before)
        assert part.previous[place] == wanted
        assert part.think_s[place] == late
