"""Every run keeps the invariants, and a doctored log does not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given

from online.invariants import BrokenRunError, check_log
from online.run_log import NEVER
from online.simulator import simulate
from sortedf.engine_model import EngineModel
from sortedf.traces import Trace
from tests.online.runs import restless_runs
from tests.strategies import examples

if TYPE_CHECKING:
    import numpy as np

pytestmark = pytest.mark.kernel


@examples(200)
@given(restless_runs())
def test_any_run_keeps_them(run):
    """Whatever a policy does."""
    log, rules, _ = run
    check_log(log, rules)


RULES = EngineModel.vllm(20)
LOG = simulate(Trace([4, 4, 4], [6, 6, 6]), "fcfs", RULES)


def changed(name: str, k: int, by: int) -> np.ndarray:
    """A column of LOG or of its steps with one entry off."""
    column = getattr(LOG, name, None)
    column = (getattr(LOG.steps, name) if column is None else column).copy()
    column[k] += by
    return column


@pytest.mark.parametrize(
    ("name", "k", "by", "what"),
    [
        ("output_tokens", 3, -1, "were made"),
        ("kv_tokens", 2, 3, "KV"),
        ("used_blocks", 2, 30, "budget"),
        ("num_decoding", 4, 1, "recomputed"),
        ("end_s", 3, 2, "ended"),
        ("begin_s", 3, 9, "takes time"),
    ],
)
def test_a_doctored_step_is_found(name, k, by, what):
    """Each column is held to what the others say."""
    broken = replace(LOG, steps=replace(LOG.steps, **{name: changed(name, k, by)}))
    with pytest.raises(BrokenRunError, match=what):
        check_log(broken, RULES)


@pytest.mark.parametrize(
    ("name", "by", "what"),
    [
        ("completion_step", NEVER - 6, "completed or refused"),
        ("first_token_step", -1, "in this order"),
        ("completion_step", -1, "at most one token"),
        ("arrival_s", 1, "before it arrives"),
        ("recomputed_tokens", 5, "recomputed"),
    ],
)
def test_a_doctored_request_is_found(name, by, what):
    """No request is lost or early, and no token is made twice."""
    with pytest.raises(BrokenRunError, match=what):
        check_log(replace(LOG, **{name: changed(name, 0, by)}), RULES)
