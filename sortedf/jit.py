"""The one place where numba is switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numba
from numba.core.types import unliteral

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
    # Nobody calls them from C, so that what numba adds for it need not be compiled.
    jitted: Any = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True)(function)
    if not numba.config.DISABLE_JIT:
        _take_numbers_by_type(jitted)
    compiled: Callable[P, R] = jitted
    return compiled


def _take_numbers_by_type(jitted: Any) -> None:
    """Let kernels that pass a number as it stands in the code share the machine code.

    By default numba compiles a kernel once more for each number, in vain: a third of
    the time that the first search of a user waits.
    """
    template_of = jitted.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        plain = tuple(map(unliteral, arguments))
        return template_of(plain, {key: unliteral(named[key]) for key in named})

    jitted.get_call_template = get_call_template
