"""The one place where numba is switched on."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numba
from numba.core import event
from numba.core.types import unliteral

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")

logger = logging.getLogger(__name__)

COMPILING = "compiling for this machine, once; it may take half a minute."
"""What users read when they are the first to run a kernel on a machine."""


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
        _FIRST.ours.add(jitted)
    compiled: Callable[P, R] = jitted
    return compiled


class _FirstCompiled(event.Listener):  # type: ignore[misc]
    """Says in the log what the first run on a machine waits for."""

    def __init__(self) -> None:
        self.ours: set[Any] = set()
        self._said = False

    def on_start(self, event: Any) -> None:
        if not self._said and event.data["dispatcher"] in self.ours:
            self._said = True
            logger.info(COMPILING)

    def on_end(self, event: Any) -> None:
        pass


_FIRST = _FirstCompiled()
event.register("numba:compile", _FIRST)


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
