"""A few hostile inputs for each reader; `python -m tests.fuzz` tries very many."""

from __future__ import annotations

import pytest

from sortedf import Instance
from tests import naive
from tests.fuzz.__main__ import is_fine, run
from tests.fuzz.readers import DECODE, KV_BUDGET, OPTIMUM, PREFILL, READERS


def test_the_optimum_is_right():
    """No certificate may prove more."""
    assert naive.best_tel(Instance(PREFILL, DECODE, KV_BUDGET)) == OPTIMUM


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # a child is forked beside numba's threads
def test_no_reader_fails_on_hostile_files():
    found = run(seed=7, numbers=range(60))
    assert len(found) == 60
    assert [result for result in found.values() if not is_fine(result)] == []
    assert (
        len({result.partition(":")[0] for result in found.values()}) > len(READERS) / 2
    )
