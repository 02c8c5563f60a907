"""Claim (Sorted-F's proof, alignment): prices are paid by late completions, two each.

With `P_i = R_j F_j` for the requests of group `X_j` (see `transformations.py`), each
request `i` of Sorted-F can be matched to a request `r` of any other schedule whose
completion is at least `P_i / 10`, so that no `r` is used more than twice. Hence
`sum P_i <= 20 TEL` of the other schedule.

*Proof.* Let `i` in `X_j` and `tau = P_i / 10 = R_j F_j / 10`. All groups within `U_j`
that fit have `F >= F_j`, as Sorted-F takes the least. By the corollary of
`test_claim_grouping.py` the other schedule completes at most `5 tau / F_j = R_j / 2`
requests of `U_j` by `tau`, so at least `R_j / 2` complete later. If `i` is the `y`-th
from the end of Sorted-F's list, `y <= R_j`, and the `ceil(y / 2)`-th latest completion
is above `tau`: match to it. Each is used for two `y` at most. QED.

This is the argument of min-sum set cover, whose greedy rule has factor 4 = 2 * 2. The
summary of arXiv 2508.06133 names the step only; the proof is ours. Checked: the
explicit matching for every request, and, as a graph, that a matching exists (networkx).
A group's longest answer is below twice its mean, the other factor 2: else it would be
left out. Proved: with `k` members and sum `S` the longest `L` has
`(S - L) / (k - 1)^2 >= S / k^2`, so `L <= (2 k - 1) S / k^2`. Checked as well.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np

from proofs_checks import tiny
from proofs_checks.transformations import RULES, groups_of, mixed, prices
from sortedf import Instance, solve

if TYPE_CHECKING:
    from sortedf import Schedule


def alignment_holds(schedule: Schedule) -> bool:
    """Whether the matching of the proof is one."""
    price = prices(schedule.instance, groups_of(schedule.instance))
    latest_first = np.sort(schedule.completion)[::-1].tolist()
    return all(
        10 * latest_first[y // 2] >= p for y, p in enumerate(reversed(price))
    ) and sum(price) <= 20 * sum(latest_first)


def matching_exists(schedule: Schedule) -> bool:
    """Whether a maximum matching of the graph covers all of Sorted-F's requests."""
    price = prices(schedule.instance, groups_of(schedule.instance))
    graph = nx.Graph()
    payers = [("price", i) for i in range(len(price))]
    graph.add_nodes_from(payers)
    for i, p in enumerate(price):
        for r, completion in enumerate(schedule.completion.tolist()):
            if 10 * completion >= p:
                graph.add_edges_from([(("price", i), (r, copy)) for copy in (0, 1)])
    found = nx.bipartite.hopcroft_karp_matching(graph, payers)
    return all(payer in found for payer in payers)


def longest_is_below_twice_the_mean(instance: Instance) -> bool:
    """Whether `k^2 L <= (2 k - 1) S` in every group."""
    for group in groups_of(instance):
        k, answers = len(group), instance.decode[group].tolist()
        if k * k * max(answers) > (2 * k - 1) * sum(answers):
            return False
    return True


def test_on_optimal_schedules() -> None:
    """Small instances, with their optima."""
    for instance in tiny.all_instances(3, 4, 4, every=797):
        best = tiny.optimum(instance)
        assert best is not None
        assert alignment_holds(best)
        assert longest_is_below_twice_the_mean(instance)


def test_on_other_schedules() -> None:
    """Larger ones, under several rules: the claim is about any schedule."""
    for seed in range(4):
        instance = mixed(seed, 40)
        assert longest_is_below_twice_the_mean(instance)
        for rule in RULES:
            assert alignment_holds(solve(instance, rule, bound="none").schedule)


def test_as_a_matching_in_a_graph() -> None:
    """One instance, as a bipartite graph with two copies of each completion."""
    instance = mixed(1, 30)
    assert matching_exists(solve(instance, "svf", bound="none").schedule)


def test_prices_of_a_hand_made_instance() -> None:
    """Two short ones first (F = 2/4), then the long one: prices 3/2, 3/2 and 4."""
    instance = Instance([1, 1, 1], [1, 1, 4], 5)
    assert prices(instance, groups_of(instance)) == [Fraction(3, 2)] * 2 + [4]
