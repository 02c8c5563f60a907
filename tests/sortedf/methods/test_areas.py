"""Lists by areas: the definition of the method, and the grid of weights."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given

from sortedf import EngineModel, Instance, methods_for, solve
from sortedf.methods import RULES
from sortedf.methods.areas import GRID, area_orders
from sortedf.options import Options
from tests.strategies import instances


@given(instances(arrivals=False))
def test_without_caps_area_is_svf(instance):
    """Also if a request fills the whole cache."""
    plain = Instance(instance.prefill, instance.decode, instance.kv_budget)
    area, svf = (RULES[name](plain, Options()).tolist() for name in ("area", "svf"))
    assert area == svf


def test_weights_with_caps():
    """`2 v / (M - peak) + o / K + (s + o - 1) / (B - s)`, in fractions."""
    s, o = [5, 1, 9, 2], [3, 8, 1, 4]
    instance = Instance(s, o, engine=EngineModel(40, 1, 2, 12))
    volumes = [sum(a + j for j in range(1, b + 1)) for a, b in zip(s, o, strict=True)]
    area = [
        Fraction(2 * v, 40 - 10) + Fraction(b, 2) + Fraction(a + b - 1, 12 - 9)
        for v, a, b in zip(volumes, s, o, strict=True)
    ]
    order = RULES["area"](instance, Options()).tolist()
    assert order == sorted(range(4), key=area.__getitem__)


def test_a_request_that_fills_the_cache_leaves_volume_alone():
    """`1 - alpha` is 0: the other terms do not count."""
    instance = Instance([1, 9], [6, 1], engine=EngineModel(10, 1, 1))
    assert RULES["area"](instance, Options()).tolist() == [1, 0]


def test_grid_of_weights():
    """Every sum of quarters but all weight on memory; nothing without caps."""
    caps = EngineModel(40, 1, 2, 12)
    instance = Instance([5, 1], [3, 8], engine=caps)
    assert len(list(area_orders(instance))) == (GRID + 1) * (GRID + 2) // 2 - 1
    assert not list(area_orders(Instance([5, 1], [3, 8], 40)))


def test_compared_only_with_caps():
    """Without caps the same schedule would be shown twice."""
    plain = Instance([5, 1], [3, 8], 40)
    capped = Instance([5, 1], [3, 8], engine=EngineModel(40, 1, 1))
    assert "area" not in methods_for(plain)
    assert "area" in methods_for(capped)


def test_best_list_is_never_worse_with_caps():
    """It tries `area` with every window."""
    instance = Instance([5, 1, 9, 2], [3, 8, 1, 4], engine=EngineModel(14, 1, 2))
    best = solve(instance, "best-list", bound="none").tel
    assert best <= solve(instance, "area", bound="none").tel
