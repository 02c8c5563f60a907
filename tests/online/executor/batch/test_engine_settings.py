"""Arguments for vLLM's engine."""

from __future__ import annotations

import pytest

from online.executor.batch.engine_settings import read_arguments


def test_values_are_json_or_text():
    texts = ["dtype=float32", "--enforce-eager=true", 'x={"a": 1}', "seed=3", "y=a=b"]
    assert read_arguments(texts) == {
        "dtype": "float32", "enforce_eager": True, "x": {"a": 1}, "seed": 3, "y": "a=b",
    }  # fmt: skip


@pytest.mark.parametrize("texts", [["dtype"], ["=1"], ["seed=1", "--seed=2"]])
def test_others_are_refused(texts):
    with pytest.raises(ValueError, match="--engine-arg"):
        read_arguments(texts)
