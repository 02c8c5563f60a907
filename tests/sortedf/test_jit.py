"""How kernels are compiled."""

from __future__ import annotations

import numba
import pytest

from sortedf.jit import kernel

pytestmark = pytest.mark.kernel


@kernel
def added(x: int, y: int) -> int:
    return x + y


@kernel
def with_numbers(x: int) -> int:
    return added(x, 0) + added(x, 1) + added(2, x)


def test_numbers_in_the_code_share_a_kernel():
    """`added` was compiled anew for 0, 1 and 2, and so was all that it calls."""
    assert with_numbers(5) == 18
    if not numba.config.DISABLE_JIT:
        assert added.signatures in ([], [(numba.int64, numba.int64)])
