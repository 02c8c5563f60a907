"""Claim (Sorted-F's proof, separation): groups one after another are only worse.

Let `T_j` be the time when groups `X_1, ..., X_{j-1}` are done if each starts when the
one before is, so `T_j` is the sum of their longest answers. Sorted-F starts every
request of `X_j` at `T_j` or sooner, so TEL is at most that of the separated schedule.

*Proof.* By induction over `j`: at `T_j` all earlier groups are done. Requests of `X_j`
that have not started are next in the list, those that have hold at most their peaks,
and nothing of later groups has started, as a list is started in order. The peaks of
`X_j` fit the budget together, so all of `X_j` that is left can start. QED.

The summary of arXiv 2508.06133 names the step and not its details; statement and proof
are ours. Proved above; checked on all instances of a grid and on larger ones, by
request. With backfill it is false, also shown: later groups may hold the memory.
"""

from __future__ import annotations

from proofs_checks.tiny import all_instances, checked
from proofs_checks.transformations import groups_of, mixed, separated, sorted_f
from sortedf import Instance, place


def separation_holds(instance: Instance) -> bool:
    """Whether each request starts no later than its group does when separated."""
    found = groups_of(instance)
    fast, slow = sorted_f(instance, found), separated(instance, found)
    return bool((fast.start <= slow.start).all()) and fast.tel <= slow.tel


def test_on_small_instances() -> None:
    """Every 53rd of the ordered instances of three requests."""
    assert all(separation_holds(i) for i in all_instances(3, 3, 3, every=53))


def test_on_larger_instances() -> None:
    """Forty requests of a mix."""
    assert all(separation_holds(mixed(seed, 40)) for seed in range(8))


def test_separating_costs_something() -> None:
    """The schedules differ: Sorted-F also uses memory that a group leaves free."""
    instance = mixed(0, 40)
    found = groups_of(instance)
    assert sorted_f(instance, found).tel < separated(instance, found).tel


def test_it_is_false_with_backfill() -> None:
    """Some request starts later than its group does when separated."""
    late = 0
    for seed in range(20):
        instance = mixed(seed, 40)
        found = groups_of(instance)
        order = [i for group in found for i in group]
        start = checked(instance, place(instance, order, backfill=40).start).start
        late += bool((start > separated(instance, found).start).any())
    assert late
