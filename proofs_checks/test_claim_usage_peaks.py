"""Claim: KV usage peaks at completions, so only these steps have to be checked.

*Proof.* The KV of a running request grows by one token a step, so from one step to the
next usage can only fall if a request completes in the first. Hence in every step `t` it
is at most that of the first step `t' >= t` in which a request completes. QED.

As a graph: requests are intervals, and two that share a step are joined. In such an
interval graph every maximal clique is the set that runs when its first member
completes; the budget is a condition on the maximal cliques' steps. Proved above, and
known; `sortedf.instance` and the checker rely on it. Checked: against every single
step, on all schedules of a small instance, feasible or not; and by networkx' cliques.
"""

from __future__ import annotations

from itertools import product

import networkx as nx

from proofs_checks.transformations import mixed
from sortedf import Instance, Schedule, check, solve
from tests import naive


def peak_in_any_step(instance: Instance, start: tuple[int, ...]) -> int:
    """Largest number of tokens held in any step."""
    running = dict(enumerate(start))
    last = max(p + int(o) for p, o in zip(start, instance.decode, strict=True))
    return max(naive.kv_used(instance, running, t) for t in range(1, last + 1))


def test_every_schedule_of_a_small_instance() -> None:
    """All starts up to step 5 of three requests."""
    instance = Instance([2, 1, 3], [3, 4, 1], 8)
    for start in product(range(6), repeat=3):
        peak = peak_in_any_step(instance, start)
        report = check(instance, start)
        assert report.peak_kv == peak
        assert report.feasible == (peak <= 8)


def running_at(schedule: Schedule, step: int) -> frozenset[int]:
    """Return the requests that hold KV in a step."""
    ends = schedule.completion.tolist()
    pairs = enumerate(zip(schedule.start.tolist(), ends, strict=True))
    return frozenset(i for i, (p, c) in pairs if p < step <= c)


def test_maximal_cliques_run_at_completions() -> None:
    """Each maximal clique runs when its first member completes."""
    schedule = solve(mixed(3, 40), "svf", bound="none").schedule
    graph = nx.Graph()
    graph.add_nodes_from(range(40))
    for step in range(1, schedule.makespan + 1):
        running = sorted(running_at(schedule, step))
        graph.add_edges_from((i, j) for i in running for j in running if i < j)
    assert nx.is_chordal(graph)
    cliques = list(nx.chordal_graph_cliques(graph))
    for clique in cliques:
        first = min(int(schedule.completion[i]) for i in clique)
        assert running_at(schedule, first) == clique
    # And no completion shows more than some maximal clique.
    assert all(
        any(running_at(schedule, int(c)) <= clique for clique in cliques)
        for c in schedule.completion
    )
