"""List policies under the papers' rules start what offline placement starts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, place
from sortedf.methods.table import RULES
from sortedf.options import Options
from tests.online.policies.engine_runs import run
from tests.strategies import engines, examples, instances

pytestmark = pytest.mark.kernel


@pytest.mark.parametrize("name", ["fcfs", "mc-sf", "total-size", "svf"])
@given(instances(engine=engines(), max_requests=9), st.integers(0, 3))
@examples(40)
def test_equals_placement(name, instance, backfill):
    """Same starts, arrivals and caps included; the engine has nothing to preempt."""
    # A policy ranks by the plain volume; the offline rule by the volume in blocks.
    if name == "svf":
        plain = instance.replace(engine=EngineModel(instance.kv_budget))
        order = RULES[name](plain, Options())
    else:
        order = RULES[name](instance, Options())
    # Ties of a policy go to the earlier arrival.
    place_of = {int(i): k for k, i in enumerate(order)}
    key = {
        "fcfs": instance.arrival,
        "mc-sf": instance.decode,
        "total-size": instance.prefill + instance.decode,
        "svf": instance.prefill * instance.decode
        + instance.decode * (instance.decode + 1) // 2,
    }[name]
    order = sorted(place_of, key=lambda i: (key[i], instance.arrival[i], i))
    rules = instance.engine
    done = run(instance, rules, name, admission="look-ahead", backfill=backfill)
    expected = place(instance, order, backfill=backfill)
    assert done.log.start_s.tolist() == expected.start.tolist()
    assert done.log.completion_s.tolist() == expected.completion.tolist()
    assert done.preemptions == 0


@given(instances(arrivals=False, max_requests=9), st.integers(0, 2))
@examples(40)
def test_sorted_f_online_is_sorted_f_on_a_backlog(instance, backfill):
    """With everything there at once and exact groups it is the offline method."""
    rules = instance.engine
    done = run(instance, rules, "sorted-f-online", groups="exact", backfill=backfill)
    order = RULES["exact"](instance, Options())
    expected = place(instance, order, backfill=backfill)
    assert done.log.start_s.tolist() == expected.start.tolist()
