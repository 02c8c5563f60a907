"""The decorator that compiles kernels with numba."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numba
from numba.core import event
from numba.core.types import unliteral

from sortedf.kernel_cache import cache_of

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

UNCACHED = (
    "no folder can be written to, so that every run compiles again; set "
    "NUMBA_CACHE_DIR to a folder for the compiled code."
)
"""Log message before the first compilation if the machine code cannot be kept."""

COMPILING = "compiling for this machine, once; it may take half a minute."
"""Log message before the first compilation on a machine."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over arrays and cache the machine code beside its file.

    Kernels and constants that it uses may be in other files: see
    `sortedf.kernel_cache`. Signatures stay open, because numba gives read-only and
    writeable arrays different types.
    """
    # Kernels are not called from C, so numba's C wrapper need not be compiled.
    jitted: Any = numba.njit(nogil=True, no_cfunc_wrapper=True)(function)
    if not numba.config.DISABLE_JIT:
        cache = cache_of(jitted.py_func)
        if cache is None:  # numba's own default keeps nothing
            _FIRST.uncached = True
        else:
            jitted._cache = cache
        _take_numbers_by_type(jitted)
        _FIRST.ours.add(jitted)
    compiled: Callable[P, R] = jitted
    return compiled


class _FirstCompiled(event.Listener):  # type: ignore[misc]
    """Logs once that kernels are being compiled."""

    def __init__(self) -> None:
        self.ours: set[Any] = set()
        self.uncached = False
        self._logged = False

    def on_start(self, event: Any) -> None:
        if not self._logged and event.data["dispatcher"] in self.ours:
            self._logged = True
            logger.info(UNCACHED if self.uncached else COMPILING)

    def on_end(self, event: Any) -> None:
        pass


_FIRST = _FirstCompiled()
event.register("numba:compile", _FIRST)


def _take_numbers_by_type(jitted: Any) -> None:
    """Compile a kernel once for all literal arguments of the same type.

    By default numba compiles a kernel again for each literal number that another kernel
    passes to it: a third of the compilation time before a user's first search.
    """
    template_of = jitted.get_call_template

    def get_call_template(arguments: Any, named: Any) -> Any:
        plain = tuple(map(unliteral, arguments))
        return template_of(plain, {key: unliteral(named[key]) for key in named})

    jitted.get_call_template = get_call_template
