"""Orders by volume per request, prefixes as set-ups."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance
from sortedf.methods.subtrees import subtree_order
from sortedf.shared_prefixes import SharedPrefixes
from tests.strategies import shared_instances


@given(shared_instances(), st.sampled_from([0.0, 0.5, 4.0]))
def test_each_request_is_there_once(instance, held):
    """Whatever the forest."""
    order = subtree_order(instance, held).tolist()
    assert sorted(order) == list(range(instance.num_requests))


def test_a_set_up_is_spread_over_the_requests_that_share_it():
    """One step each, volume 2; prefixes of 10 and 3 tokens, for 4 and 2 requests.

    Chunks: (10 + 8) / 4 = 4.5 and (3 + 4) / 2 = 3.5 per request; alone 4 and 5.
    """
    shared = SharedPrefixes([-1, -1], [10, 3], [0, 0, 0, 0, 1, 1, -1, -1])
    engine = EngineModel(100, prefix_caching=True)
    prefill = [11, 11, 11, 11, 4, 4, 3, 4]
    instance = Instance(prefill, [1] * 8, engine=engine, prefixes=shared)
    assert subtree_order(instance, 1.0).tolist() == [4, 5, 6, 0, 1, 2, 3, 7]
    assert subtree_order(instance, 0.0).tolist() == [4, 5, 0, 1, 2, 3, 6, 7]


def test_long_answers_form_a_chunk_of_their_own():
    """Two short answers do not wait for a long one with the same prefix.

    Volumes 2, 2 and 20 * 21 / 2 + 20 = 230, set-up 22: (22 + 4) / 2 = 13, and 252.
    The request in between, alone, has 14.
    """
    shared = SharedPrefixes([-1], [3], [0, 0, 0, -1])
    engine = EngineModel(100, prefix_caching=True)
    instance = Instance([4, 4, 4, 13], [20, 1, 1, 1], engine=engine, prefixes=shared)
    assert subtree_order(instance, 1.0).tolist() == [1, 2, 3, 0]
