"""Refuted: "SVF stays within `1 + 2 / (1 - α)` if a cap limits how many run at once".

With `max_num_seqs = 1` memory never binds, and the shortest answer first is optimal;
volumes do not measure how long a request delays the others. `L` requests of
prompt 1 and answer `L` have a volume of about `1.5 L^2`, and `L^2 / 5` of prompt `L^2`
and answer 1 have a little less or more, so that SVF may run all long ones first. For
`L = 25` and `M = 100 (L^2 + 1)`: 25 requests of prompt 1 and answer 25 with volume 350,
125 of prompt 625 and answer 1 with volume 626. The largest peak is `M / 100`, and the
constant 3.02; SVF has TEL 94,125, the shortest answer first 19,125: 4.9 times less.

So the guarantees of `svf` and of Sorted-F are for the papers' model, without caps.
"""

from __future__ import annotations

from fractions import Fraction

from proofs_checks.families import method_tel
from sortedf import EngineModel, Instance

PREFILL = [1] * 25 + [625] * 125
DECODE = [25] * 25 + [1] * 125
KV_BUDGET = 62_600


def test_one_place_breaks_the_constant() -> None:
    """Peaks are a hundredth of the budget, so the constant is 298 / 99."""
    engine = EngineModel(KV_BUDGET, max_num_seqs=1)
    instance = Instance(PREFILL, DECODE, engine=engine)
    alpha = Fraction(int(instance.peak.max()), KV_BUDGET)
    constant = 1 + 2 / (1 - alpha)
    assert alpha == Fraction(1, 100)
    svf, other = method_tel(instance, "svf"), method_tel(instance, "mc-sf")
    assert (svf, other) == (94_125, 19_125)
    assert Fraction(svf, other) > constant


def test_without_the_cap_it_holds() -> None:
    """The same requests in the papers' model."""
    instance = Instance(PREFILL, DECODE, KV_BUDGET)
    assert method_tel(instance, "svf") <= 3 * sum(DECODE)
