"""`step-prices`: never above the optimum, close where two caps bind, and a schedule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance, bound, check, solve
from sortedf.certificate import proven_bound, read_certificate, write_certificate
from sortedf.errors import CertificateError
from tests import naive
from tests.strategies import engines, examples, instances


@examples(40)
@given(instances(max_requests=4, max_length=5, engine=engines()))
def test_it_is_not_above_the_optimum(instance):
    """With every cap, with arrivals and blocks; its certificate proves the same."""
    found = bound(instance, "step-prices")
    assert found.value <= naive.best_tel(instance)
    assert proven_bound(instance, found.certificate) == found.value
    assert check(instance, found.schedule.start).feasible


@examples(20)
@given(
    instances(max_requests=3, max_length=4, arrivals=False, engine=engines()),
    st.data(),
)
def test_a_changed_certificate_proves_no_more_than_the_optimum(instance, data):
    """Any price changed: refused, or what it proves is true."""
    claim = bound(instance, "step-prices").certificate
    name = data.draw(
        st.sampled_from(["end", "request_price", "block_price", "token_price"])
    )
    values = getattr(claim, name).copy()
    change = 1 if name == "end" else 2**32
    values[data.draw(st.integers(0, len(values) - 1))] += change
    try:
        value = proven_bound(instance, replace(claim, **{name: values}))
    except CertificateError:
        return
    assert value <= naive.best_tel(instance)


def mix(n: int) -> Instance:
    """Chats and documents, where places bind first and then memory."""
    rng = np.random.default_rng(3)
    long = rng.random(n) < 0.2
    prefill = np.where(long, rng.integers(400, 1600, n), rng.integers(5, 120, n))
    decode = np.where(long, rng.integers(5, 60, n), rng.integers(20, 400, n))
    return Instance(prefill, decode, engine=EngineModel(24_000, max_num_seqs=120))


def test_it_is_better_than_all_other_bounds_where_two_caps_bind(tmp_path):
    """So "auto" takes it, and its schedule; a file proves the same."""
    instance = mix(600)
    found = bound(instance)
    assert found.method == found.found_by == "step-prices"
    for name in ("machines", "fluid-dff", "fluid"):
        assert found.value > 1.02 * bound(instance, name).value
    write_certificate(found.certificate, tmp_path / "proof.json")
    assert proven_bound(instance, read_certificate(tmp_path / "proof.json")) == (
        found.value
    )
    assert solve(instance).gap < 0.03


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": np.array([1, 2])}, "equally long"),
        ({"token_price": np.zeros(0, dtype=np.int64)}, "equally long"),
        ({"end": np.array([0])}, "must ascend"),
    ],
)
def test_numbers_out_of_range_are_refused(change, message):
    """Each rule has a message that names the field."""
    one = Instance([3], [2], engine=EngineModel(9, max_num_seqs=1))
    claim = bound(one, "step-prices").certificate
    short = replace(
        claim,
        **{f"{x}_price": np.zeros(1, np.int64) for x in ("request", "block", "token")},
    )
    short = replace(short, end=np.array([1]))
    assert proven_bound(one, short) == 2
    with pytest.raises(CertificateError, match=message):
        proven_bound(one, replace(short, **change))
