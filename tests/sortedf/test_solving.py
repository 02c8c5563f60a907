"""Every method gives a schedule that the checker accepts and no bound refutes."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lp import dual
from sortedf import (
    METHODS,
    EngineModel,
    Instance,
    Status,
    bound,
    check,
    compare,
    generate,
    methods_for,
    place,
    solve,
)
from sortedf.groups import table
from sortedf.improve import Objective, improving
from sortedf.improve.annealing import anneal
from sortedf.methods import RULES, best_list
from sortedf.options import Options
from sortedf.stop import Rounds
from tests import naive
from tests.strategies import engines, examples, instances, shared_instances

CORE = ("auto", "fcfs", "mc-sf", "total-size", "svf", "lpt")
CORE += ("sorted-f", "exact", "exact-dp", "local-swap", "quantile-greedy")
CORE += ("sorted-f-co-start",)


SHARED = [name for name, method in METHODS.items() if method.shared]


@examples(25)
@given(shared_instances(max_requests=4, max_length=5), st.integers(0, 2))
def test_methods_for_shared_prefixes_are_not_below_the_optimum(instance, backfill):
    """The checker, which collects what is held, agrees; "auto" is not above any."""
    least = naive.best_tel(instance)
    assert set(SHARED) >= set(methods_for(instance)) or instance.prefixes is None
    best = solve(instance, "auto").tel
    for name in ("svf", "depth-first", "longest-prefix", "k-lpm", "subtree-volume"):
        result = solve(instance, name, backfill=backfill)
        report = check(instance, result.schedule)
        assert report.feasible
        assert report.tel == result.tel >= least >= result.lower_bound
        assert best <= solve(instance, name).tel or instance.prefixes is None
    assert best >= least


def test_methods_blind_to_prefixes_are_refused():
    """By name, with those that know them; and what their search does not have."""
    trace = generate("document-questions", 40, seed=1, per_prefix=4)
    engine = EngineModel(8192, prefix_caching=True)
    instance, _ = trace.to_instance(engine=engine)
    with pytest.raises(ValueError, match="'improve' does not know shared prefixes; "):
        solve(instance, "improve")
    with pytest.raises(ValueError, match="'milp' does not know shared prefixes; "):
        compare(instance, ["svf", "milp"])
    for options in ({"jobs": 2}, {"stop": Rounds(1)}, {"objective": Objective()}):
        with pytest.raises(ValueError, match="not for requests with shared prefixes"):
            solve(instance, **options)


def test_subtrees_kept_together_beat_other_orders():
    """And sharing is worth much: the same requests without it take longer."""
    trace = generate("document-questions", 200, seed=1)
    engine = EngineModel(16384, prefix_caching=True)
    instance, _ = trace.to_instance(engine=engine)
    found = {r.method: r.tel for r in compare(instance, bound="none", seed=1)}
    assert found["auto"] < 0.99 * found["subtree-volume"]
    for name in ("svf", "depth-first", "longest-prefix", "k-lpm", "fcfs"):
        assert found["subtree-volume"] < 0.9 * found[name]
    alone = solve(instance.replace(prefixes=None), "svf", backfill=20, bound="none")
    assert found["auto"] < 0.5 * alone.tel


@pytest.mark.kernel
@given(instances(engine=engines()), st.integers(0, 3), st.integers(0, 2))
def test_every_method_is_feasible_and_not_below_the_bound(instance, backfill, seed):
    """The checker agrees with the result, and TEL is at least the proven bound."""
    for name in CORE:
        result = solve(instance, name, backfill=backfill, seed=seed, bound="fluid")
        report = check(instance, result.schedule)
        assert report.feasible
        assert report.tel == result.tel >= result.lower_bound


@examples(40)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_no_method_beats_the_optimum_and_optimal_means_optimal(instance):
    """Where the status says optimal, exhaustive search finds nothing better."""
    least = naive.best_tel(instance)
    for result in compare(instance):
        assert result.tel >= least
        if result.status is Status.OPTIMAL:
            assert result.tel == least


@given(instances(max_requests=8, arrivals=False))
def test_exact_dp_order_is_brute_force_group_by_group(instance):
    """The whole order, not only the first group."""
    order = RULES["exact-dp"](instance, Options())
    assert order.tolist() == naive.sorted_f_order(instance)


@given(instances(arrivals=False), st.integers(0, 5))
def test_backlog_that_fits_at_once_is_solved_to_optimality(instance, backfill):
    """Every method starts everything at once: TEL is the sum of the answers, gap 0."""
    roomy = instance.replace(kv_budget=int(instance.peak.sum()))
    for name in CORE:
        result = solve(roomy, name, backfill=backfill, bound="fluid")
        assert result.tel == int(instance.decode.sum())
        assert result.gap == 0
        assert result.status is Status.OPTIMAL


def key_of(name: str, instance: Instance, i: int) -> int:
    s, o = int(instance.prefill[i]), int(instance.decode[i])
    return {
        "fcfs": int(instance.arrival[i]),
        "mc-sf": o,
        "total-size": s + o,
        "svf": sum(s + j for j in range(1, o + 1)),
        "lpt": -o,
    }[name]


@pytest.mark.parametrize("name", ["fcfs", "mc-sf", "total-size", "svf", "lpt"])
@given(instance=instances())
def test_baselines_sort_by_their_key_then_id(name, instance):
    """The order of each baseline is its definition."""
    ids = range(instance.num_requests)
    expected = sorted(ids, key=lambda i: (key_of(name, instance, i), i))
    assert RULES[name](instance, Options()).tolist() == expected


@given(instances(max_requests=20))
def test_auto_is_never_worse_than_a_list_rule_it_tries(instance):
    """auto keeps the best of its portfolio over its windows."""
    best = solve(instance, "auto", bound="none").tel
    for name in ("svf", "sorted-f", "mc-sf", "total-size", "fcfs"):
        assert best <= solve(instance, name, bound="none").tel
        assert best <= solve(instance, name, backfill=20, bound="none").tel


def mixed(n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.2
    prefill = np.where(long, rng.integers(400, 900, n), rng.integers(1, 60, n))
    return Instance(prefill, rng.integers(1, 120, n), 4000)


def test_same_seed_same_schedule():
    """Results repeat: sampling is the only chance, and it is seeded."""
    instance = mixed(600, 3)
    for name in ("quantile-greedy", "sorted-f", "auto"):
        first, second = (solve(instance, name, seed=7).schedule for _ in range(2))
        assert first.start.tolist() == second.start.tolist()


def test_zero_time_limit_gives_the_first_schedule_and_says_so():
    """A limit that is over at once still gives something feasible."""
    instance = mixed(300, 1)
    result = solve(instance, "auto", time_limit=0)
    assert result.status is Status.TIME_LIMIT
    assert check(instance, result.schedule).feasible
    assert result.found_by == "svf"


def test_compare_uses_one_bound_and_keeps_the_order():
    """Rows come in the order asked for, all against the same bound."""
    instance = mixed(120, 2)
    results = compare(instance, ["svf", "fcfs", "auto"], bound="dual")
    assert [result.method for result in results] == ["svf", "fcfs", "auto"]
    assert {result.lower_bound for result in results} == {bound(instance, "dual").value}
    assert "exact-dp" not in methods_for(instance)
    assert {"svf", "auto", "sorted-lp"} <= set(methods_for(instance))


def test_progress_is_told():
    """Sorted-F reports how many requests are in groups; compare how many methods."""
    seen = []
    solve(mixed(200, 1), "sorted-f", progress=lambda *step: seen.append(step))
    assert seen[-1] == (200, 200)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    seen.clear()
    compare(mixed(20, 1), ["svf", "fcfs"], progress=lambda *step: seen.append(step))
    assert seen == [(1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"method": "magic"},
            "unknown method 'magic'; choose one of: alpha-points, area, auto",
        ),
        ({"bound": "magic"}, "unknown bound 'magic'; choose one of: .*fluid"),
        ({"backfill": -1}, "backfill = -1 but must be an integer from 0"),
        ({"seed": -1}, "seed = -1 but must be an integer from 0"),
        ({"time_limit": -1.0}, "time_limit_s = -1.0 but must be a number of seconds"),
        ({"time_limit": float("nan")}, "time_limit_s = nan"),
    ],
)
def test_bad_options_are_refused(options, message):
    """Each message names the option and what is allowed."""
    with pytest.raises(ValueError, match=message):
        solve(Instance([1], [1], 2), **options)


def test_no_bound_no_gap():
    """None is unknown, never 0 or infinity."""
    result = solve(mixed(30, 0), "svf", bound="none")
    assert result.lower_bound is None
    assert result.gap is None
    assert result.status is Status.FEASIBLE


def test_empty_instance_is_optimal():
    """No requests: TEL 0, gap 0, optimal."""
    for name in METHODS:
        result = solve(Instance([], [], 5), name)
        assert (result.tel, result.gap, result.status) == (0, 0.0, Status.OPTIMAL)


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ([0], "order has 1 entries but there are 2 requests"),
        ([0, 0], "order names request 0 more than once"),
        ([0, 2], r"order\[1\] = 2 but must be an integer from 0 to 1"),
    ],
)
def test_placement_refuses_what_is_no_permutation(order, message):
    """A list rule of one's own is checked like everything else."""
    with pytest.raises(ValueError, match=message):
        place(Instance([1, 1], [1, 1], 4), order)


def test_summary_is_one_line_with_the_gap():
    """For people."""
    text = solve(mixed(30, 0), "svf").summary()
    assert text.startswith("svf: mean latency ")
    assert "above the best possible" in text


def test_auto_takes_a_better_schedule_that_the_bound_saw():
    """Branch and bound finds schedules as well, and they are not thrown away."""
    trace = generate("mix", 16, long_share=0.5, seed=0)
    instance = Instance(trace.prefill, np.minimum(trace.decode, 600), 8192)
    listed = solve(instance, "best-list", bound="none")
    found = solve(instance, stop=Rounds(0))
    assert found.tel < listed.tel
    assert found.found_by == "branching"
    assert check(instance, found.schedule).feasible
    assert solve(instance, "best-list").found_by == listed.found_by
    assert solve(instance, backfill=0).backfill == 0


def test_auto_keeps_the_schedule_that_keeps_the_cap():
    """Branching minimises TEL and knows no cap; its schedule took the place of ours.

    TEL 28 is the least, but one request waits longer than 10 steps then. `auto` looked
    at TEL alone and threw away the schedule of TEL 31 that the search had found within
    the cap.
    """
    engine = EngineModel(11, max_batched_tokens=7)
    instance = Instance([6, 4, 1, 1, 2], [4, 3, 2, 3, 5], engine=engine)
    capped = Objective(max_latency=10)
    results = [solve(instance, name, objective=capped) for name in ("improve", "auto")]
    assert [(result.tel, result.over_cap) for result in results] == [(31, 0)] * 2


def pressed(*arguments, **options):
    """Ctrl-C where it falls into this call."""
    raise KeyboardInterrupt


def test_an_interrupted_bound_is_not_followed_by_a_long_search(monkeypatch):
    """Who presses Ctrl-C in the bound wants an answer, not to wait for the search."""
    instance = mixed(60, 1)
    monkeypatch.setattr(dual._Stage, "climb", pressed)
    found = bound(instance)
    assert found.interrupted
    assert found.value > 0
    monkeypatch.setattr(improving, "Beam", pressed)
    result = solve(instance, time_limit=60)
    assert result.status is Status.TIME_LIMIT
    assert result.found_by == "svf"
    assert result.lower_bound == found.value
    with pytest.raises(KeyboardInterrupt):
        compare(instance, ["svf", "auto"])


def test_an_interrupted_stretch_leaves_a_bound_for_the_others(monkeypatch):
    """They are bounded in closed form, and the sum is proven."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 60, (2, 12))
    instance = Instance(*lengths, 150, np.repeat([0, 10**6], 6))
    whole = bound(instance)
    monkeypatch.setattr(dual._Stage, "climb", pressed)
    found = bound(instance)
    assert found.interrupted
    assert 0 < found.value <= whole.value


def test_an_interrupted_search_gives_its_best(monkeypatch):
    """All that a minute of search had found was lost."""
    instance = mixed(60, 1)
    rounds = []

    def second_time(*arguments):
        rounds.append(1)
        return anneal(*arguments) if len(rounds) == 1 else pressed()

    monkeypatch.setattr(improving, "anneal", second_time)
    listed = solve(instance, "best-list", bound="none")
    result = solve(instance, time_limit=60, bound="fluid")
    assert result.status is Status.TIME_LIMIT
    assert result.found_by == "improve"
    assert result.tel < listed.tel
    assert check(instance, result.schedule).feasible


def test_interrupted_lists_give_their_best(monkeypatch):
    """The rules that are placed count; with none there is nothing to give."""
    monkeypatch.setattr(best_list, "RULES", {**RULES, "mc-sf": pressed})
    result = solve(mixed(30, 1), time_limit=60, bound="none")
    assert (result.status, result.found_by) == (Status.TIME_LIMIT, "svf")
    monkeypatch.setattr(best_list, "RULES", {**RULES, "svf": pressed})
    with pytest.raises(KeyboardInterrupt):
        solve(mixed(30, 1), bound="none")


def test_an_interrupt_ends_a_comparison_with_what_is_done(monkeypatch):
    """Rows of minutes were lost with the one that was interrupted."""
    instance = mixed(60, 1)
    monkeypatch.setattr(improving, "anneal", pressed)
    results = compare(instance, ["svf", "auto", "fcfs"], bound="fluid")
    assert [result.method for result in results] == ["svf", "auto"]
    assert results[1].status is Status.TIME_LIMIT
    monkeypatch.setattr(table, "place", pressed)
    results = compare(instance, ["svf", "sorted-f", "fcfs"], bound="fluid")
    assert [result.method for result in results] == ["svf"]
    with pytest.raises(KeyboardInterrupt):
        compare(instance, ["sorted-f", "fcfs"], bound="fluid")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": [0, 5]}, "start must be a Schedule, not list; .* Schedule"),
        ({"time_limit": "3"}, "time_limit_s must be a number of seconds.* but is '3'"),
        ({"seed": "3"}, "seed must be an integer but is '3'"),
    ],
)
def test_options_of_another_type_are_refused(options, message):
    """They ended in "'>=' not supported" or in a missing attribute."""
    with pytest.raises(TypeError, match=message):
        solve(Instance([1, 1], [1, 1], 4), **options)


def test_whole_floats_are_numbers_of_jobs_and_seeds():
    """They passed the check, and then were no count of threads and no seed."""
    instance = mixed(20, 1)
    found = solve(instance, seed=np.float64(1.0), jobs=2.0, backfill=None)
    again = solve(instance, seed=1, jobs=2)
    assert found.schedule.start.tolist() == again.schedule.start.tolist()
    options = Options(seed=1.0, jobs=np.int64(2), backfill=3.0)
    values = (options.seed, options.jobs, options.backfill)
    assert [type(value) for value in values] == [int] * 3
    with pytest.raises(ValueError, match=r"jobs = 5000 but must be .* 1 to 1024"):
        solve(instance, jobs=5000)


def test_weights_for_other_requests_are_refused():
    """Without a bound nothing was checked, until zip() complained of its arguments."""
    objective = Objective(weight=[1, 2, 3])
    instance = Instance([1, 1], [1, 1], 2)
    with pytest.raises(ValueError, match="3 entries but there are 2 requests"):
        solve(instance, objective=objective, bound="none")


@pytest.mark.parametrize("limit", [None, 1.0])
def test_the_longest_streams_are_solved_from_lists(limit):
    """A day of milliseconds asked for gigabytes of prices, one for each step."""
    instance = Instance([3] * 6, [2, 3] * 3, 6, [0, 0, 0, 10**12, 10**12, 10**12])
    began = time.perf_counter()
    result = solve(instance, time_limit=limit)
    assert time.perf_counter() - began < 5
    assert check(instance, result.schedule).feasible
    assert result.lower_bound <= result.tel
