"""Arrivals by name: rates, shapes and seeds."""

from __future__ import annotations

import numpy as np
import pytest

from online.arrivals import ARRIVALS, arrive, default_kind, mean_rate
from sortedf.traces import Trace

N = 20_000
TRACE = Trace(np.full(N, 5), np.full(N, 3), np.linspace(0, 1000, N) ** 1.5)
DRAWN = ["batches", "gamma", "on-off", "poisson"]


@pytest.mark.parametrize("kind", sorted(set(ARRIVALS) - {"at-once"}))
def test_the_rate_is_met(kind):
    """On average as many a second as were asked for, in order, the first at 0."""
    trace = arrive(TRACE, kind, rate=12.5, seed=1)
    assert mean_rate(trace) == pytest.approx(12.5, rel=0.15)
    assert trace.arrival_s[0] == 0
    assert (np.diff(trace.arrival_s) >= 0).all()
    assert (trace.prefill == TRACE.prefill).all()


@pytest.mark.parametrize("kind", sorted(ARRIVALS))
def test_same_seed_same_arrivals(kind):
    """And another one where something is drawn."""
    one, two, three = (arrive(TRACE, kind, rate=2.0, seed=s) for s in (7, 7, 8))
    assert one.arrival_s.tobytes() == two.arrival_s.tobytes()
    drawn = kind in ("poisson", "gamma", "on-off", "sessions")
    assert (one.arrival_s.tobytes() == three.arrival_s.tobytes()) != drawn


def burstiness(trace: Trace) -> float:
    gaps = np.diff(trace.arrival_s)
    return float(gaps.std() / gaps.mean())


def test_shapes():
    """Poisson gaps vary by their mean, Gamma's as asked for, on-off's by more."""
    assert burstiness(arrive(TRACE, "poisson", rate=3.0)) == pytest.approx(1, rel=0.05)
    for cv in (0.2, 1.0, 3.0):
        found = burstiness(arrive(TRACE, "gamma", rate=3.0, cv=cv))
        assert found == pytest.approx(cv, rel=0.1)
    assert burstiness(arrive(TRACE, "on-off", rate=3.0, on_s=5, off_s=45)) > 2


def test_replay_keeps_the_shape():
    """Twice the rate is the same in half the time; no rate is as recorded."""
    own = mean_rate(TRACE)
    fast = arrive(TRACE, "trace", rate=2 * own)
    assert fast.arrival_s == pytest.approx(TRACE.arrival_s / 2)
    assert (arrive(TRACE, "trace").arrival_s == TRACE.arrival_s).all()


def test_so_many_at_a_time():
    """Two thousand at once, and the next when their time is up."""
    times = arrive(TRACE, "batches", rate=100.0).arrival_s
    assert np.unique(times).tolist() == [20.0 * k for k in range(10)]
    assert not arrive(TRACE, "at-once").arrival_s.any()


def test_default_kind():
    """Recorded times are not thrown away, and a backlog stays one."""
    backlog = Trace([5], [3])
    assert default_kind(TRACE, has_rate=True) == "trace"
    assert default_kind(backlog, has_rate=True) == "poisson"
    assert default_kind(backlog, has_rate=False) == "at-once"


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("sometimes", {}, "unknown kind of arrivals 'sometimes'; choose one of: at-on"),
        ("poisson", {}, "arrivals 'poisson' need a rate"),
        ("poisson", {"rate": 0.0}, "rate = 0.0 but must be a number above 0"),
        ("poisson", {"rate": float("inf")}, "rate = inf"),
        ("gamma", {"rate": 1.0, "cv": -1}, "cv = -1 but must be"),
        ("gamma", {"rate": 1.0, "vc": 1}, "no option 'vc'; its options: cv"),
        ("poisson", {"rate": 1.0, "cv": 1}, "its options: none"),
        ("batches", {"rate": 1.0, "size": 0}, "size = 0"),
        ("on-off", {"rate": 1.0, "on_s": 0}, "on_s = 0"),
    ],
)
def test_mistakes(kind, options, message):
    """What was wrong and what is allowed."""
    with pytest.raises(ValueError, match=message):
        arrive(TRACE, kind, **options)


def test_a_backlog_cannot_be_replayed_faster():
    """There is nothing to speed up."""
    with pytest.raises(ValueError, match="has no arrival times"):
        arrive(Trace([5], [3]), "trace", rate=1.0)


def test_bursts_beyond_all_measure_are_refused():
    with pytest.raises(ValueError, match="cv = 1e\\+200 but must be at most 100"):
        arrive(TRACE, "gamma", rate=1.0, cv=1e200)
