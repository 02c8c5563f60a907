"""`machines`: exact where only places bind, and never above the optimum."""

from __future__ import annotations

import pytest
from hypothesis import given

from sortedf import EngineModel, Instance, Status, bound, generate, solve
from sortedf.bounds.machines import num_places
from sortedf.certificate import proven_bound
from tests import naive
from tests.strategies import engines, examples, instances


@examples(100)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_it_is_not_above_the_optimum(instance):
    """With every cap, with arrivals and blocks; its certificate proves the same."""
    found = bound(instance, "machines")
    assert found.value <= naive.best_tel(instance)
    assert proven_bound(instance, found.certificate) == found.value


@examples(60)
@given(instances(max_requests=4, max_length=5, arrivals=False))
def test_it_is_the_optimum_where_only_places_bind(instance):
    """Memory for all at once, but few places."""
    engine = EngineModel(int(instance.peak.sum()), max_num_seqs=2)
    roomy = instance.replace(engine=engine)
    assert bound(roomy, "machines").value == naive.best_tel(roomy)


@pytest.mark.parametrize(
    ("engine", "places"),
    [
        (EngineModel(100), 25),  # 3 + 1 tokens at least
        (EngineModel(100, max_num_seqs=7), 7),
        (EngineModel(100, max_batched_tokens=11), 11),
        (EngineModel(100, 16), 6),
    ],
)
def test_places_are_those_of_the_cap_that_binds(engine, places):
    """Requests at once: by number, by tokens of a step, by memory."""
    assert num_places(Instance([3, 9], [2, 2], engine=engine)) == places


def test_equal_requests_with_few_places_are_optimal():
    """They were solved to the optimum and reported with a gap of 1,450 %."""
    engine = EngineModel(10**6, max_num_seqs=10)
    result = solve(Instance([5] * 300, [10] * 300, engine=engine))
    assert (result.gap, result.status) == (0, Status.OPTIMAL)


@pytest.mark.slow
def test_a_mix_with_256_places_is_optimal_and_nearly_so_with_less_memory():
    """The gaps were 110 %, and 68 % for a schedule 12 % worse than this one."""
    trace = generate("mix", 2000, long_share=0.2, seed=5)
    roomy, _ = trace.to_instance(engine=EngineModel(400_000, max_num_seqs=256))
    assert solve(roomy, "best-list").status is Status.OPTIMAL
    tight, _ = trace.to_instance(engine=EngineModel(200_000, max_num_seqs=256))
    result = solve(tight, "best-list")
    assert result.mean_latency <= 537.2
    assert result.gap < 0.01


def test_areas_are_tried_where_a_cap_binds_beside_memory():
    """Neither by volume nor by answer: a list between the two is better."""
    trace = generate("mix", 300, long_share=0.2, seed=5)
    instance, _ = trace.to_instance(engine=EngineModel(16_492, max_num_seqs=64))
    found = solve(instance, "best-list", bound="none")
    assert found.found_by == "area"
    for rule in ("svf", "mc-sf"):
        for window in (100, 20, 5, 0):
            listed = solve(instance, rule, backfill=window, bound="none")
            assert found.tel < listed.tel
