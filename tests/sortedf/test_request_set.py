"""Requests without an engine: checked once, and shared instead of copied."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import sortedf.instance as instance_module
import sortedf.traces.trace as trace_module
from sortedf import EngineModel, Instance, OversizeError, Trace, request_set, solve
from sortedf.request_set import RequestSet
from sortedf.traces import read_trace, reading, write_trace
from sortedf.traces.prefix_ids import PrefixIds


def test_is_a_read_only_copy_of_its_arguments():
    """Changing the caller's array later changes nothing, also after pickling."""
    prefill = np.array([3, 1])
    built = RequestSet(prefill, [2, 4], [0, 5])
    prefill[0] = 99
    for requests in (built, pickle.loads(pickle.dumps(built)), built.subset([0, 1])):
        assert type(requests) is RequestSet
        assert requests.prefill.tolist() == [3, 1]
        for array in (requests.prefill, requests.decode, requests.arrival):
            assert array.dtype == np.int64
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1


def test_invalid_requests_are_refused():
    """With the name of the field and the position."""
    with pytest.raises(ValueError, match=r"decode\[1\] = 0"):
        RequestSet([1, 1], [1, 0])
    with pytest.raises(ValueError, match="decode has 1 entries but prefill has 2"):
        RequestSet([1, 1], [1])
    with pytest.raises(ValueError, match=r"arrival\[0\] = -1"):
        RequestSet([1], [1], [-1])


def test_a_column_of_a_trace_is_shared_by_all_that_is_made_of_it():
    """Each column was copied seven times on its way from a file to a schedule."""
    trace = Trace([5, 6], [3, 2], [0.0, 1.5])
    requests = trace.to_requests(step_time_s=0.5)
    instance, kept = trace.to_instance(20, step_time_s=0.5)
    again = Instance.of_requests(requests, engine=EngineModel(12))
    moved = trace.with_arrivals([0.0, 1.0])
    for each in (requests, instance, again, moved):
        assert each.prefill is trace.prefill
        assert each.decode is trace.decode
    assert again.arrival is requests.arrival
    assert requests.arrival.tolist() == instance.arrival.tolist() == [0, 3]
    assert (instance.kv_budget, again.kv_budget, kept.tolist()) == (20, 12, [0, 1])


def test_an_instance_of_requests_is_checked_against_its_engine():
    """The engine is all that is new, so nothing else is checked again."""
    requests = RequestSet([5, 9], [3, 2])
    with pytest.raises(OversizeError, match=r"request 1 \(s=9, o=2") as caught:
        Instance.of_requests(requests, 10)
    assert caught.value.request_ids == (1,)
    with pytest.raises(ValueError, match="give one of them"):
        Instance.of_requests(requests, 10, engine=EngineModel(20))


def test_other_arrivals_are_checked_and_start_at_0():
    """As those of a new trace."""
    trace = Trace([5, 6], [3, 2], row=[4, 9], name="a.csv")
    moved = trace.with_arrivals([2.0, 1.0])
    assert moved.arrival_s.tolist() == [1.0, 0.0]
    assert (moved.row.tolist(), moved.name) == ([4, 9], "a.csv")
    with pytest.raises(ValueError, match=r"arrival_s\[1\] = -1"):
        trace.with_arrivals([0.0, -1.0])
    with pytest.raises(ValueError, match="arrival_s has 1 entries but prefill has 2"):
        trace.with_arrivals([0.0])


def test_a_file_is_checked_once_on_its_way_to_a_schedule(tmp_path, monkeypatch):
    """The range of a column was checked three times, and its oversize twice."""
    path = tmp_path / "trace.csv"
    write_trace(Trace([5, 6, 4], [3, 2, 1], [0.0, 1.0, 1.0]), path)
    calls = []

    def count(module, name):
        original = getattr(module, name)

        def counted(*args, **more):
            calls.append((name, args[0] if isinstance(args[0], str) else ""))
            return original(*args, **more)

        monkeypatch.setattr(module, name, counted)

    for module in (request_set, trace_module):
        count(module, "frozen_ints")
    count(instance_module, "oversize_ids")
    count(reading, "whole_tokens")
    trace = read_trace(path)
    instance, _ = trace.to_instance(20)
    schedule = solve(instance, "svf", bound="none").schedule
    assert np.shares_memory(schedule.instance.prefill, trace.prefill)
    assert np.shares_memory(schedule.instance.decode, trace.decode)
    names = [name for name, _ in calls]
    assert names == ["whole_tokens", "whole_tokens", "oversize_ids"]


def test_what_prompts_share_follows_from_the_blocks_of_the_engine():
    """Ids are independent of an engine; blocks of 4 tokens hold more of them than 8."""
    ids = PrefixIds.of_lists([[1, 2, 3], [1, 2], [7]], tokens_per_id=6)
    requests = RequestSet([18, 14, 9], [1, 1, 1], prefix_ids=ids)
    shared = {
        block: Instance.of_requests(
            requests, engine=EngineModel(64, block, prefix_caching=True)
        ).prefixes
        for block in (4, 8)
    }
    assert [shared[b].request_blocks.tolist() for b in (4, 8)] == [[3, 3, 0], [1, 1, 0]]
    assert Instance.of_requests(requests, 64).prefixes is None
    last = pickle.loads(pickle.dumps(requests)).subset([2, 0])
    assert [last.prefix_ids[i].tolist() for i in (0, 1)] == [[7], [1, 2, 3]]
    with pytest.raises(ValueError, match="prefix_ids has 3 entries but prefill has 1"):
        RequestSet([18], [1], prefix_ids=ids)
