"""Annealing: lists with delays are placed right, and it finds what the beam misses."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import Instance, Schedule, check, generate, place
from sortedf.improve import Objective, improve, improving
from sortedf.improve.annealing import _clear, _line, anneal
from sortedf.improve.annealing_kernels import BLINK, _move, _recreate, anneal_window
from sortedf.improve.beam import most_running
from sortedf.improve.guide import make_guide
from sortedf.improve.guide_kernels import ARRIVAL, DEADLINE, DECODE, WEIGHT, Guide
from sortedf.improve.list_kernels import list_starts, place_next
from sortedf.improve.random_kernels import RANDOM_MODULUS, next_random
from sortedf.stop import Rounds, TimeLimit
from tests import naive
from tests.strategies import engines, examples, instances

TEL = Objective()


def never() -> bool:
    return False


def naive_list(instance: Instance, delay: list[int]) -> list[int]:
    """Try step after step; requests in order of ids."""
    start: dict[int, int] = {}
    last = 0
    for i in range(instance.num_requests):
        t = max(last, int(instance.arrival[i]))
        while not naive.is_feasible(instance, {**start, i: t}):
            t += 1
        t += delay[i]
        while not naive.is_feasible(instance, {**start, i: t}):
            t += 1
        start[i] = last = t
    return list(start.values())


@pytest.mark.kernel
@examples(60)
@given(instances(max_requests=8, engine=engines()), st.data())
def test_a_list_is_placed_as_by_the_twin(instance, data):
    """Step by step; with blocks a start may be later, and the schedule is feasible."""
    guide, rank = make_guide(instance, TEL)
    n = instance.num_requests
    delay = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    line = _line(1, most_running(guide))
    start = list_starts(
        guide, np.zeros(n, dtype=np.int64), np.arange(n), np.array(delay), line
    )
    by_rank = instance.subset(rank)
    assert check(by_rank, start).feasible
    if instance.engine.block_size == 1:
        assert start.tolist() == naive_list(by_rank, delay)


@pytest.mark.kernel
@examples(40)
@given(instances(), st.randoms())
def test_every_schedule_is_a_list_with_delays(instance, random):
    """So that annealing can start from any."""
    guide, rank = make_guide(instance, TEL)
    by_rank = instance.subset(rank)
    order = list(range(instance.num_requests))
    random.shuffle(order)
    start = place(by_rank, order).start.copy()
    start += np.argsort(np.argsort(start, kind="stable")) * random.randint(0, 2)
    if check(by_rank, start).feasible:
        assert anneal(guide, start, 10, 1, lambda: True).tolist() == start.tolist()


@pytest.mark.kernel
@examples(25)
@given(instances(max_requests=7, engine=engines()), st.integers(1, 2**31 - 2))
def test_the_value_is_that_of_the_list(instance, seed):
    """What annealing says it found is what a placement from scratch gives."""
    guide, _ = make_guide(instance, TEL)
    n = instance.num_requests
    order, delay = np.arange(n), np.zeros(n, dtype=np.int64)
    line, trial = (_line(n, most_running(guide)) for _ in range(2))
    _clear(line)
    best_order, best_delay = order.copy(), delay.copy()
    least = anneal_window(
        guide, order, delay, 0, line, trial, 30, 9.0, 1.0, 4, seed, np.inf,
        best_order, best_delay,
    )  # fmt: skip
    assert sorted(best_order.tolist()) == list(range(n))
    delay[best_order] = best_delay
    start = list_starts(guide, order, best_order, delay, line)
    end = start + guide.request[:, DECODE]
    assert least == (guide.request[:, WEIGHT] * end).sum()


@given(st.lists(st.integers(), min_size=2, max_size=9), st.data())
def test_a_block_is_moved_and_nothing_else(items, data):
    """Like slicing and joining lists."""
    low = data.draw(st.integers(0, len(items) - 2))
    high = data.draw(st.integers(low + 2, len(items)))
    size = data.draw(st.integers(1, 4))
    cut = low + size % (high - low)
    moved = np.array(items, dtype=object)
    getattr(_move, "py_func", _move)(moved, 0, low, high, size)
    assert moved.tolist() == (
        items[:low] + items[cut:high] + items[low:cut] + items[high:]
    )


@pytest.mark.kernel
@examples(40)
@given(instances(max_requests=8), st.integers(1, RANDOM_MODULUS - 1), st.integers(0, 4))
def test_a_ruined_stretch_is_filled_by_who_can_start_soonest(instance, seed, low):
    """As the twin fills it, who places each list from scratch to see."""
    guide, _ = make_guide(instance, TEL)
    n = instance.num_requests
    low = min(low, n - 1)
    delay = np.zeros(n, dtype=np.int64)
    line = _line(n, most_running(guide))
    room = np.empty(most_running(guide), dtype=np.int64)
    _clear(line)
    for i in range(low):
        place_next(guide, line, i, i, 0, room)
    order = np.arange(n)
    state = _recreate(guide, order, delay, 0, low, n, line, room, seed)
    assert (order.tolist(), state) == naive_filled(guide, n, low, seed)


def naive_filled(guide: Guide, n: int, low: int, state: int) -> tuple[list[int], int]:
    """Try every request that is left, one list after the other."""
    filled, left = list(range(low)), list(range(low, n))
    while left:
        tried = []
        for i in left:
            state = next_random(state)
            if state >= BLINK * RANDOM_MODULUS:
                tried.append((last_start(guide, [*filled, i]), i))
        chosen = min(tried)[1] if tried else left[0]
        filled.append(chosen)
        left.remove(chosen)
    return filled, state


def last_start(guide: Guide, order: list[int]) -> int:
    line = _line(len(order), most_running(guide))
    room = np.empty(most_running(guide), dtype=np.int64)
    _clear(line)
    return [place_next(guide, line, k, i, 0, room) for k, i in enumerate(order)][-1]


@examples(25)
@given(instances(max_requests=4, max_length=5))
def test_tiny_instances_are_solved_to_optimality(instance):
    """By a few rounds, checked against exhaustive search."""
    assert improve(instance, Rounds(2)).schedule.tel == naive.best_tel(instance)


def test_waiting_is_found_where_it_pays():
    """No order of earliest starts is optimal here: two requests have to wait a step."""
    instance = Instance([1, 1, 2, 2], [4, 4, 2, 2], 9)
    orders = permutations(range(4))
    assert min(place(instance, order).tel for order in orders) > 16
    assert improve(instance, Rounds(1)).schedule.tel == naive.best_tel(instance) == 16


def few(n: int, seed: int, budget: int) -> Instance:
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.2
    prefill = np.where(long, rng.integers(900, 2000, n), rng.integers(5, 300, n))
    return Instance(prefill, rng.integers(5, 400, n), budget)


def mixed(n: int, seed: int, budget: int) -> Instance:
    trace = generate("mix", n, long_share=0.2, seed=seed)
    return Instance(trace.prefill, np.minimum(trace.decode, 600), budget)


def test_it_gains_where_requests_are_few(monkeypatch):
    """Several windows too; without annealing the same rounds are worse."""
    cases = [mixed(20, 2, 4200), mixed(20, 3, 4200), mixed(100, 3, 16492)]
    found = [improve(case, Rounds(3)).schedule for case in cases]
    monkeypatch.setattr(improving, "ANNEALED_UP_TO", 0)
    beams = [improve(case, Rounds(3)).schedule for case in cases]
    pairs = zip(cases, found, strict=True)
    assert all(check(case, better).feasible for case, better in pairs)
    assert sum(s.tel for s in found) < 0.99 * sum(s.tel for s in beams)


def test_seeds_repeat_and_differ():
    """Across windows, with threads too."""
    instance = few(70, 4, 8000)
    for jobs in (1, 2):
        first, again = (
            improve(instance, Rounds(1), seed=3, jobs=jobs).schedule for _ in range(2)
        )
        assert first.start.tolist() == again.start.tolist()
    guide, rank = make_guide(instance, TEL)
    start = place(instance.subset(rank), np.arange(70)).start
    starts = [anneal(guide, start, 2000, seed, never).tolist() for seed in (1, 2)]
    assert starts[0] != starts[1]


def test_time_ends_it_between_chunks():
    """What has not been looked at keeps its order, and a schedule comes out."""
    instance = few(90, 5, 8000)
    guide, rank = make_guide(instance, TEL)
    by_rank = instance.subset(rank)
    start = place(by_rank, np.arange(90)).start
    asked = iter([False, True, True])
    found = Schedule(by_rank, anneal(guide, start, 10**9, 1, lambda: next(asked)))
    assert check(by_rank, found).feasible
    assert improve(instance, TimeLimit(0.2)).history


def test_caps_and_other_objectives_are_annealed_too(monkeypatch):
    """Makespan, weights and a cap: better than the beam alone, in one window."""
    instance = few(30, 6, 4000)
    weight = np.where(np.arange(30) % 3 == 0, 20, 1)
    cap = int(0.97 * improve(instance, Rounds(2)).schedule.latency.max())
    objectives = [
        Objective(weight=weight),
        Objective(makespan=True),
        Objective(max_latency=cap),
    ]
    found = [improve(instance, Rounds(3), objective=o).schedule for o in objectives]
    monkeypatch.setattr(improving, "ANNEALED_UP_TO", 0)
    for objective, better in zip(objectives, found, strict=True):
        plain = improve(instance, Rounds(3), objective=objective).schedule
        assert check(instance, better).feasible
        assert objective.rating(better) < objective.rating(plain)


@pytest.mark.kernel
@examples(30)
@given(instances(max_requests=6), st.integers(1, 30))
def test_costs_of_a_list_count_lateness(instance, cap):
    """Weighted completions, and what comes after the deadline."""
    guide, _ = make_guide(instance, Objective(max_latency=cap))
    line = _line(instance.num_requests, most_running(guide))
    _clear(line)
    room = np.empty(most_running(guide), dtype=np.int64)
    expected = 0.0
    for i in range(instance.num_requests):
        end = place_next(guide, line, i, i, 0, room) + int(guide.request[i, DECODE])
        assert end - guide.request[i, DECODE] >= guide.request[i, ARRIVAL]
        expected += end + guide.late_cost * late(guide, i, end)
        assert line.cost[i + 1] == pytest.approx(expected)


def late(guide: Guide, i: int, end: int) -> int:
    return max(0, end - int(guide.request[i, DEADLINE]))
