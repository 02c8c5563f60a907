"""The search: feasible, never worse than its start, and true to its own accounts."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance, Schedule, check, place, solve
from sortedf.improve import Objective, improve, trail
from sortedf.improve import improving as improving_module
from sortedf.improve.beam import Beam, children_of
from sortedf.improve.guide import make_guide
from sortedf.improve.guide_kernels import (
    ARRIVAL,
    DEADLINE,
    DECODE,
    DUE,
    PREFILL,
    WEIGHT,
    Guide,
    request_cost,
)
from sortedf.improve.running_kernels import insert_running, measure_room, wait_of
from sortedf.stop import Rounds, TargetGap, TimeLimit
from tests import naive
from tests.strategies import engines, examples, instances

TEL = Objective()


def mixed(n: int, seed: int, budget: int = 4000) -> Instance:
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.2
    prefill = np.where(long, rng.integers(400, 900, n), rng.integers(1, 60, n))
    return Instance(prefill, rng.integers(1, 120, n), budget)


@pytest.mark.kernel
@examples(40)
@given(instances(engine=engines()), st.integers(0, 3))
def test_schedules_are_feasible(instance, seed):
    """Arrivals, blocks and caps included, and every request is started once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(improving_module, "MOVES", 10)
        found = improve(instance, Rounds(1), seed=seed)
    assert check(instance, found.schedule).feasible
    assert found.history[-1][1] == found.schedule.tel


@examples(30)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_nothing_beats_the_optimum(instance):
    """Exhaustive search finds nothing better; without blocks nearly always the same."""
    found = improve(instance, Rounds(2))
    assert found.schedule.tel >= naive.best_tel(instance)


@given(instances(), st.randoms())
def test_never_worse_than_the_start(instance, random):
    """Whatever the start is, and it is kept where nothing better is found."""
    order = list(range(instance.num_requests))
    random.shuffle(order)
    start = place(instance, order)
    found = improve(instance, Rounds(1), start=start)
    assert found.schedule.tel <= start.tel
    assert found.found == (found.schedule is not start)
    again = improve(instance, Rounds(1), start=found.schedule)
    assert again.found == (again.schedule.tel < found.schedule.tel)
    assert again.found == (again.schedule is not found.schedule)


def naive_cost(guide: Guide, i: int, t: int, lam: list[float]) -> float:
    """Cost of a start, step by step."""
    s, o = int(guide.request[i, PREFILL]), int(guide.request[i, DECODE])
    cost = float(guide.request[i, WEIGHT]) * (t + o)
    for j in range(1, o + 1):
        if t + j < len(lam):
            cost += lam[t + j] * (s + j)
    late = max(0, t + o - int(guide.request[i, DEADLINE]))
    return cost + guide.late_cost * late


def prices_of(guide: Guide) -> list[float]:
    return [0.0, *np.diff(guide.price[:, 0]).tolist()]


@pytest.mark.kernel
@examples(40)
@given(instances(max_requests=6), st.none() | st.integers(1, 30))
def test_costs_are_those_of_the_twin(instance, cap):
    """Two differences of sums give what a loop over the steps gives."""
    guide, _ = make_guide(instance, Objective(max_latency=cap))
    lam = prices_of(guide)
    for i in range(instance.num_requests):
        for t in range(int(guide.request[i, ARRIVAL]), len(lam) + 3):
            fast = request_cost(guide.request, guide.price, guide.late_cost, i, t)
            assert fast == pytest.approx(naive_cost(guide, i, t, lam))
            assert fast >= guide.least[i] - 1e-9 * abs(fast)


@pytest.mark.kernel
@examples(30)
@given(instances(max_requests=8), st.integers(0, 5))
def test_what_a_search_says_it_lost_is_what_it_lost(instance, seed):
    """Costs of the starts and of free memory, from the finished schedule."""
    guide, _ = make_guide(instance, TEL)
    search = Beam(guide, 3, seed)
    while not search.done:
        search.advance()
    start = search.starts(earliest_end=False).tolist()
    lam = prices_of(guide)
    ranks = range(len(start))
    lost = sum(naive_cost(guide, i, start[i], lam) - guide.least[i] for i in ranks)
    s, o = guide.request[:, PREFILL].tolist(), guide.request[:, DECODE].tolist()
    for t in range(1, len(lam)):
        held = sum(
            s[i] + t - start[i] for i in ranks if start[i] < t <= start[i] + o[i]
        )
        lost += lam[t] * (guide.budget - held)
    assert search.cost == pytest.approx(lost, abs=1e-6)


@pytest.mark.kernel
@examples(60)
@given(instances(engine=engines(), arrivals=False), st.data())
def test_a_request_fits_if_the_twin_says_so(instance, data):
    """Given what runs; with blocks it may be refused although it would fit."""
    guide, order = make_guide(instance, TEL)
    by_rank = instance.subset(order)
    start: dict[int, int] = {}
    room, end, used = np.empty((3, instance.num_requests + 1), dtype=np.int64)
    t = count = 0
    for i in range(instance.num_requests):
        t += data.draw(st.integers(0, 4))
        keep = [k for k in range(count) if end[k] > t]
        end[: len(keep)], used[: len(keep)] = end[keep], used[keep]
        count = len(keep)
        measure_room(guide.budget, end, used, count, room)
        wait = wait_of(
            guide.request, guide.budget, guide.block, i, t, end, used, count, room
        )
        uncapped = by_rank.replace(engine=EngineModel(by_rank.kv_budget, guide.block))
        fits = naive.is_feasible(uncapped, {**start, i: t})
        assert (wait == 0) <= fits
        if guide.block == 1:
            assert (wait == 0) == fits
        if wait == 0:
            s, o = int(by_rank.prefill[i]), int(by_rank.decode[i])
            insert_running(guide.block, s, o, t, end, used, count)
            count += 1
            start[i] = t


def test_due_is_the_cheapest_start_of_a_backlog():
    """Costs are convex there, so that a coarse scan and bisection find it."""
    guide, _ = make_guide(mixed(60, 1), TEL)
    assert (np.diff(guide.request[:, DUE]) >= 0).all()
    for i in range(60):
        costs = [
            request_cost(guide.request, guide.price, guide.late_cost, i, t)
            for t in range(len(guide.price))
        ]
        assert guide.least[i] == pytest.approx(min(costs))


def test_same_seed_same_schedule():
    """With one thread and with two; another seed finds another one."""
    instance = mixed(300, 1)
    for jobs in (1, 2):
        first, second = (
            improve(instance, Rounds(2), seed=5, jobs=jobs).schedule for _ in range(2)
        )
        assert first.start.tolist() == second.start.tolist()
    other = improve(instance, Rounds(2), seed=6).schedule
    assert other.start.tolist() != first.start.tolist()


def test_it_gains_on_every_list():
    """On a tight mix of small and large, a lot."""
    instance = mixed(400, 2)
    lists = solve(instance, "best-list", bound="none")
    found = solve(instance, "improve", bound="none")
    assert check(instance, found.schedule).feasible
    assert found.tel < 0.99 * lists.tel
    assert found.found_by == "improve"
    assert found.backfill is None


def test_settled_levels_change_nothing(monkeypatch):
    """Forgetting the common past early gives the same schedule."""
    instance = mixed(300, 3)
    expected = improve(instance, Rounds(1)).schedule.start.tolist()
    monkeypatch.setattr(trail, "LEVELS", 2)
    assert improve(instance, Rounds(1)).schedule.start.tolist() == expected


def test_many_starts_in_one_level():
    """Where everything fits at once, the first level starts everything."""
    instance = mixed(300, 4)
    roomy = instance.replace(kv_budget=int(instance.peak.sum()))
    assert improve(roomy, Rounds(1)).schedule.start.tolist() == [0] * 300


def test_no_time_still_gives_a_schedule():
    """A round that time cuts off is finished with one partial schedule."""
    instance = mixed(300, 5)
    found = improve(instance, TimeLimit(0))
    assert check(instance, found.schedule).feasible
    assert found.rounds == 1
    start = place(instance, np.arange(300))
    assert improve(instance, TimeLimit(0), start=start).schedule is start


def test_rounds_get_narrower_when_time_is_short(monkeypatch):
    """No round is begun that cannot end in time; by a clock that counts work."""
    widths, now_s = [], [0.0]

    class Counted(Beam):
        def __init__(self, guide: Guide, width: int, seed: int) -> None:
            widths.append(width)
            super().__init__(guide, width, seed)

        def advance(self) -> None:
            now_s[0] += self._width * children_of(self._width)
            super().advance()

    monkeypatch.setattr(improving_module, "Beam", Counted)
    monkeypatch.setattr(improving_module._Search, "_elapsed", lambda _: now_s[0])
    instance = mixed(301, 6)
    improve(instance, Rounds(3))
    assert widths == [7, 14, 28]
    three_s, now_s[0] = now_s[0], 0.0
    widths.clear()
    improve(instance, TimeLimit(1.5 * three_s))
    assert widths[:3] == [7, 14, 28]
    assert len(widths) > 3
    assert max(widths[3:]) < 56
    assert now_s[0] <= 1.6 * three_s


@pytest.mark.slow
@pytest.mark.parametrize("fixed_s", [0, 5, 14])
def test_large_searches_end_in_time(monkeypatch, fixed_s):
    """A beam that time would cut off is narrowed early enough to be done in time.

    With 100,000 requests even a beam of width 1 takes seconds: searches went on for up
    to 10 seconds after a limit of 120, to finish what could no longer be any good.
    """
    now_s, level_s = [0.0], list[float]()

    class Slow(Beam):
        def advance(self) -> None:
            level_s.append(fixed_s + self._width * children_of(self._width))
            now_s[0] += level_s[-1]
            super().advance()

    improving = "sortedf.improve.improving"
    monkeypatch.setattr(f"{improving}.Beam", Slow)
    monkeypatch.setattr(f"{improving}._Search._elapsed", lambda _: now_s[0])
    instance = mixed(301, 6)
    improve(instance, Rounds(1))
    first_s = now_s[0]
    for share in np.linspace(1, 8, 40):
        now_s[0] = 0.0
        level_s.clear()
        found = improve(instance, TimeLimit(share * first_s))
        assert now_s[0] <= share * first_s + max(level_s)
        assert found.rounds > 1 or share < 3


def test_search_ends_where_the_bound_is_met():
    """Stop rules see value and bound."""
    instance = mixed(40, 7)
    best = improve(instance, Rounds(3)).schedule
    found = improve(instance, Rounds(9), start=best, bound=best.tel)
    assert found.rounds == 0
    assert improve(instance, TargetGap(9), bound=best.tel // 2).rounds == 1


def test_the_caller_hears_of_every_better_schedule():
    """Values fall, and the bound comes with them."""
    seen: list[tuple[int, int | None]] = []
    instance = mixed(200, 8)
    result = solve(instance, bound="fluid", on_better=lambda *news: seen.append(news))
    values = [value for value, _ in seen]
    assert values == sorted(set(values), reverse=True)
    assert values[-1] == result.tel
    assert {bound for _, bound in seen} == {result.lower_bound}


def test_a_start_that_is_no_schedule_is_refused():
    """Of another instance, or against the rules."""
    instance, other = mixed(20, 9, 1200), mixed(20, 10)
    foreign = place(other, np.arange(20))
    with pytest.raises(ValueError, match="another instance"):
        solve(instance, "improve", start=foreign)
    with pytest.raises(ValueError, match="no feasible schedule: step"):
        solve(instance, "improve", start=Schedule(instance, [0] * 20))


def test_weights_move_requests_forward():
    """Weighted TEL is what is minimised, exactly."""
    instance = mixed(120, 11)
    weight = np.where(np.arange(120) % 3 == 0, 20, 1)
    objective = Objective(weight=weight)
    plain = improve(instance, Rounds(2)).schedule
    found = improve(instance, Rounds(2), objective=objective)
    assert check(instance, found.schedule).feasible
    value = sum(
        int(w) * int(c) for w, c in zip(weight, found.schedule.latency, strict=True)
    )
    assert found.history[-1][1] == value == objective.value(found.schedule)
    assert value < objective.value(plain)


def test_makespan_is_shorter_than_that_of_lists():
    """At least close to the volume over the budget."""
    instance = mixed(300, 12)
    found = improve(instance, Rounds(2), objective=Objective(makespan=True)).schedule
    assert check(instance, found).feasible
    lists = [solve(instance, "lpt", backfill=w, bound="none") for w in (0, 20)]
    assert found.makespan <= min(result.schedule.makespan for result in lists)


def test_a_cap_on_latency_is_kept():
    """All below the cap, or nearly all, for some TEL."""
    instance = mixed(200, 13)
    free = improve(instance, Rounds(3)).schedule
    cap = Objective(max_latency=int(0.95 * free.makespan))
    found = improve(instance, Rounds(3), objective=cap).schedule
    assert check(instance, found).feasible
    assert cap.excess(found) == 0 < cap.excess(free)
    assert found.latency.max() <= 0.95 * free.makespan
    tail = Objective(max_latency=int(np.percentile(free.latency, 99)), share=0.99)
    found = improve(instance, Rounds(3), objective=tail).schedule
    assert check(instance, found).feasible
    assert tail.excess(found) == 0


def test_share_counts_requests_exactly():
    """One of a hundred may be late at 0.99, in spite of binary fractions."""
    assert Objective(max_latency=1, share=0.99).may_be_late(100) == 1
    assert Objective(max_latency=1, share=0.99).may_be_late(99) == 0
    assert Objective(max_latency=1).may_be_late(100) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight": [-1]}, r"weight\[0\] = -1"),
        ({"weight": [1], "makespan": True}, "no meaning"),
        ({"max_latency": 0}, "max_latency = 0"),
        ({"share": 0.0}, "share = 0.0"),
        ({"share": 1.5}, "share = 1.5"),
    ],
)
def test_bad_objectives_are_refused(options, message):
    """Each message names the value."""
    with pytest.raises(ValueError, match=message):
        Objective(**options)


def test_weights_must_be_one_for_each_request():
    """The message has both numbers."""
    with pytest.raises(ValueError, match="2 entries but there are 1 requests"):
        improve(Instance([1], [1], 4), Rounds(1), objective=Objective(weight=[1, 2]))


def test_no_requests():
    """An empty schedule, whatever the rules say."""
    found = improve(Instance([], [], 5), Rounds(1))
    assert found.schedule.tel == 0


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_the_search_with_its_best(monkeypatch, jobs):
    """In the second round, by a thread's narrow end or at once; before, it raises."""
    instance = mixed(80, 1)
    rounds = []

    class Interrupted(Beam):
        def advance(self):
            if not rounds:
                super().advance()
                return
            if threading.current_thread() is not threading.main_thread():
                super().advance()
            raise KeyboardInterrupt

    def anneal(guide, start, moves, seed, stopped):
        rounds.append(1)
        return start

    monkeypatch.setattr(improving_module, "Beam", Interrupted)
    monkeypatch.setattr(improving_module, "anneal", anneal)
    found = improve(instance, Rounds(9), jobs=jobs)
    assert (found.interrupted, found.rounds) == (True, 1)
    assert check(instance, found.schedule).feasible
    with pytest.raises(KeyboardInterrupt):
        improve(instance, Rounds(9), jobs=jobs)
