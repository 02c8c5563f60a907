"""Orders of engines: depth first, longest prefix, and with every k-th the oldest."""

from __future__ import annotations

import numpy as np

from sortedf import EngineModel, Instance
from sortedf.methods import RULES
from sortedf.options import Options
from sortedf.shared_prefixes import SharedPrefixes


def ordered(name, leaf, budget=1000, parent=(-1, 0, 0, -1), blocks=(4, 2, 2, 8)):
    """Order of requests with these leaves; by default two trees, one with branches."""
    n = len(leaf)
    engine = EngineModel(budget, prefix_caching=True)
    shared = SharedPrefixes(parent, blocks, leaf)
    instance = Instance([20] * n, [2] * n, engine=engine, prefixes=shared)
    return RULES[name](instance, Options()).tolist()


def test_depth_first_goes_through_subtrees_in_order_of_their_first():
    """1 and 4 are alike, 2 shares less with them, 0 and 3 nothing."""
    assert ordered("depth-first", [3, 1, 2, 3, 1, -1]) == [0, 3, 1, 4, 2, 5]


def test_longest_prefix_takes_what_is_in_the_cache():
    """After 0 its like, 3 with 8 blocks; then nothing: the oldest, and its like."""
    assert ordered("longest-prefix", [3, 1, 2, 3, 1, 2]) == [0, 3, 1, 4, 2, 5]


def test_a_small_cache_forgets_the_prefix_used_longest_ago():
    """With 7 blocks the second branch evicts the first one, not what both share."""
    leaf = [1, 2, 1, 2, 0]
    assert ordered("longest-prefix", leaf) == [0, 2, 1, 3, 4]
    assert ordered("longest-prefix", [1, 0, 3, 1], budget=22) == [0, 3, 1, 2]


def test_every_tenth_is_the_oldest():
    """19 like request 0 come last; without fairness they would all go before 1."""
    leaf = [3] + [-1] * 20 + [3] * 19
    assert ordered("longest-prefix", leaf) == [0, *range(21, 40), *range(1, 21)]
    fair = ordered("k-lpm", leaf)
    assert fair[:12] == [0, *range(21, 30), 1, 30]
    assert sorted(fair) == list(range(40))


def test_without_prefixes_the_oldest_is_first():
    """They are first come, first served."""
    instance = Instance([3, 3, 3], [2, 2, 2], 9, [2, 0, 1])
    for name in ("depth-first", "longest-prefix", "k-lpm"):
        assert np.array_equal(RULES[name](instance, Options()), [1, 2, 0])
