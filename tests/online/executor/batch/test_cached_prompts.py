"""What a batch is expected to find in the cache of prefixes."""

from __future__ import annotations

import numpy as np
import pytest

from online.executor.batch.cached_prompts import CachedPrompts, expected_cached
from sortedf.engine_model import EngineModel


def naive_found(requests, num_blocks, size):
    """Keep whole begins of prompts in a list, used last at the end; scan it."""
    cache = []  # begins of prompts, and (request, k) for blocks of answers
    found = 0
    for number, (prompt, answer) in enumerate(requests):
        most = (len(prompt) - 1) // size if prompt else 0
        begins = [tuple(prompt[: size * (k + 1)]) for k in range(len(prompt) // size)]
        for begin in begins[:most]:
            if begin not in cache:
                break
            found += size
        others = -(-(len(prompt) + answer) // size) - len(begins)
        for block in [(number, k, None) for k in range(others)] + begins[::-1]:
            if block in cache:
                cache.remove(block)
            cache.append(block)
        cache = cache[max(len(cache) - num_blocks, 0) :]
    return found


@pytest.mark.parametrize("seed", range(30))
def test_it_is_that_of_a_list_of_begins(seed):
    """An alphabet of two letters, answers of at most a block, ample to tight caches."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 4))
    requests = [
        (rng.integers(0, 2, rng.integers(0, 12)).tolist(), int(rng.integers(1, 2)))
        for _ in range(30)
    ]
    blocks = int(rng.integers(14, 40))
    rules = EngineModel(blocks * size, size, prefix_caching=True)
    cached = naive_found(requests, blocks, size)
    total = sum(len(prompt) for prompt, _ in requests)
    assert expected_cached(requests, rules) == CachedPrompts(cached, total)


def test_an_ample_cache_finds_all_but_the_first():
    """And never the block of the last token."""
    rules = EngineModel(1024, 16, prefix_caching=True)
    found = expected_cached([([7] * 32, 5)] * 3, rules)
    assert found == CachedPrompts(32, 96)
    assert found.content() == {"tokens": 32, "of": 96, "share": 1 / 3}


def test_no_prompts_share_nothing():
    """An empty batch has no share to divide by."""
    rules = EngineModel(1024, 16, prefix_caching=True)
    assert expected_cached([], rules).share == 0.0
