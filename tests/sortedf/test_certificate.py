"""Certificates: they prove what they prove, whatever they claim."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sortedf import EngineModel, Instance, bound, generate
from sortedf.bounds.table import certified_bounds
from sortedf.certificate import (
    CHUNK,
    Certificate,
    instance_hash,
    proven_bound,
    read_certificate,
    write_certificate,
)
from sortedf.errors import CertificateError
from sortedf.growth_certificate import GrowthCertificate
from sortedf.row_certificate import RowCertificate
from tests import naive
from tests.strategies import engines, examples, instances

CERTIFIED = sorted(certified_bounds())
"""Bounds that always come with a certificate."""


@pytest.fixture
def instance() -> Instance:
    rng = np.random.default_rng(0)
    return Instance(rng.integers(1, 90, 30), rng.integers(1, 40, 30), 300)


@pytest.fixture
def certificate(instance) -> Certificate:
    found = bound(instance, "dual").certificate
    assert found is not None
    return found


def test_round_trip(instance, certificate, tmp_path):
    """What is read is what was written, and proves the same."""
    path = tmp_path / "certificate.json"
    write_certificate(certificate, path)
    again = read_certificate(path)
    assert again.price.tolist() == certificate.price.tolist()
    assert proven_bound(instance, again) == certificate.bound == again.bound


def test_one_price_changed_gives_its_own_value(instance, certificate):
    """A tampered certificate never proves more than it should: still a true bound."""
    price = certificate.price.copy()
    price[np.argmax(price)] //= 2
    changed = replace(certificate, price=price)
    assert proven_bound(instance, changed) < certificate.bound


def test_a_false_claim_changes_nothing(instance, certificate):
    """The claim is not read when the bound is evaluated."""
    liar = replace(certificate, bound=10**9)
    assert proven_bound(instance, liar) == certificate.bound


@pytest.mark.parametrize(
    "change",
    [
        {"kv_budget": 301},
        {"prefill": [1] * 30},
        {"decode": [1] * 30},
        {"arrival": [1] * 30},
        {"engine": EngineModel(300, block_size=2)},
        {"engine": EngineModel(300, max_num_seqs=200)},
        {"engine": EngineModel(300, max_batched_tokens=200)},
    ],
)
def test_another_instance_is_refused(instance, certificate, change):
    """Every number that the bound depends on is in the hash."""
    other = instance.replace(**change)
    assert instance_hash(other) != instance_hash(instance)
    with pytest.raises(CertificateError, match="another instance"):
        proven_bound(other, certificate)


def test_each_limit_of_the_engine_has_its_place_in_the_hash(instance):
    """The same number as another limit is another engine."""
    engines = [
        EngineModel(300, max_num_seqs=200),
        EngineModel(300, max_batched_tokens=200),
    ]
    first, second = (instance_hash(instance.replace(engine=one)) for one in engines)
    assert first != second


def formula(instance, bits, price):
    """Evaluate the formula at the head of the file, with every start in turn."""
    held = [
        [instance.engine.round_up(s + j) for j in range(1, o + 1)]
        for s, o in zip(
            instance.prefill.tolist(), instance.decode.tolist(), strict=True
        )
    ]

    def bracket(i, start):
        paid = sum(w * p for w, p in zip(held[i], price[start:], strict=False))
        late = start + len(held[i]) - int(instance.arrival[i])
        return late * 2**bits + paid

    total = -instance.usable_kv * sum(price)
    for i, first in enumerate(instance.arrival.tolist()):
        starts = range(first, max(first, len(price)) + 1)
        total += min(bracket(i, start) for start in starts)
    return ceil(Fraction(total, 2**bits))


@given(instances(max_requests=4, max_length=6, engine=engines()), st.data())
def test_prices_prove_their_formula(instance, data):
    """Not only what is true: exactly what they are worth."""
    price = data.draw(st.lists(st.integers(0, 9), max_size=20))
    bits = data.draw(st.integers(0, 4))
    certificate = Certificate(
        instance_hash(instance), 0, bits, np.array(price, np.int64)
    )
    assert proven_bound(instance, certificate) == formula(instance, bits, price)


@pytest.mark.parametrize("block", [1, 2])
@pytest.mark.parametrize("free", [0, CHUNK - 2, CHUNK - 1, CHUNK, CHUNK + 700])
def test_every_start_of_a_long_list_of_prices_counts(free, block):
    """All steps are dear but one; a chunk's last start is looked at like the others."""
    instance = Instance([1], [1], engine=EngineModel(2, block_size=block))
    price = np.full(CHUNK + 701, 10**6)
    price[free] = 0
    certificate = Certificate(instance_hash(instance), 0, 0, price)
    assert proven_bound(instance, certificate) == free + 1 - 2 * int(price.sum())


@pytest.mark.parametrize(
    ("arrival", "bits", "price"),
    [
        # bits: the last step is 2, one of prices and one of the answer
        (0, 61, 0),
        # prices: 2 + 2 p, as the request holds 2 tokens in its only step
        (0, 0, 2**62 - 2),
        # an arrival after the prices moves the last step to 10
        (9, 0, 2**62 - 6),
    ],
)
def test_what_64_bits_hold_is_taken_and_no_more(arrival, bits, price):
    """The limit is exact: a price, or a bit, more is refused."""
    instance = Instance([1], [1], 2, [arrival])

    def prove(bits, price):
        certificate = Certificate(instance_hash(instance), 0, bits, np.array([price]))
        return proven_bound(instance, certificate)

    assert prove(bits, price) == formula(instance, bits, [price])
    with pytest.raises(CertificateError, match="too large for exact 64-bit"):
        prove(bits, price + 1) if price else prove(bits + 1, price)


def test_negative_prices_are_refused(instance, certificate):
    """They would prove anything."""
    price = certificate.price.copy()
    price[3] = -1
    with pytest.raises(
        CertificateError, match=r"price\[3\] = -1 but must be 0 or more"
    ):
        proven_bound(instance, replace(certificate, price=price))


@pytest.mark.parametrize("bits", [-1, 63, 62])
def test_scales_that_do_not_fit_are_refused(instance, certificate, bits):
    """Too few or too many bits after the point."""
    with pytest.raises(CertificateError, match=r"scale_bits|too large"):
        proven_bound(instance, replace(certificate, scale_bits=bits))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("price", [1, -1], r"price\[1\] = -1"),
        ("price", [2**62], r"price\[0\] = 4611686018427387904 but must be"),
        ("price", [1, 2.5], r"price\[1\] = 2.5"),
        ("price", [True], r"price\[0\] = True"),
        ("price", "1", "'price' is missing or is no list"),
        ("lower_bound", "7", "'lower_bound' is missing or is no int"),
        ("scale_bits", None, "'scale_bits' is missing or is no int"),
        ("instance_sha256", 7, "'instance_sha256' is missing or is no str"),
    ],
)
def test_broken_files_are_refused(certificate, tmp_path, key, value, message):
    """The message names the file and the key."""
    path = tmp_path / "c.json"
    write_certificate(certificate, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    content[key] = value
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(CertificateError, match=message):
        read_certificate(path)


def test_the_largest_price_of_a_file_is_taken(certificate, tmp_path):
    path = tmp_path / "c.json"
    write_certificate(replace(certificate, price=np.array([2**62 - 1])), path)
    assert read_certificate(path).price.tolist() == [2**62 - 1]


def test_files_that_are_no_certificates(tmp_path):
    """Missing, no JSON, or a list."""
    path = tmp_path / "c.json"
    with pytest.raises(CertificateError, match="cannot be read: No such file"):
        read_certificate(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(CertificateError, match="is no JSON"):
        read_certificate(path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(CertificateError, match="one JSON object"):
        read_certificate(path)


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("lengths", ["short", "documents", "roomy"])
def test_every_bound_can_be_checked_by_anybody(name, lengths, instance, tmp_path):
    """What is written to a file proves exactly what was said, whatever won."""
    if lengths == "documents":
        instance, _ = generate("documents", 10, seed=1).to_instance(4200)
    if lengths == "roomy":  # everything fits, and answers alone are the bound
        instance = instance.replace(kv_budget=10**6, arrival=[7] * 30)
    found = bound(instance, name, certified=True)
    assert found.certificate is not None
    path = tmp_path / "certificate.json"
    write_certificate(found.certificate, path)
    again = read_certificate(path)
    assert type(again) is type(found.certificate)
    assert proven_bound(instance, again) == found.value == again.bound


@examples(15)
@given(instances(max_requests=5, max_length=6, engine=engines()))
def test_every_bound_of_tiny_instances_can_be_checked(instance):
    """With arrivals and blocks, empty instances too."""
    for name in CERTIFIED:
        found = bound(instance, name, certified=True)
        assert found.certificate is not None
        assert proven_bound(instance, found.certificate) == found.value


@examples(100)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_no_growth_certificate_proves_more_than_the_optimum(instance, data):
    """Wherever it comes from."""
    numbers = st.lists(st.integers(0, 9), min_size=12, max_size=12)
    certificate = GrowthCertificate(
        instance_hash(instance),
        10**9,
        data.draw(st.integers(0, 8)),
        data.draw(st.integers(1, 20)),
        np.array(data.draw(numbers)),
        np.array(data.draw(numbers)),
    )
    assert proven_bound(instance, certificate) <= naive.best_tel(instance)


@examples(100)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_no_rows_prove_more_than_the_optimum(instance, data):
    """Any divisors and weights."""
    budget = instance.usable_kv // instance.engine.block_size
    row = st.tuples(st.integers(1, budget), st.integers(0, 5))
    rows = np.array(data.draw(st.lists(row, max_size=3)), int).reshape(-1, 2)
    certificate = RowCertificate(instance_hash(instance), 10**9, *rows.T)
    assert proven_bound(instance, certificate) <= naive.best_tel(instance)


def test_one_number_of_growth_rows_changed_gives_its_own_value():
    """A tampered certificate proves less, or something else that is true."""
    instance, _ = generate("documents", 30, seed=1).to_instance(8192)
    found = bound(instance, "growth")
    assert isinstance(found.certificate, GrowthCertificate)
    price = found.certificate.price.copy()
    price[np.argmax(price)] //= 2
    changed = replace(found.certificate, price=price)
    assert proven_bound(instance, changed) < found.value
    with pytest.raises(CertificateError, match="another instance"):
        proven_bound(instance.replace(kv_budget=8193), found.certificate)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"price": [1, -1]}, r"price\[1\] = -1"),
        ({"horizon": [-2, 1]}, r"horizon\[0\] = -2"),
        ({"horizon": [1]}, "2 prices but 1 horizons"),
        ({"horizon": [1, 2**40]}, "a horizon is"),
        ({"theta": 0}, "theta = 0"),
        ({"theta": 2**61}, "too large"),
        ({"theta": 10**30}, "too large"),  # which numpy could not even multiply by
        ({"scale_bits": 63}, "scale_bits = 63"),
        ({"scale_bits": 60}, "too large"),
    ],
)
def test_broken_growth_rows_are_refused(instance, change, message):
    """Numbers that would prove anything, or that arithmetic cannot hold."""
    good = GrowthCertificate(
        instance_hash(instance), 5, 8, 3, np.array([1, 2]), np.array([1, 2])
    )
    assert proven_bound(instance, good) >= 0
    arrays = {k: np.array(v) if isinstance(v, list) else v for k, v in change.items()}
    with pytest.raises(CertificateError, match=message):
        proven_bound(instance, replace(good, **arrays))


@pytest.mark.parametrize(
    ("divisor", "weight", "message"),
    [
        ([0], [1], r"divisor\[0\] = 0 but must be from 1 to 300 blocks"),
        ([300, 301], [1, 1], r"divisor\[1\] = 301"),
        ([7], [-1], r"weight\[0\] = -1"),
        ([7], [], "1 divisors but 0 weights"),
    ],
)
def test_broken_rows_are_refused(instance, divisor, weight, message):
    """Each message names the number's position."""
    rows = (np.array(divisor, int), np.array(weight, int))
    with pytest.raises(CertificateError, match=message):
        proven_bound(instance, RowCertificate(instance_hash(instance), 5, *rows))


def test_unknown_kinds_are_refused(certificate, tmp_path):
    """The message lists what there is."""
    path = tmp_path / "c.json"
    write_certificate(certificate, path)
    content = json.loads(path.read_text(encoding="utf-8"))
    for kind in ("magic", None, ["x"]):
        path.write_text(json.dumps({**content, "kind": kind}), encoding="utf-8")
        with pytest.raises(CertificateError, match="must be one of: sortedf dual"):
            read_certificate(path)


def test_large_budgets_are_added_up_exactly():
    """Beyond 64 bits on the way."""
    instance = Instance([2**30, 5], [2**10, 3], 2**31 - 1)
    found = bound(instance, "fluid").certificate
    assert found is not None
    assert proven_bound(instance, found) == found.bound
    rows = RowCertificate(
        instance_hash(instance), 0, np.array([2**31 - 1]), np.ones(1, int)
    )
    assert proven_bound(instance, rows) <= instance.decode.sum()


@pytest.mark.parametrize("block", [1, 16])
def test_no_requests_have_a_certificate_that_holds(block):
    """The memory row of a budget below a block has the divisor 0, which is none."""
    empty = Instance([], [], engine=EngineModel(3, block_size=block))
    for method in sorted(CERTIFIED):
        certificate = bound(empty, method).certificate
        assert certificate is not None
        assert proven_bound(empty, certificate) == 0
