"""A trace checks what it is given, and becomes an instance."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from sortedf import EngineModel, OversizeError
from sortedf.arrays import MAX_STEP
from sortedf.errors import TraceError
from sortedf.traces import Trace


def trace(arrival_s=None, prefill=(3, 1, 5), decode=(2, 4, 1), **more):
    return Trace(prefill, decode, arrival_s, **more)


def test_arrays_are_frozen_and_start_at_zero():
    """A trace cannot be changed, and the first request arrives at 0."""
    replayed = trace([7.5, 9, 8])
    assert replayed.arrival_s.tolist() == [0, 1.5, 0.5]
    assert replayed.row.tolist() == [1, 2, 3]
    for name in ("prefill", "decode", "arrival_s", "row"):
        assert not getattr(replayed, name).flags.writeable
    assert repr(replayed) == "Trace(3 requests, arrays, last arrival 1.5 s)"


def test_pickling_keeps_everything():
    """Arrays come back read-only."""
    replayed = pickle.loads(
        pickle.dumps(trace([1, 2, 3], source="Azure", name="a.csv"))
    )
    assert (replayed.source, replayed.name, replayed.num_requests) == (
        "Azure",
        "a.csv",
        3,
    )
    assert replayed.arrival_s.tolist() == [0, 1, 2]
    assert not replayed.prefill.flags.writeable


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"prefill": [], "decode": []}, "a trace needs at least one request"),
        ({"prefill": [0, 1, 1]}, r"prefill\[0\] = 0 but must be"),
        ({"decode": [1, 1]}, "decode has 2 entries but prefill has 3"),
        ({"arrival_s": [0, 1]}, "arrival_s has 2 entries but prefill has 3"),
        ({"arrival_s": [0, -1, 2]}, r"arrival_s\[1\] = -1.0 but must be a number"),
        ({"arrival_s": [0, 1, np.nan]}, r"arrival_s\[2\] = nan but must be"),
        ({"arrival_s": ["a", "b", "c"]}, "arrival_s must be a one-dimensional array"),
        ({"row": [0, 1, 2]}, r"row\[0\] = 0 but must be"),
    ],
)
def test_bad_arrays_are_refused(arguments, message):
    """The message names the first bad entry."""
    with pytest.raises((ValueError, TypeError), match=message):
        trace(**arguments)


def test_arrivals_are_rounded_up_to_steps():
    """A request that comes within a step can run after it at the earliest."""
    inst, kept = trace([0, 0.2, 2.5]).to_instance(100)
    assert inst.arrival.tolist() == [0, 1, 3]
    assert kept.tolist() == [0, 1, 2]
    inst, _ = trace([0, 0.2, 2.5]).to_instance(100, step_time_s=0.25)
    assert inst.arrival.tolist() == [0, 1, 10]


def test_rounding_noise_delays_nobody():
    """A request on a step boundary in decimals stays there in floating point."""
    exact = np.arange(1000)
    for start in (0, 10, 1000):
        for step_time_s in (0.1, 0.3, 0.05, 0.007):
            # Noise as in a file: decimals of absolute times, read, then shifted.
            times = [float(f"{start + k * step_time_s:.6f}") for k in exact]
            replayed = Trace(exact + 1, exact + 1, times)
            inst, _ = replayed.to_instance(10_000, step_time_s=step_time_s)
            assert inst.arrival.tolist() == exact.tolist()


def test_a_backlog_has_no_arrivals():
    """However late they are."""
    inst, _ = trace([0, 1, 1e300]).to_instance(100, backlog=True)
    assert inst.is_backlog


@pytest.mark.parametrize("step_time_s", [0, -1, np.nan, np.inf])
def test_a_step_takes_time(step_time_s):
    """Zero, negative or endless steps are refused."""
    with pytest.raises(ValueError, match=r"step_time_s = .* must be a number of"):
        trace().to_instance(100, step_time_s=step_time_s)


def test_arrivals_beyond_the_last_step_are_refused():
    """With the row, rather than wrapped around."""
    with pytest.raises(TraceError, match=rf"t.csv: row 3 arr.* go up to {MAX_STEP}"):
        trace([0, 1, 1e300], name="t.csv").to_instance(100)


def test_oversize_requests_are_named_by_their_rows():
    """Count, row, lengths, need, and the way out; ids are positions."""
    replayed = trace(prefill=[3, 9, 1], decode=[1, 1, 8], row=[2, 5, 6], name="t.csv")
    with pytest.raises(OversizeError) as caught:
        replayed.to_instance(8)
    assert str(caught.value) == (
        "t.csv: 2 of 3 requests can never run with kv_budget=8: row 5 (s=9, o=1, needs "
        "10); row 6 (s=1, o=8, needs 9); drop_oversize "
        "(--drop-oversize) leaves them out."
    )
    assert caught.value.request_ids == (1, 2)


def test_only_the_first_five_oversize_requests_are_spelled_out():
    """Of a thousand the message stays one line."""
    replayed = Trace(np.full(1000, 9), np.full(1000, 1))
    with pytest.raises(OversizeError, match=r"row 5 \(s=9, o=1, needs 10\), \.\.\.;"):
        replayed.to_instance(8)


def test_oversize_requests_are_dropped_on_demand():
    """The positions of the others say which schedule entry is whose."""
    replayed = trace([0, 1, 2], prefill=[3, 9, 1], decode=[1, 1, 7])
    inst, kept = replayed.to_instance(8, drop_oversize=True)
    assert kept.tolist() == [0, 2]
    assert (inst.prefill.tolist(), inst.arrival.tolist()) == ([3, 1], [0, 2])


def test_dropping_everything_is_an_error():
    """An empty instance would say that all is well."""
    with pytest.raises(OversizeError, match=r"2 of 2 requests .*; none is left"):
        Trace([9, 9], [1, 1]).to_instance(8, drop_oversize=True)


def test_the_engine_counts_too():
    """Blocks and caps decide which requests can run."""
    replayed = Trace([3, 4], [1, 2])
    engine = EngineModel(7, block_size=4)
    inst, kept = replayed.to_instance(engine=engine, drop_oversize=True)
    assert (kept.tolist(), inst.engine) == ([0], engine)


def test_the_budget_is_checked():
    """Before it is used."""
    with pytest.raises(ValueError, match="kv_budget = 0 but must be"):
        trace().to_instance(0)
