"""Charges for shared prefixes: valid, and no more than that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sortedf import EngineModel, Instance, bound, generate
from sortedf.certificate import proven_bound, read_certificate, write_certificate
from sortedf.charges import UNIT, num_together
from sortedf.errors import CertificateError
from sortedf.shared_prefixes import SharedPrefixes

SHARED = SharedPrefixes([-1, 0], [6, 2], [0, 1, 1])
INSTANCE = Instance(
    [7, 9, 10], [3, 3, 4], prefixes=SHARED, engine=EngineModel(16, prefix_caching=True)
)


def test_equal_charges_are_above_own_parts():
    """As no request can do without the prefix."""
    alone, charged = (bound(INSTANCE, name) for name in ("own-parts", "equal-charges"))
    assert alone.value < charged.value
    assert charged.certificate.node.tolist() == [0, 0, 0, 1, 1]


def test_only_as_many_as_fit_share_a_charge():
    """Beside the path to the node, each with its first token, in whole blocks."""
    assert num_together(INSTANCE, 0, [1, 3, 4]) == 2  # 10 left: 2 + 4, not + 5
    assert num_together(INSTANCE, 1, [1, 2]) == 2  # 8 left: 2 + 3
    capped = INSTANCE.replace(
        engine=EngineModel(16, max_num_seqs=1, prefix_caching=True)
    )
    assert num_together(capped, 0, [1, 3, 4]) == 1
    blocks = SharedPrefixes([-1], [1], [0, 0])
    engine = EngineModel(16, 4, prefix_caching=True)
    coarse = Instance([5, 5], [2, 2], engine=engine, prefixes=blocks)
    assert num_together(coarse, 0, [1, 1, 1, 1]) == 3  # 3 blocks left, one each


def test_a_prefix_that_no_request_has_is_left_out():
    """Equal parts of it were a division by zero."""
    extra = SharedPrefixes([-1, 0, -1], [6, 2, 5], [0, 1, 1])
    instance = INSTANCE.replace(prefixes=extra)
    assert len(instance.prefixes) == 2
    for name in ("own-parts", "equal-charges", "split-prices"):
        assert bound(instance, name).value == bound(INSTANCE, name).value


@pytest.mark.slow
def test_time_is_left_for_better_bounds():
    """Prices with charges were climbed until the limit, and then nothing else was."""
    trace = generate("system-prompts", 400, seed=1, per_prefix=100)
    engine = EngineModel(16384, prefix_caching=True)
    instance, _ = trace.to_instance(engine=engine)
    bound(instance, "split-prices", time_limit=0.1)  # compiles
    assert bound(instance, time_limit=10).method == "split-prices"


def test_a_file_proves_the_same(tmp_path):
    """Node, member and charge, and the certificate of the rest."""
    found = bound(INSTANCE, "equal-charges")
    write_certificate(found.certificate, tmp_path / "proof.json")
    again = read_certificate(tmp_path / "proof.json")
    assert proven_bound(INSTANCE, again) == found.value == again.bound


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"charge": [3 * UNIT + 1, 3 * UNIT, 0, UNIT, UNIT]}, "node 0 has 6 blocks"),
        ({"charge": [1, 1, 1, -1, 1]}, "a charge is -1"),
        ({"member": [0, 1, 2, 0, 2]}, "request 0 is not below node 1"),
        ({"member": [0, 1, 1, 1, 2]}, "request 1 is not below .* or is charged"),
        ({"node": [0, 0, 0, 1, 7]}, "request 2 is not below node 7"),
        ({"node": [0, 0, 0]}, "must be equally long"),
    ],
)
def test_charges_that_are_not_valid_are_refused(change, message):
    """Whatever they would prove."""
    good = bound(INSTANCE, "equal-charges").certificate
    arrays = {name: np.array(values, dtype=np.int64) for name, values in change.items()}
    with pytest.raises(CertificateError, match=message):
        proven_bound(INSTANCE, replace(good, **arrays))


def test_parts_that_are_not_all_requests_are_refused():
    """One, with all requests in order, and no charges inside."""
    good = bound(INSTANCE, "equal-charges").certificate
    part = good.part[0]
    for bad in (
        (),
        (part, part),
        (replace(part, request=part.request[::-1]),),
        (replace(part, certificate=good),),
    ):
        with pytest.raises(CertificateError, match="part"):
            proven_bound(INSTANCE, replace(good, part=bad))
