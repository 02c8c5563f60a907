"""What `--method` may be."""

from __future__ import annotations

import pytest

from online.executor.batch.batch_method import read_method, start_order
from online.policy import POLICIES, make_policy
from sortedf.engine_model import EngineModel
from sortedf.methods import METHODS


def test_a_policy_with_its_options():
    found = read_method("uniboost:gamma=0.5", max_wait_s=60.0)
    assert found.offline is None
    assert found.scheduler == {"policy": "uniboost", "gamma": 0.5, "max_wait_s": 60.0}
    assert read_method("svf", backfill=3).scheduler == {"policy": "svf", "backfill": 3}


@pytest.mark.parametrize("name", sorted(METHODS))
def test_every_method_makes_a_policy_that_the_scheduler_takes(name):
    options = dict(read_method(name).scheduler)
    make_policy(options.pop("policy"), **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("svff", "unknown method 'svff'; choose a policy .*svf.* or an offline"),
        ("plan", "unknown method 'plan'"),
        ("svf:gamma=1", "has no option 'gamma'"),
        ("sorted-f:gamma=1", "takes no options here"),
        ("", "has no name"),
    ],
)
def test_others_are_refused(text, message):
    assert "plan" in POLICIES
    with pytest.raises(ValueError, match=message):
        read_method(text)


def test_places_follow_the_plan():
    rules = EngineModel.vllm(1024, 16, 8, 64)
    method = read_method("exact")
    assert start_order([200, 1, 0, 30], [100, 2, 5, 2000], rules, method) == [
        1,
        0,
        4,
        4,
    ]
    assert start_order([], [], rules, method) == []
