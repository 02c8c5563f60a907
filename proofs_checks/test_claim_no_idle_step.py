"""Claim: an optimal schedule of a backlog never idles, and ends by `sum o`.

*Proof.* If nothing runs in a step `t` before the last completion, starting everything
behind `t` one step sooner keeps all distances, and so usage, and is better. So in each
step up to the makespan something runs, and there are at most `sum o` such steps. QED.

*Substructure.* In an optimal schedule every request starts at its first feasible step,
given all the others: an earlier one would be better. (Given only those before it in
some order this is false: `test_counterexample_waiting_pays.py`.) And any subset of the
requests, with its starts kept, is a feasible schedule of that subset.

Proved above. It gives the exact search of this folder its horizon. Checked: a longer
horizon finds nothing better, and both properties hold on optimal schedules.
"""

from __future__ import annotations

from proofs_checks import tiny
from sortedf import check


def test_optima_have_the_properties() -> None:
    """Small instances: no idle step, no request that could start sooner."""
    for instance in tiny.all_instances(3, 3, 4, every=211):
        best = tiny.optimum(instance)
        assert best is not None
        total = int(instance.decode.sum())
        longer = tiny.optimum(instance, horizon=total + 4)
        assert longer is not None
        assert longer.tel == best.tel
        assert best.makespan <= total
        runs = zip(best.start.tolist(), best.completion.tolist(), strict=True)
        busy = {t for p, c in runs for t in range(p + 1, c + 1)}
        assert busy == set(range(1, best.makespan + 1))
        for i, p in enumerate(best.start.tolist()):
            for sooner in range(p):
                start = best.start.copy()
                start[i] = sooner
                assert not check(instance, start).feasible


def test_parts_stay_feasible() -> None:
    """Every subset of a schedule is a schedule of the subset."""
    for instance in tiny.all_instances(3, 3, 3, every=101):
        best = tiny.optimum(instance)
        assert best is not None
        for ids in ([0, 1], [0, 2], [1, 2]):
            assert check(instance.subset(ids), best.start[ids]).feasible
