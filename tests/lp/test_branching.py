"""Branching on windows: nothing better than a known schedule is ever cut away."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lp import branching
from lp.branching import Node, Search
from lp.prices import Prices
from lp.window_ascent import Spread, WindowProblem, climb_windows, soft_minima
from lp.windows import (
    Windows,
    tighten,
    windowed_bound,
    windowed_prices,
    windows_below,
)
from sortedf import Instance, bound, check, generate, solve
from sortedf.bounds import BoundOptions
from sortedf.fluid_prices import fluid_prices
from sortedf.segments import horizon
from tests import naive
from tests.strategies import engines, examples, instances


def documents_and_chats(n: int, seed: int, budget: int = 900) -> Instance:
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.3
    prefill = np.where(long, rng.integers(200, 400, n), rng.integers(1, 40, n))
    return Instance(prefill, rng.integers(1, 60, n), budget)


@st.composite
def narrow_windows(draw: st.DrawFn, instance: Instance) -> Windows:
    """At most four starts for each request."""
    n = instance.num_requests
    shift = st.lists(st.integers(0, 6), min_size=n, max_size=n)
    width = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    first = instance.arrival + np.array(draw(shift), int)
    return Windows(first, first + np.array(draw(width), int))


def schedules(instance: Instance, windows: Windows) -> list[tuple[int, ...]]:
    """All feasible schedules in the windows."""
    ranges = [range(a, b + 1) for a, b in zip(windows.first, windows.last, strict=True)]
    return [
        starts
        for starts in product(*ranges)
        if naive.is_feasible(instance, dict(enumerate(starts)))
    ]


def tel_of(instance: Instance, starts: tuple[int, ...]) -> int:
    return int(sum(starts) + instance.decode.sum() - instance.arrival.sum())


@examples(150)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_tightening_loses_no_schedule(instance, data):
    """What must run cuts only starts that no schedule of the windows has."""
    windows = data.draw(narrow_windows(instance))
    found = schedules(instance, windows)
    cut = tighten(instance, windows)
    if cut is None:
        assert not found
        return
    for starts in found:
        assert (cut.first <= starts).all()
        assert (starts <= cut.last).all()


@examples(150)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_windowed_bound_is_valid_and_loses_no_better_schedule(instance, data):
    """Any prices: below every schedule of the windows; cuts none below `tel`."""
    windows = data.draw(narrow_windows(instance))
    value = data.draw(st.lists(st.integers(0, 40), max_size=25))
    prices = Prices(np.array(value, int), 6)
    tel = data.draw(st.integers(1, 60))
    least, cut = windowed_bound(instance, windows, prices, tel)
    for starts in schedules(instance, windows):
        assert least <= tel_of(instance, starts) << 6
        if tel_of(instance, starts) < tel:
            assert (cut.first <= starts).all()
            assert (starts <= cut.last).all()


@examples(40)
@given(
    instances(max_requests=4, max_length=5, engine=engines()),
    st.integers(0, 3),
    st.integers(0, 6),
)
def test_search_is_never_above_the_optimum(instance, slack, nodes):
    """However good the known schedule is and wherever the search stops."""
    optimum = naive.best_tel(instance)
    prices = np.concatenate([fluid_prices(instance), np.zeros(8)])

    class Stopped(Search):
        def _stop(self, seen, open_nodes) -> bool:
            return seen > nodes

    assert Stopped(instance, optimum + slack, BoundOptions()).run(prices) <= optimum


@examples(15)
@given(instances(max_requests=3, max_length=6))
def test_search_proves_small_optima(instance):
    """Let alone, it ends with the optimum as its bound."""
    optimum = naive.best_tel(instance)
    assume(optimum > instance.decode.sum())
    prices = np.concatenate([fluid_prices(instance), np.zeros(8)])
    assert Search(instance, optimum, BoundOptions()).run(prices) == optimum


@examples(15)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_branching_is_between_dual_and_optimum(instance):
    """The registered bound, from its own schedule."""
    value = bound(instance, "branching").value
    assert bound(instance, "dual").value <= value <= naive.best_tel(instance)


@pytest.mark.parametrize("arrivals", [False, True])
@pytest.mark.parametrize("seed", [1, 2])
def test_branching_is_never_above_any_schedule(seed, arrivals):
    """Larger instances; the bound rises where the relaxation is not tight."""
    instance = documents_and_chats(14, seed)
    if arrivals:
        arrival = np.random.default_rng(seed).integers(0, 100, 14)
        instance = instance.replace(arrival=arrival)
    value = bound(instance, "branching", time_limit=3).value
    assert value >= bound(instance, "dual").value
    for name in ("svf", "sorted-f", "auto"):
        found = solve(instance, name, backfill=3, bound="none")
        assert value <= check(instance, found.schedule).tel


def test_branching_closes_the_gap():
    """Documents among chats, 14 requests: well over half the gap to a schedule."""
    instance = documents_and_chats(14, 2)
    dual = bound(instance, "dual").value
    tel = solve(instance, "auto", bound="none").tel
    assert dual < tel
    assert bound(instance, "branching").value >= dual + 0.5 * (tel - dual)


def test_documents_are_solved_to_optimality():
    """Few large requests, where the relaxation is some percent below."""
    trace = generate("documents", 8, seed=2)
    instance = Instance(trace.prefill, np.minimum(trace.decode, 200), 8192)
    found = solve(instance, "branching", bound="none")
    dual = bound(instance, "dual").value
    assert found.lower_bound is not None
    assert 1.01 * dual < found.lower_bound == found.tel
    assert check(instance, found.schedule).tel == found.tel
    assert found.tel <= solve(instance, "best-list", bound="none").tel


@examples(40)
@given(instances(max_requests=4, max_length=6, engine=engines()))
def test_the_method_finds_optima(instance):
    """With arrivals; caps and blocks are in its schedules, though not in its bound."""
    found = solve(instance, "branching", bound="none")
    optimum = naive.best_tel(instance)
    assert check(instance, found.schedule).feasible
    assert found.lower_bound is not None
    assert found.lower_bound <= optimum <= found.tel
    engine = instance.engine
    capped = engine.max_num_seqs or engine.max_batched_tokens
    if not capped and engine.block_size == 1:
        assert found.lower_bound == optimum == found.tel


def test_the_method_begins_with_what_it_is_given():
    """A start that is optimal stays; the search proves it."""
    instance = documents_and_chats(10, 2)
    best = solve(instance, "branching", bound="none")
    again = solve(instance, "branching", bound="none", start=best.schedule)
    assert again.tel == best.tel == again.lower_bound
    better: list[int] = []
    solve(
        instance, "branching", bound="none", on_better=lambda tel, _: better.append(tel)
    )
    assert better == sorted(set(better), reverse=True)


def test_memory_ends_the_search(monkeypatch):
    """The bound is that of the nodes that are open then."""
    monkeypatch.setattr(branching, "MAX_OPEN_BYTES", 8_000)
    instance, prices, tel = to_be_searched()
    most = []

    class Counted(Search):
        def _stop(self, seen, open_nodes) -> bool:
            most.append(sum(node.prices.nbytes for node in open_nodes))
            return super()._stop(seen, open_nodes)

    value = Counted(instance, tel, BoundOptions()).run(prices)
    assert bound(instance, "dual").value <= value <= tel
    assert max(most[:-1]) <= 8_000 < most[-1]


def test_auto_branches_on_few_requests_over_few_steps():
    """Up to so many of each, the steps by the seconds there are."""
    for n, seconds, wanted in (
        (branching.MAX_REQUESTS, None, True),
        (branching.MAX_REQUESTS + 1, None, False),
    ):
        instance = Instance(np.ones(n), np.ones(n), 9)
        assert branching.branching_is_quick(instance, seconds) is wanted
    for late, seconds, wanted in (
        (0, None, True),
        (1, None, False),
        (1, 2.0, True),
        (branching.LONG, 2.0, True),
        (branching.LONG + 1, 2.0, False),
    ):
        instance = Instance([1, 1], [1, 1], 3, [0, branching.LONG + late - 1])
        assert horizon(instance) == branching.LONG + late
        assert branching.branching_is_quick(instance, seconds) is wanted


def test_the_climb_is_an_ascent():
    """Better prices in each call, the same as long as nothing is to be gained."""
    instance = documents_and_chats(10, 3)
    windows = tighten(instance, windows_below(instance, 2000))
    assert windows is not None
    prices = fluid_prices(instance)
    values = []
    for iterations in (0, 5, 40):
        better, spread = climb_windows(
            instance, windows, prices,
            temperature=0.5, iterations=iterations, enough=np.inf,
        )  # fmt: skip
        rounded = windowed_prices(instance, better, 2000)
        value, _ = windowed_bound(instance, windows, rounded, 2000)
        values.append(value / 2**rounded.scale_bits)
        assert (spread.mean >= windows.first).all()
    assert values[0] < values[1] <= values[2]


def test_large_instances_get_the_dual_bound():
    """With its certificate."""
    instance, _ = generate("mix", 120, seed=1).to_instance(16492)
    found = bound(instance, "branching")
    assert found.certificate is not None
    assert found.value == bound(instance, "dual").value


def test_late_windows_do_not_overflow():
    """Bits are given up so that every start of a window fits."""
    instance = Instance([5, 6, 1], [3, 2, 1], 10, [0, 2**52, 5])
    tel = 2**53
    prices = windowed_prices(instance, np.full(5, 0.1), tel)
    assert (tel << prices.scale_bits) < 2**62
    assert (windows_below(instance, 9).last - instance.arrival == 3).all()


@pytest.mark.kernel
def test_soft_minima_approach_the_minima():
    """At low temperature, value and means are those of the best starts."""
    instance = documents_and_chats(10, 3)
    prices = fluid_prices(instance)
    windows = windows_below(instance, 2000)
    held = np.empty(len(prices))
    mean, variance = np.empty((2, 10))
    problem = WindowProblem(
        instance.prefill, instance.decode, windows.first, windows.last, 900.0, 1e-6
    )
    soft = soft_minima(problem, prices, held, mean, variance)
    rounded = windowed_prices(instance, prices, 2000)
    value, _ = windowed_bound(instance, windows, rounded, 2000)
    hard = value / 2**rounded.scale_bits + instance.usable_kv * prices.sum()
    assert soft == pytest.approx(hard, abs=1e-3)
    assert (variance >= -1e-6).all()
    assert (held >= 0).all()


@pytest.mark.kernel
def test_windows_without_a_schedule_are_left_out():
    """Three requests that run alone do not fit into two lengths; prices may explode.

    No start is forced, so only the bound shows it.
    """
    instance = Instance([5] * 3, [3] * 3, 8)
    windows = Windows(np.zeros(3, int), np.full(3, 3))
    assert tighten(instance, windows) is not None
    search = Search(instance, 18, BoundOptions())
    assert search._bounded(windows, np.full(6, 1e-3), 0) is None
    explode = np.full(6, 1e12)
    better, _ = search._ascend(windows, explode)
    assert better.max() <= 18


def test_early_requests_are_split_first():
    """Of two that spread alike, the one that starts sooner.

    Splitting late ones first left the bound where it was: others took their place, and
    24 mixed requests kept half of their gap for a minute that are now proven optimal
    in ten seconds.
    """
    instance = Instance([50, 50], [100, 100], 200)
    search = Search(instance, 400, BoundOptions())
    tree = windows_below(instance, 400)
    spread = Spread(np.array([80.0, 20.0]), np.array([900.0, 900.0]))
    node = Node(0.0, 0, tree, np.zeros(300, dtype=np.float32), spread)
    parts = []
    search._nodes = lambda halves, *_: parts.extend(halves)  # type: ignore[method-assign]
    search._split(node)
    early, late = parts
    assert (early.first == tree.first).all()
    assert early.last.tolist() == [tree.last[0], 20 + 9]
    assert late.first.tolist() == [tree.first[0], 20 + 9 + 1]


@pytest.mark.parametrize("mean", [0.0, 60.0, 1e6])
def test_each_half_of_a_split_has_a_start(mean):
    """Also where the mean start lies at the end of the windows, or outside them."""
    instance = Instance([5, 5], [3, 3], 12)
    search = Search(instance, 400, BoundOptions())
    windows = Windows(np.array([7, 50]), np.array([7, 51]))
    spread = Spread(np.array([7.0, mean]), np.array([900.0, 1.0]))
    node = Node(0.0, 0, windows, np.zeros(300, dtype=np.float32), spread)
    parts = []
    search._nodes = lambda halves, *_: parts.extend(halves)  # type: ignore[method-assign]
    search._split(node)
    starts = [(part.first.tolist(), part.last.tolist()) for part in parts]
    assert starts == [([7, 50], [7, 50]), ([7, 51], [7, 51])]


def to_be_searched():
    """An instance that takes many nodes, prices to begin with, and a TEL to beat."""
    instance = documents_and_chats(14, 2)
    prices = np.concatenate([fluid_prices(instance), np.zeros(60)])
    return instance, prices, solve(instance, "auto", bound="none").tel


def test_an_interrupt_keeps_what_was_proven(monkeypatch):
    """The node in hand is lost, but not its bound: the least one before it counts."""
    instance, prices, tel = to_be_searched()
    bounds = []

    class Interrupted(Search):
        def _split(self, node):
            bounds.append(node.bound)
            if len(bounds) == 30:
                raise KeyboardInterrupt
            return super()._split(node)

    search = Interrupted(instance, tel, BoundOptions())
    assert search.run(prices) == bounds[-1] > bounds[0]
    assert search.interrupted
    monkeypatch.setattr(branching, "Search", Interrupted)
    bounds.clear()
    found = bound(instance, "branching")
    assert found.interrupted
    assert found.value >= bound(instance, "dual").value
    assert found.schedule is not None


def test_an_interrupt_before_the_first_bound_proves_nothing():
    """Not even a bound of the first node."""
    instance, prices, tel = to_be_searched()

    class Interrupted(Search):
        def _bounded(self, *_):
            raise KeyboardInterrupt

    search = Interrupted(instance, tel, BoundOptions())
    assert not search.interrupted
    assert search.run(prices) == 0
    assert search.interrupted


def test_the_first_node_is_as_good_as_its_prices():
    """It is ordered by a value just below its bound; later arrivals change nothing."""
    instance, prices, tel = to_be_searched()
    dual = bound(instance, "dual").value
    nodes = []

    class Stopped(Search):
        def _stop(self, seen, open_nodes) -> bool:
            nodes.extend(open_nodes)
            return True

    for late in (0, 10**4):
        shifted = instance.replace(arrival=np.full(14, late))
        search = Stopped(shifted, tel, BoundOptions())
        value = search.run(np.concatenate([np.zeros(late), prices]))
        assert nodes[-1].bound == value >= 0.97 * dual
        assert value - 1 <= nodes[-1].value <= value
    assert len(nodes) == 2
    assert abs(nodes[0].bound - nodes[1].bound) <= 1


def test_without_a_limit_the_search_ends_by_its_own(monkeypatch):
    """A node climbs prices by step: a thousand nodes of long answers took minutes."""
    instance, prices, tel = to_be_searched()
    split = []

    class Counted(Search):
        def _split(self, node):
            split.append(1)
            return super()._split(node)

    monkeypatch.setattr(branching, "MAX_SECONDS", 0.0)
    Counted(instance, tel, BoundOptions()).run(prices)
    assert len(split) <= 1
    monkeypatch.setattr(branching, "MAX_SECONDS", 60.0)
    Counted(instance, tel, BoundOptions()).run(prices)
    assert len(split) > 10
