"""The forest of prefixes: equal to comparing the chains of all who run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from online.prefix_forest import NO_NODE, PrefixForest
from tests.strategies import examples

SIZE = 2


def chain_of(tokens):
    """One key per full block: all tokens up to its end."""
    return [tuple(tokens[:end]) for end in range(SIZE, len(tokens) + 1, SIZE)]


def path_of(forest, i):
    """Nodes on the path of a request, from its leaf to the root."""
    path, node = [], int(forest.leaf[i])
    while node != NO_NODE:
        path.append(node)
        node = int(forest.parent[node])
    depths = [0, *reversed(forest.depth[path].tolist())]
    assert depths == sorted(set(depths))
    return path


def check_paths(forest, running):
    """Each request's path has its blocks, and each node counts its holders."""
    holds: dict[int, object] = {}
    for i, keys in running.items():
        path = path_of(forest, i)
        assert (int(forest.depth[path[0]]) if path else 0) == len(keys)
        for node in path:
            last = keys[int(forest.depth[node]) - 1]
            assert holds.setdefault(node, last) == last  # one node, one content
            holders = sum(last in other for other in running.values())
            assert forest.held[node] == holders


prompts = st.lists(st.integers(0, 1), min_size=1, max_size=12)
events = st.lists(st.tuples(st.sampled_from("lsxx"), st.integers(0, 7)), max_size=40)


@given(st.lists(prompts, min_size=8, max_size=8), events)
@examples(300)
def test_follows_who_comes_runs_and_goes(tokens, events):
    """A running request holds its own blocks, and each node counts its holders."""
    chains = [chain_of(t) for t in tokens]
    running: dict[int, list[object]] = {}
    cached: set[object] = set()

    def num_cached(i, most):
        return next((k for k in range(most) if chains[i][k] not in cached), most)

    forest = PrefixForest(chains.__getitem__, num_cached, SIZE)
    for what, i in events:
        most = (len(tokens[i]) - 1) // SIZE
        if what == "l" and i not in running:
            found = forest.look_up([i], [len(tokens[i])])
            assert found.tolist() == [num_cached(i, most) * SIZE]
            there = {key for keys in running.values() for key in keys}
            shares = next((k for k in range(most) if chains[i][k] not in there), most)
            total = -(-len(tokens[i]) // SIZE)
            needs = forest.needs([i], [len(tokens[i])], [total])
            assert needs == [total - shares]
        elif what == "s" and i not in running:
            found = num_cached(i, most)
            there = {key for keys in running.values() for key in keys}
            forest.start(i, chains[i], found)
            rest = chains[i][found:]
            copies = any(key in there for key in rest)
            running[i] = chains[i][:found] if copies else chains[i]
            cached |= set(chains[i])
        elif what == "x":
            forest.stop(i)
            running.pop(i, None)
            if i not in running:
                assert i >= len(forest.leaf) or forest.leaf[i] == NO_NODE
        check_paths(forest, running)
    for i in range(8):
        forest.stop(i)
    assert not forest.held.any()


def test_nodes_of_requests_that_ended_are_used_again():
    """The tables do not grow with the number of requests that ever ran."""
    chain = chain_of([1] * 9)
    forest = PrefixForest(lambda i: chain, lambda i, most: 0, SIZE)
    sizes = set()
    for _ in range(300):
        forest.start(0, chain, 0)
        sizes.add(len(forest.held))
        forest.stop(0)
    assert len(sizes) == 1


def test_many_requests_make_room():
    """A hundred prompts with a common start, of different lengths."""
    chains = [chain_of([0] * (2 * i + 2) + [i + 1] * 4) for i in range(100)]
    forest = PrefixForest(chains.__getitem__, lambda i, most: 0, SIZE)
    for i in range(100):
        forest.start(i, chains[i], i)
    check_paths(forest, dict(enumerate(chains)))
    first = int(forest.leaf[99])
    while forest.parent[first] != NO_NODE:
        first = int(forest.parent[first])
    assert forest.held[first] == 100


def test_those_that_start_together_share_what_the_first_of_them_brings():
    """Five blocks in common and one of their own each: six, then one each."""
    chains = [chain_of([0] * 10 + [i + 1] * 2) for i in range(3)]
    forest = PrefixForest(chains.__getitem__, lambda i, most: 0, SIZE)
    assert forest.needs([0, 1, 2], [13, 13, 13], [7, 7, 7]) == [7, 2, 2]
