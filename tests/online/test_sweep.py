"""Many runs: the same figures in one process and in several."""

from __future__ import annotations

import builtins

import pytest

from online.metrics import measure
from online.named import Named, parse_many
from online.simulator import simulate
from online.slo import attainment, tightest_limit_s
from online.sweep import Run, Setting, execute, grid, sweep
from sortedf.engine_model import EngineModel
from sortedf.errors import MissingExtraError
from sortedf.generator import generate
from sortedf.traces import Trace

SETTING = Setting(generate("mix", 60, seed=1), EngineModel.vllm(16492))
POLICIES = parse_many("fcfs,svf")


def test_a_grid_has_every_combination():
    """Policies last, so that they can be compared early."""
    runs = grid(POLICIES, loads=(0.5, 1.0), seeds=range(3))
    assert len(runs) == 12
    assert len(set(map(str, runs))) == 12
    assert runs[0] == Run(Named("fcfs"), 0.5, None, 0)
    assert runs[1] == Run(Named("svf"), 0.5, None, 0)


def test_policies_meet_the_same_arrivals():
    """Else there is nothing to compare."""
    setting = Setting(SETTING.trace, SETTING.rules, keep_logs=True)
    fcfs, svf, other = sweep(
        setting, [*grid(POLICIES, rate=0.1), Run(Named("fcfs"), rate=0.1, seed=1)]
    )
    assert fcfs.log is not None
    assert svf.log is not None
    assert other.log is not None
    assert (fcfs.log.arrival_s == svf.log.arrival_s).all()
    assert (fcfs.log.arrival_s != other.log.arrival_s).any()
    assert execute(SETTING, Run(Named("fcfs"), rate=0.1)).log is None


def test_joblib_gives_the_same(monkeypatch):
    """In any of its backends."""
    joblib = pytest.importorskip("joblib")
    runs = grid(POLICIES, loads=(0.5, 1.5), seeds=range(2))
    seen = []
    plain = sweep(SETTING, runs, progress=lambda *at: seen.append(at))
    assert seen == [(k, 8) for k in range(1, 9)]
    with joblib.parallel_config(backend="threading"):
        shared = sweep(SETTING, runs, jobs=2)
    assert [one.metrics for one in plain] == [one.metrics for one in shared]
    assert [one.run for one in plain] == [one.run for one in shared]


def test_without_joblib_the_extra_is_named(monkeypatch):
    """A plain loop needs nothing."""
    find = builtins.__import__

    def missing(name, *arguments, **options):
        if name == "joblib":
            raise ImportError(name)
        return find(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    runs = grid(POLICIES, rate=1.0)
    assert len(sweep(SETTING, runs)) == 2
    with pytest.raises(MissingExtraError, match=r"sortedf\[cluster\]"):
        sweep(SETTING, runs, jobs=2)


def test_slo_attainment():
    """The share within a limit, and the limit that a share is within."""
    rules = EngineModel.vllm(4096)
    log = simulate(generate("chat", 80, seed=1), "fcfs", rules)
    found = measure(log, rules, SETTING.step_time)
    assert found.ttlt is not None
    limits = [0.0, found.ttlt.p50, found.ttlt.p99, found.ttlt.max]
    shares = attainment(log, "TTLT", limits).tolist()
    assert shares[0] == 0
    assert 0.5 <= shares[1] < 0.6
    assert shares[2] >= 0.99
    assert shares[3] == 1
    assert tightest_limit_s(log, "TTLT", 0.5) == found.ttlt.p50
    assert tightest_limit_s(log, "TTFT", 1.0) == found.ttft.max


def test_who_was_refused_meets_no_limit():
    """However generous it is."""
    trace = generate("chat", 50, seed=1)
    longest = int((trace.prefill + trace.decode).max())
    log = simulate(trace, "fcfs", EngineModel.vllm(longest - 2), drop_oversize=True)
    assert len(log.refused) == 1
    assert attainment(log, "TTFT", [1e9]).tolist() == [0.98]
    assert tightest_limit_s(log, "TTFT", 0.99) is None
    assert tightest_limit_s(log, "TTFT", 0.98) is not None


def test_bounds_of_one_table_are_of_one_kind():
    """A bound of 182 beside `fcfs` held without evictions only; `srpt` reached 108."""
    trace = Trace([1, 105, 105, 105, 105], [100, 1, 1, 1, 1], [0, 20, 40, 60, 80])
    engine = EngineModel(110, eviction="recompute")
    setting = Setting(trace, engine, arrivals=Named("trace"), bound="auto")
    (alone,) = sweep(setting, grid([Named("fcfs")]))
    assert not alone.was_interrupted
    beside, evicting = sweep(setting, grid([Named("fcfs"), Named("srpt")]))
    assert evicting.was_interrupted
    assert evicting.metrics.total_latency < alone.metrics.lower_bound
    for outcome in (beside, evicting):
        assert outcome.metrics.lower_bound <= evicting.metrics.total_latency
