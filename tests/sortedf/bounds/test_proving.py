"""Lower bounds: never above the optimum, and the arithmetic is exact."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from sortedf import BOUNDS, EngineModel, Instance, bound, check, generate, solve
from sortedf.certificate import instance_hash, proven_bound
from sortedf.errors import CertificateError
from sortedf.segments import segments
from sortedf.shared_prefixes import SharedPrefixes
from sortedf.volume import volume, volume_moment
from tests import naive
from tests.strategies import engines, examples, instances, shared_instances


def blocks(instance: Instance, i: int) -> list[int]:
    s, o = int(instance.prefill[i]), int(instance.decode[i])
    return [instance.engine.round_up(s + j) for j in range(1, o + 1)]


@given(instances(max_length=40, engine=engines()))
def test_volume_and_moment_are_their_sums(instance):
    """The closed forms equal the sums they stand for, blocks included."""
    held = [blocks(instance, i) for i in range(instance.num_requests)]
    assert volume(instance).tolist() == [sum(h) for h in held]
    assert volume_moment(instance) == [
        sum(tokens * (2 * j - 1) for j, tokens in enumerate(h, 1)) for h in held
    ]


def naive_fluid(instance: Instance) -> int:
    """The closed form for a backlog, in fractions."""
    n = instance.num_requests
    volumes = [Fraction(sum(blocks(instance, i))) for i in range(n)]
    total = Fraction(0)
    done = Fraction(0)
    for v in sorted(volumes):
        done += v
        total += (done - v / 2) / instance.usable_kv
    for i in range(n):
        held = blocks(instance, i)
        middle = sum(h * (Fraction(j) - Fraction(1, 2)) for j, h in enumerate(held, 1))
        total += int(instance.decode[i]) - middle / sum(held)
    return max(math.ceil(total), int(instance.decode.sum()))


@given(instances(arrivals=False, engine=engines()))
def test_fluid_is_its_closed_form_for_a_backlog(instance):
    """Rounding each share down to 2**-40 does not change the integer."""
    assert bound(instance, "fluid").value == naive_fluid(instance)


def test_rounded_rows_are_taken_at_every_size():
    """One of the large requests runs at a time, whatever their number.

    With more than 300 and no time limit, `auto` left this bound out, and the gap rose
    from 0 to 76 %.
    """
    rng = np.random.default_rng(0)
    for n in (300, 301, 3000):
        instance = Instance(rng.integers(510, 601, n), rng.integers(1, 51, n), 1019)
        assert solve(instance, "mc-sf").gap == 0


@pytest.mark.parametrize("method", sorted(BOUNDS))
@examples(60)
@given(instance=instances(max_requests=4, max_length=5, engine=engines()))
def test_no_bound_is_above_the_optimum(method, instance):
    """Exhaustive search over all start steps never finds anything below a bound."""
    assert bound(instance, method).value <= naive.best_tel(instance)


@pytest.mark.parametrize("method", [n for n, b in BOUNDS.items() if b.shared])
@examples(30)
@given(instance=shared_instances(max_requests=4, max_length=5))
def test_no_bound_is_above_the_optimum_where_prompts_share_prefixes(method, instance):
    """And its certificate proves it, also after a file."""
    found = bound(instance, method)
    assert found.value <= naive.best_tel(instance)
    assert proven_bound(instance, found.certificate) == found.value


def test_bounds_that_do_not_know_prefixes_are_refused():
    """They would count what is shared twice, and say that both cannot run at once."""
    shared = SharedPrefixes([-1], [4], [0, 0])
    engine = EngineModel(10, prefix_caching=True)
    instance = Instance([5, 5], [2, 2], engine=engine, prefixes=shared)
    assert solve(instance).tel == 2 + 2
    with pytest.raises(ValueError, match="'fluid' does not know shared prefixes; choo"):
        bound(instance, "fluid")
    blind = bound(instance.replace(prefixes=None), "dual").certificate
    assert blind.bound > 4
    with pytest.raises(CertificateError, match="for another instance"):
        proven_bound(instance, blind)
    with pytest.raises(CertificateError, match="does not know the prefixes"):
        proven_bound(instance, replace(blind, instance_hash=instance_hash(instance)))


def test_fluid_serves_the_smallest_volume_that_has_arrived():
    """A small request that comes late interrupts a large one in the relaxation.

    M = 4. Request 0 (s=1, o=2, v=5) works alone for one step and has 1 token step
    left when request 1 (s=1, o=1, v=2) comes, which has the smaller volume and goes
    first for half a step; then request 0 ends after another quarter. Mean busy times:
    (1/5) (4 * 1/2 + 1 * 13/8) = 29/40 and 5/4. From the middle to the end: 2 - 11/10
    and 1/2. Less the arrival of 1: 29/40 + 9/10 + 5/4 + 1/2 - 1 = 95/40, so TEL >= 3.
    """
    instance = Instance([1, 1], [2, 1], 4, [0, 1])
    assert bound(instance, "fluid").value == 3


def test_numbers_beyond_64_bits():
    """Lengths near the limit give exact integers, not overflow."""
    length = 2**30 - 1
    instance = Instance([length] * 3, [length] * 3, 2**31 - 1)
    v = length * length + length * (length + 1) // 2
    assert volume(instance).tolist() == [v] * 3
    assert bound(instance, "fluid").value == naive_fluid_large(length, v)


def naive_fluid_large(length: int, v: int) -> int:
    # sum of (s + j)(j - 1/2) for s = o = length
    moment = (
        Fraction(length**3) / 2
        + Fraction(length * (length + 1) * (2 * length + 1), 6)
        - Fraction(length * (length + 1), 4)
    )
    budget = 2**31 - 1
    busy = sum(Fraction(k * v * 2 - v, 2 * budget) for k in (1, 2, 3))
    return max(math.ceil(busy + 3 * (length - moment / v)), 3 * length)


def test_backlog_that_fits_at_once_is_bounded_by_its_answers():
    """TEL is never below the sum of the answers."""
    instance = Instance([1, 2, 3], [5, 6, 7], 1000)
    assert bound(instance).value == 18


def test_unknown_bound_lists_the_known_ones():
    """The error says what there is."""
    with pytest.raises(ValueError, match=r"unknown bound 'lucky'; choose one of: .*fl"):
        bound(Instance([1], [1], 2), "lucky")


def test_empty_instance_is_bounded_by_zero():
    """Nothing to wait for."""
    assert bound(Instance([], [], 5)).value == 0


def test_caps_only_raise_bounds():
    """The fluid bound knows memory alone; others count what runs as well."""
    rng = np.random.default_rng(0)
    free = Instance(*rng.integers(1, 30, (2, 50)), 200)
    caps = EngineModel(200, max_num_seqs=3, max_batched_tokens=40)
    capped = free.replace(engine=caps)
    assert bound(free, "fluid").value == bound(capped, "fluid").value
    assert bound(free).value < bound(capped).value


def test_auto_strengthens_the_relaxation_at_any_size():
    """Quick bounds above the relaxation by default, with a certificate on request."""
    large, _ = generate("mix", 1000, long_share=0.2, seed=1).to_instance(8192)
    found = bound(large)
    assert found.method == "growth"
    assert found.value > bound(large, "dual", time_limit=0).value
    assert found.certificate is not None
    few, _ = generate("documents", 6, seed=2).to_instance(8192)
    few = few.replace(decode=np.minimum(few.decode, 60))
    found = bound(few)
    assert found.method == "branching"
    certified = bound(few, certified=True)
    assert certified.certificate is not None
    assert certified.value <= found.value


LONG_STREAMS = {
    "late": Instance([3] * 3, [2] * 3, 5, [10**7, 10**7, 10**7 + 1]),
    "two bursts": Instance([3] * 4, [2] * 4, 5, [0, 0, 10**6, 10**6]),
    "two days": Instance(
        [900, 2900, 1200, 2700, 600] * 2,
        [400, 300, 550, 100, 250] * 2,
        6000,
        [0] * 5 + [864_000] * 5,
    ),
    "long answers": Instance(
        [10**5, 10**5 + 7, 10**5 + 99], [10**5, 10**5 + 5, 10**5 + 77], 3 * 10**5
    ),
}


@pytest.mark.parametrize("limit", [None, 2.0])
@pytest.mark.parametrize("name", LONG_STREAMS)
def test_few_requests_over_many_steps_are_bounded_soon(name, limit):
    """Three requests at step 10**7 had the default bound climb for minutes.

    With few requests an answer is promised at once, but all that "auto" did was
    by step, idle ones included, once for each bound, without a limit or beyond it.
    """
    instance = LONG_STREAMS[name]
    bound(Instance([3] * 3, [2] * 3, 5))  # so that nothing is compiled below
    began = time.perf_counter()
    found = bound(instance, time_limit=limit)
    assert time.perf_counter() - began < 8
    assert found.value >= bound(instance, "fluid").value
    assert found.value <= solve(instance, "best-list", bound="none").tel


def test_bursts_that_cannot_meet_are_solved_apart():
    """The least TEL of both is proven, and the schedule is put together from theirs."""
    instance = LONG_STREAMS["two bursts"]
    found = bound(instance)
    assert found.value == 2 * bound(Instance([3] * 2, [2] * 2, 5)).value == 12
    assert found.schedule is not None
    assert (found.schedule.tel, check(instance, found.schedule).feasible) == (12, True)
    assert bound(instance, certified=True).certificate is not None


@examples(20)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_the_sum_of_segments_is_no_more_than_the_optimum(instance):
    """As "auto" adds them up, wherever the long pause is."""
    late = np.where(np.arange(instance.num_requests) % 2, 10**6, 0)
    apart = instance.replace(arrival=instance.arrival + late)
    best = sum(naive.best_tel(part.instance) for part in segments(apart))
    assert bound(instance).value <= naive.best_tel(instance)
    assert bound(apart).value <= best
