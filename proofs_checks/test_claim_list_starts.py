"""Claim: in a placed list each wait is bounded by twice the work ahead of the request.

For a backlog placed in list order without backfill, with `alpha` the largest peak over
`M` and `v_1, v_2, ...` the volumes in list order, the `k`-th request starts at

    p_k  <=  2 (v_1 + ... + v_{k-1}) / ((1 - alpha) M).

*Proof.* Let `t < p_k`. In step `t` some request `h`, the `k`-th or one before it, was
first in the list and could not start: there is a later step `t'` in which those that
had been started by `t` hold more than `M` less what `h` would hold, so more than
`(1 - alpha) M`. All of these run from `t` to `t'` (they hold something in `t'`), and
what they hold is linear in between and not negative at `t`. So over the steps
`t + 1, ..., t'` they hold `(t' - t + 1) / (t' - t)` times half of `(1 - alpha) M` a
step, or more. Go on from `t'`, and so on until `p_k` is reached: the intervals do not
overlap, and all that was counted belongs to the first `k - 1` requests. QED.

Proved above, by us; it is what makes SVF's guarantee work (see
`test_claim_svf_ratio.py`). Checked here for every request: in every order on a grid of
instances, and for the list rules on larger random ones, in integers. With backfill the
lemma is false, also shown: a request that is passed over waits for later requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from proofs_checks.tiny import all_instances, checked
from proofs_checks.transformations import RULES, mixed
from sortedf import Instance, place
from sortedf.methods import RULES as LISTS
from sortedf.options import Options
from sortedf.volume import volume

if TYPE_CHECKING:
    from collections.abc import Sequence


def holds(instance: Instance, order: Sequence[int], backfill: int = 0) -> bool:
    """Whether the lemma holds for every request of a list."""
    start = checked(instance, place(instance, order, backfill=backfill).start).start
    room = instance.kv_budget - int(instance.peak.max())
    before = 0
    for i in order:
        if int(start[i]) * room > 2 * before:
            return False
        before += int(volume(instance)[i])
    return True


def test_on_all_small_instances() -> None:
    """Three requests with lengths up to 3, by id; the grid has every order."""
    grid = all_instances(3, 3, 3)
    assert all(holds(instance, [0, 1, 2]) for instance in grid)


@pytest.mark.parametrize("rule", RULES)
def test_on_larger_instances(rule: str) -> None:
    """Every list rule, 60 requests."""
    for seed in range(12):
        instance = mixed(seed, 60)
        assert holds(instance, LISTS[rule](instance, Options()).tolist())


def test_it_is_false_with_backfill() -> None:
    """The second request waits 8 steps for two behind it, after work of 2 before it."""
    instance = Instance([1, 18, 1, 1], [1, 1, 8, 8], 20)
    assert holds(instance, [0, 1, 2, 3])
    assert not holds(instance, [0, 1, 2, 3], backfill=2)
