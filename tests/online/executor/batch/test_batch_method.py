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
    prompts = [[7] * length for length in (200, 1, 0, 30)]
    assert start_order(prompts, [100, 2, 5, 2000], rules, method) == [1, 0, 4, 4]
    assert start_order([], [], rules, method) == []


@pytest.mark.parametrize("name", ["depth-first", "auto"])
def test_prompts_that_begin_alike_are_kept_together(name):
    """Four documents with four questions each, of which one fits the cache."""
    rules = EngineModel.vllm(1024, 16, 8, 2048, prefix_caching=True)
    prompts = [
        [*range(1000 * document, 1000 * document + 640), question]
        for question in range(4)
        for document in range(4)
    ]
    order = start_order(prompts, [20] * 16, rules, read_method(name, seed=1))
    documents = [i % 4 for i in sorted(range(16), key=order.__getitem__)]
    assert [documents[k : k + 4] for k in range(0, 16, 4)] == [
        [document] * 4 for document in documents[::4]
    ]
    blind = EngineModel.vllm(1024, 16, 8, 2048)
    order = start_order(prompts, [20] * 16, blind, read_method(name))
    assert sorted(order) == list(range(16))
    other = start_order(prompts, [20] * 16, rules, read_method("best-list"))
    assert sorted(other) == list(range(16))
