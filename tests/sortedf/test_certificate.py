"""Certificates: they prove what they prove, whatever they claim."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sortedf import EngineModel, Instance, bound
from sortedf.certificate import (
    Certificate,
    instance_hash,
    proven_bound,
    read_certificate,
    write_certificate,
)
from sortedf.errors import CertificateError


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
        {"engine": EngineModel(block_size=2)},
    ],
)
def test_another_instance_is_refused(instance, certificate, change):
    """Every number that the bound depends on is in the hash."""
    other = instance.replace(**change)
    assert instance_hash(other) != instance_hash(instance)
    with pytest.raises(CertificateError, match="another instance"):
        proven_bound(other, certificate)


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
