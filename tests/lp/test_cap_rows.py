"""Rows of the caps on a step, in sums with rows of memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lp.cap_rows import PlacesRow, TokensRow, cap_rows
from lp.fluid_dff import candidates, fluid_on
from sortedf import BOUNDS, EngineModel, Instance, bound
from sortedf.bounds import BoundOptions
from sortedf.certificate import proven_bound, read_certificate, write_certificate
from sortedf.errors import CertificateError
from sortedf.row_certificate import RowCertificate
from tests import naive
from tests.strategies import engines, examples, instances


@given(instances(max_length=30, engine=engines()))
def test_volumes_and_moments_are_their_sums(instance):
    """Step by step: a place in each, the prompt in the first, one token later."""
    ones = [1] * instance.num_requests
    for row, first in ((PlacesRow(5), ones), (TokensRow(9), instance.prefill)):
        volume, moment = row.terms(instance)
        roughly, _ = row.terms(instance, exact=False)
        assert roughly.tolist() == volume.tolist()
        for i, (head, o) in enumerate(zip(first, instance.decode, strict=True)):
            taken = [int(head)] + [1] * (int(o) - 1)
            assert volume[i] == sum(taken)
            assert moment[i] == sum(t * (2 * j - 1) for j, t in enumerate(taken, 1))


@examples(150)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_no_sum_of_rows_gives_more_than_the_optimum(instance, data):
    """Any weights on memory, places and tokens, with arrivals and blocks."""
    known = candidates(instance.usable_kv // instance.engine.block_size)
    chosen = [data.draw(st.sampled_from(known)), *cap_rows(instance)]
    mixture = [(row, data.draw(st.integers(0, 9))) for row in chosen]
    mixture = [(row, weight) for row, weight in mixture if weight]
    if mixture:
        assert fluid_on(instance, mixture) <= naive.best_tel(instance)


@examples(60)
@given(instances(max_requests=4, max_length=5, engine=engines()), st.data())
def test_a_changed_certificate_proves_no_more_than_the_optimum(instance, data):
    """Each number changed once: it is refused, or proves something that is true."""
    certificate = BOUNDS["fluid-dff"].prove(instance, BoundOptions()).certificate
    assert proven_bound(instance, certificate) == certificate.bound
    name = data.draw(st.sampled_from(["places", "tokens", "weight", "divisor"]))
    changed = data.draw(st.integers(-1, 2**21))
    if name in ("weight", "divisor"):
        entries = getattr(certificate, name).tolist()
        assume(entries)
        entries[data.draw(st.integers(0, len(entries) - 1))] = changed
        changed = np.array(entries)
    try:
        proven = proven_bound(instance, replace(certificate, **{name: changed}))
    except CertificateError:
        return
    assert proven <= naive.best_tel(instance)


def test_weights_of_caps_that_are_not_there_are_refused(tmp_path):
    """A row without a cap proves nothing; a file may leave both weights out."""
    instance = Instance([5, 6, 1], [3, 2, 1], 10)
    found = bound(instance, "fluid").certificate
    assert isinstance(found, RowCertificate)
    with pytest.raises(CertificateError, match="places = 1 but must be 0"):
        proven_bound(instance, replace(found, places=1))
    capped = instance.replace(engine=EngineModel(10, max_batched_tokens=9))
    own = bound(capped, "fluid").certificate
    with pytest.raises(CertificateError, match="tokens = -1 but must be 0 or more"):
        proven_bound(capped, replace(own, tokens=-1))
    path = tmp_path / "proof.json"
    write_certificate(found, path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(', "places": 0, "tokens": 0', ""), encoding="utf-8")
    assert proven_bound(instance, read_certificate(path)) == found.bound
    assert text != path.read_text(encoding="utf-8")


def test_a_sum_of_rows_is_better_than_each():
    """Short prompts with long answers meet the places, long prompts the memory."""
    engine = EngineModel(700, max_num_seqs=6)
    lengths = [5] * 40 + [300] * 40, [60] * 40 + [20] * 40
    instance = Instance(*lengths, engine=engine)
    values = {name: bound(instance, name).value for name in ("fluid", "machines")}
    found = bound(instance, "fluid-dff")
    assert found.value > max(values.values())
    assert found.certificate.places > 0
