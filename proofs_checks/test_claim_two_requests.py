"""Claim: of two requests the one with the shorter answer starts first in an optimum.

With `o_1 <= o_2` the optimum of a backlog is

    o_1 + o_2 + min(o_1, max(0, s_1 + s_2 + 2 o_1 - M)),

and Sorted-F and shortest answer first attain it.

*Proof.* In an optimum some request starts at 0. If it is request 1 and request 2 starts
at `d <= o_1`, request 1 completes first, since `o_1 <= d + o_2`. If `d = o_1` both fit.
If `d < o_1` they hold `s_1 + o_1 + s_2 + o_1 - d` when request 1 completes, the largest
usage while both run, so that `d >= D = s_1 + s_2 + 2 o_1 - M` is necessary and
sufficient: the least delay is `min(o_1, max(0, D))`. If request 2 starts at 0 and
request 1 at `d`, then either request 1 completes first, at `d + o_1 <= o_2`, and they
hold `s_1 + o_1 + s_2 + d + o_1` then, which needs `D + d <= 0` and so `D <= 0`: the
other way round the delay is 0. Or request 2 completes first, and `d >= o_2 >= o_1`, or
`s_2 + o_2 + s_1 + o_2 - d <= M` and `d >= s_1 + s_2 + 2 o_2 - M >= D`: the delay is at
least that of the other way round. Shortest answer first places request 1 at 0 and
request 2 at its least delay. (If `o_1 = o_2` the formula is symmetric.) Sorted-F's list
has request 1 first, too: a group of both is listed by answer length, and of two groups
of one, `{1}` has the smaller `F`. QED.

Ours. Proved above; exhaustive against exact optima for lengths up to 6.
"""

from __future__ import annotations

from proofs_checks import tiny
from proofs_checks.families import method_tel
from sortedf import Instance


def formula(instance: Instance) -> int:
    """Return the optimum of two requests."""
    short = int(instance.decode.min())
    wait = int(instance.prefill.sum()) + 2 * short - instance.kv_budget
    return int(instance.decode.sum()) + min(short, max(0, wait))


def test_on_all_small_instances() -> None:
    """Every ordered pair with lengths up to 6, in every budget that both fit alone."""
    for instance in tiny.all_instances(2, 6, 6, every=1):
        best = tiny.optimum(instance)
        assert best is not None
        assert best.tel == formula(instance)
        assert method_tel(instance, "mc-sf") == best.tel


def test_sorted_f_attains_it() -> None:
    """A part of the same grid; `test_claim_sorted_f_40.py` has all of it."""
    for instance in tiny.all_instances(2, 6, 6, every=31):
        assert method_tel(instance, "sorted-f") == formula(instance)


def test_three_requests_need_more() -> None:
    """With a third request no list need attain the optimum."""
    instance = Instance([1, 3, 5], [7, 3, 3], 12)
    best = tiny.optimum(instance)
    assert best is not None
    assert best.tel == 17 < tiny.best_in_sequence(instance).tel
