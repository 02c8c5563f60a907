"""Orders from the relaxation: feasible, repeatable, and swaps only help."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lp import dual, orders
from sortedf import METHODS, Instance, Status, bound, check, solve
from tests.strategies import engines, examples, instances

NAMES = ("sorted-lp", "alpha-points", "lp-swap")


@examples(20)
@given(instances(max_requests=10, engine=engines()), st.integers(0, 3))
def test_every_order_is_feasible_and_not_below_the_bound(instance, backfill):
    """With arrivals, blocks and caps, like any other method."""
    for name in NAMES:
        result = solve(instance, name, backfill=backfill, bound="fluid")
        report = check(instance, result.schedule)
        assert report.feasible
        assert report.tel == result.tel >= result.lower_bound


@examples(15)
@given(instances(max_requests=15))
def test_swaps_never_make_it_worse(instance):
    """lp-swap starts from sorted-lp and takes only what lowers TEL."""
    swapped = solve(instance, "lp-swap", bound="none")
    assert swapped.tel <= solve(instance, "sorted-lp", bound="none").tel


def documents_and_chats(n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.3
    prefill = np.where(long, rng.integers(200, 400, n), rng.integers(1, 40, n))
    return Instance(prefill, rng.integers(1, 60, n), 1600)


def test_the_relaxation_finds_what_sorting_by_length_misses():
    """At low concurrency its order is clearly better than shortest answer first."""
    instance = documents_and_chats(60, 1)
    least = bound(instance, "dual").value
    for name in NAMES:
        tel = solve(instance, name, bound="none").tel
        assert least <= tel < solve(instance, "mc-sf", bound="none").tel


def test_same_result_every_time():
    """Nothing is drawn at random."""
    for name in NAMES:
        first, second = (
            solve(documents_and_chats(30, 2), name, bound="none").schedule.start
            for _ in range(2)
        )
        assert first.tolist() == second.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_leaves_nothing_behind(name, monkeypatch):
    """Half a climb was kept, and the next call took it for a whole one."""
    instance = documents_and_chats(30, 5)
    whole = solve(instance, name, bound="none").tel

    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dual, "minimise", interrupted)
        with pytest.raises(KeyboardInterrupt):
            solve(instance, name, bound="none")
    assert solve(instance, name, bound="none").tel == whole


def test_a_time_limit_still_gives_a_schedule():
    """With no time at all the order is that of the start prices."""
    instance = documents_and_chats(40, 3)
    for name in NAMES:
        result = solve(instance, name, time_limit=0, bound="none")
        assert check(instance, result.schedule).feasible
    assert solve(instance, "lp-swap", time_limit=0).status is Status.TIME_LIMIT


def test_swaps_are_bounded(monkeypatch):
    """The number of placements is a promise."""
    placed = []
    place = orders.place

    def counting(*arguments, **options):
        placed.append(1)
        return place(*arguments, **options)

    monkeypatch.setattr(orders, "MAX_PLACEMENTS", 10)
    monkeypatch.setattr(orders, "place", counting)
    solve(documents_and_chats(40, 4), "lp-swap", bound="none")
    assert len(placed) <= 11


@pytest.mark.parametrize("name", NAMES)
def test_they_are_in_the_table(name):
    """The table of methods has them, without an import of `lp`."""
    assert name in METHODS
    empty = solve(Instance([], [], 5), name)
    assert (empty.tel, empty.status) == (0, Status.OPTIMAL)
