"""Streams are cut where their requests cannot meet, at every size."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from sortedf import Instance, Schedule, Status, bound, check, solve
from sortedf.certificate import (
    Certificate,
    SumCertificate,
    SumPart,
    proven_bound,
    read_certificate,
    write_certificate,
)
from sortedf.errors import CertificateError
from sortedf.segments import joined, segments
from tests import naive
from tests.strategies import engines, examples, instances


def pairs(n: int) -> Instance:
    """Requests by two, a million steps from one pair to the next."""
    rng = np.random.default_rng(n)
    lengths = rng.integers(5, 60, (2, n))
    return Instance(*lengths, 120, np.repeat(np.arange(n // 2) * 10**6, 2))


@examples(40)
@given(instances(max_requests=5, max_length=5, engine=engines()))
def test_segments_lose_nothing(instance):
    """The least TEL of the whole is the sum of the segments' least ones."""
    apart = instance.replace(arrival=instance.arrival * 3 + 2)
    parts = segments(apart)
    assert sorted(np.concatenate([part.ids for part in parts]).tolist()) == list(
        range(instance.num_requests)
    )
    least = [naive.best_tel(part.instance) for part in parts]
    assert sum(least) == naive.best_tel(apart)


@pytest.mark.parametrize("n", [40, 42, 4000])
def test_pairs_far_apart_are_solved_to_the_optimum(n):
    """Up to 40 requests were cut; with two more the gap was 22 %."""
    instance = pairs(n)
    result = solve(instance)
    assert result.status is Status.OPTIMAL
    assert check(instance, result.schedule).tel == result.tel == result.lower_bound


@pytest.mark.parametrize("method", ["auto", "fluid", "dual", "growth", "lp"])
def test_the_certificate_of_a_stream_is_a_sum(method, tmp_path):
    """Written, read again, and evaluated part by part."""
    instance = pairs(12)
    found = bound(instance, method, certified=True)
    assert isinstance(found.certificate, SumCertificate)
    path = tmp_path / "proof.json"
    write_certificate(found.certificate, path)
    assert proven_bound(instance, read_certificate(path)) == found.value
    assert found.value <= bound(instance).value


def test_the_sum_is_refused_unless_its_parts_have_all_requests_once():
    """Each request is in one part, and a part proves something for itself alone."""
    instance = pairs(6)
    found = bound(instance, "fluid").certificate
    first, second, third = found.part
    for wrong in (
        (first, second),
        (first, second, third, third),
        (first, second, SumPart(second.request, third.certificate)),
    ):
        with pytest.raises(CertificateError, match="each of the 6 requests once"):
            proven_bound(instance, replace(found, part=wrong))
    swapped = (first, second, SumPart(third.request, second.certificate))
    with pytest.raises(CertificateError, match="another instance"):
        proven_bound(instance, replace(found, part=swapped))
    nested = (SumPart(np.arange(6), found),)
    with pytest.raises(CertificateError, match="sum of parts itself"):
        proven_bound(instance, replace(found, part=nested))


def test_parts_that_cannot_be_read_are_named(tmp_path):
    """The file, the part and the field."""
    path = tmp_path / "proof.json"
    write_certificate(bound(pairs(4), "fluid").certificate, path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace('"divisor"', '"divisors"', 1), encoding="utf-8")
    with pytest.raises(CertificateError, match=r"part\[0\]: 'divisor' is missing"):
        read_certificate(path)
    whole = json.loads(text)
    whole["part"][1] = {**json.loads(text), "request": [0]}
    path.write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(CertificateError, match=r"part\[1\] must not be a sum of parts"):
        read_certificate(path)


def test_a_late_stream_begins_at_its_first_request():
    """Prices by step are few, wherever on the axis of time a stream lies."""
    found = bound(Instance([3] * 3, [2] * 3, 5, [10**9, 10**9, 10**9 + 1]), "dual")
    (part,) = found.certificate.part
    assert isinstance(part.certificate, Certificate)
    assert len(part.certificate.price) < 100


def test_schedules_that_overlap_are_not_put_together():
    """Whether they are feasible together would have to be looked at."""
    instance = Instance([3, 3], [2, 2], 5, [0, 100])
    first, second = segments(instance)
    starts = [Schedule(part.instance, [0]) for part in (first, second)]
    assert joined(instance, (first, second), starts).start.tolist() == [0, 100]
    late = Schedule(first.instance, [99])
    assert joined(instance, (first, second), [late, starts[1]]) is None


def test_better_schedules_of_a_stream_are_told_of_the_whole():
    """Every value is above the one that is returned, and falls."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(5, 60, (2, 24))
    instance = Instance(*lengths, 200, np.repeat(np.arange(3) * 10**5, 8))
    reported, done = [], []
    result = solve(
        instance,
        "improve",
        bound="fluid",
        on_better=lambda value, least: reported.append((value, least)),
        progress=lambda *step: done.append(step),
    )
    values = [value for value, _ in reported]
    assert values == sorted(values, reverse=True)
    assert values[-1] == result.tel
    assert {least for _, least in reported} == {result.lower_bound}
    assert done == [(8, 24), (16, 24), (24, 24)]


def test_one_gap_of_a_billion_steps_costs_nothing():
    """Prices by step ended three requests in "out of memory"."""
    instance = Instance([3] * 3, [2] * 3, 5, [0, 10**9, 10**9 + 1])
    for method in ("auto", "branching", "sorted-lp", "alpha-points", "milp"):
        assert solve(instance, method).status is Status.OPTIMAL
