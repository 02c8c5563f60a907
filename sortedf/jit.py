"""The one place where numba is switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numba

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over arrays and cache the machine code beside its file.

    Kernels that call each other must share a file, and so must a kernel and the
    constants that it reads, which are compiled in: numba's cache looks only at the file
    of the outer kernel when it decides whether to compile again. Signatures stay open,
    because a frozen array is another type to numba than a writeable one.
    """
    jitted: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    return jitted
