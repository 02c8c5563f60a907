"""Lower bounds: never above the optimum, and the arithmetic is exact."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from sortedf import BOUNDS, EngineModel, Instance, bound, generate
from sortedf.volume import volume, volume_moment
from tests import naive
from tests.strategies import engines, instances


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


@pytest.mark.parametrize("method", sorted(BOUNDS))
@settings(max_examples=60)
@given(instance=instances(max_requests=4, max_length=5, engine=engines()))
def test_no_bound_is_above_the_optimum(method, instance):
    """Exhaustive search over all start steps never finds anything below a bound."""
    assert bound(instance, method).value <= naive.best_tel(instance)


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


def test_caps_only_raise_the_optimum():
    """The bound of the engine's model with caps is that without them."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, (2, 50))
    free = Instance(*lengths, 200)
    capped = free.replace(engine=EngineModel(max_num_seqs=3, max_batched_tokens=40))
    assert bound(free).value == bound(capped).value


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
