"""`exhaustive`: the optimum of very few requests."""

from __future__ import annotations

import pytest
from hypothesis import given

from sortedf import BOUNDS, Instance, bound, check
from sortedf.errors import TooLargeError
from tests import naive
from tests.strategies import engines, examples, instances


@pytest.mark.kernel
@examples(60)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_it_is_the_optimum_with_its_schedule(instance):
    """Brute force finds nothing better, and the checker agrees."""
    found = bound(instance, "exhaustive")
    assert found.value == naive.best_tel(instance)
    report = check(instance, found.schedule)
    assert (report.feasible, report.tel) == (True, found.value)


def test_five_requests_are_refused():
    """By name it takes what it was made for."""
    with pytest.raises(TooLargeError, match="up to 4 requests, not 5"):
        bound(Instance([3] * 5, [2] * 5, 5), "exhaustive")


def test_it_is_for_the_same_sizes_wherever_it_is_asked():
    """The entry's limit is the one that the refusal names."""
    assert BOUNDS["exhaustive"].takes(Instance([3] * 4, [2] * 4, 5))
    assert not BOUNDS["exhaustive"].takes(Instance([3] * 5, [2] * 5, 5))
    assert BOUNDS["fluid"].takes(Instance([3] * 5, [2] * 5, 5))


def test_auto_takes_it_where_there_are_few_ways_to_wait():
    """Two requests of any length, three or four short ones."""
    quick = BOUNDS["exhaustive"].quick
    assert quick is not None
    assert quick(Instance([9000] * 2, [9000] * 2, 20000), None)
    assert quick(Instance([3] * 4, [2] * 4, 5), None)
    assert not quick(Instance([900] * 4, [900] * 4, 2000), None)
    assert not quick(Instance([3] * 5, [2] * 5, 5), None)
