"""Cache of compiled kernels on disk that accounts for everything compiled into them.

numba's own cache compares the file of a kernel with the one it was compiled from. A
kernel that calls another one, or reads a constant or the fields of a tuple of another
file, would keep its old machine code after that file is edited, and an index that
names a deleted class cannot be read at all. Here the index of a kernel also has a
fingerprint of all of these, which is compared before anything else is read.
"""

from __future__ import annotations

import hashlib
import pickle
from functools import cached_property
from types import CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile

if TYPE_CHECKING:
    from collections.abc import Iterator

UNREADABLE = (AttributeError, ImportError, EOFError, pickle.UnpicklingError)
"""Errors at reading an index that other code has written."""

NO_FOLDER = "no locator available"
"""Part of numba's message where machine code can be kept in no folder."""

CONSTANTS = (int, float, complex, str, bytes, tuple, np.generic, type(None))
"""Types of values that are compiled in as constants."""


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Cache of one kernel.

    Parameters
    ----------
    function : function
        The kernel before it is compiled.
    """

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self._function = function
        self._cache_file: IndexDataCacheFile = _Index(
            self._impl.locator.get_cache_path(),
            self._impl.filename_base,
            self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, *arguments: Any) -> Any:
        """Load the machine code for a signature, None if it has to be compiled."""
        self._cache_file._version = self._version
        return super().load_overload(*arguments)

    def save_overload(self, *arguments: Any) -> None:
        """Save the machine code for a signature."""
        self._cache_file._version = self._version
        super().save_overload(*arguments)

    def _index_key(self, signature: Any, codegen: Any) -> Any:
        # numba treats named tuples of the same name as equal.
        types = getattr(signature, "args", signature)
        fields = tuple(getattr(one, "fields", ()) for one in types)
        return super()._index_key(signature, codegen), fields

    @cached_property
    def _version(self) -> str:
        # At the first call, since a kernel may use names defined after it in its file.
        return f"{numba.__version__} {fingerprint(self._function)}"


def cache_of(function: FunctionType) -> KernelCache | None:
    """Return the cache of a kernel, None if no folder can be written to.

    numba raises a RuntimeError at the import of a kernel if neither the folder of its
    file nor the user's cache folder can be written to, as in a container whose root is
    read-only.
    """
    try:
        return KernelCache(function)
    except RuntimeError as error:
        if NO_FOLDER not in str(error):
            raise
        return None


class _Index(IndexDataCacheFile):  # type: ignore[misc]
    """Index of a kernel's signatures; an unreadable one is ignored."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except UNREADABLE:
            return {}


def fingerprint(function: FunctionType) -> str:
    """Hash of the code of a kernel and of everything that it calls and reads.

    Parameters
    ----------
    function : function
        The kernel before it is compiled.

    Returns
    -------
    str
        Hexadecimal digits; the same in every process with the same code.
    """
    found: dict[Any, list[str]] = {}
    functions = [function]
    while functions:
        one = functions.pop()
        if one in found:
            continue
        names = sorted(set(_names(one.__code__)))
        found[one] = [repr(list(_code(one.__code__))), repr(one.__annotations__)]
        for name in names:
            if name in one.__globals__:
                value = one.__globals__[name]
                found[one] += [name, *_described(value, names, functions)]
    parts = sorted(repr([one.__qualname__, parts]) for one, parts in found.items())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _code(code: CodeType) -> Iterator[object]:
    """Yield a function's code, without its position in the file."""
    yield from (code.co_code, code.co_names, code.co_varnames)
    for constant in code.co_consts:
        yield list(_code(constant)) if isinstance(constant, CodeType) else constant


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that a function looks up."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _described(
    value: object, names: list[str], functions: list[FunctionType]
) -> Iterator[str]:
    """Yield the parts of a value that are compiled in; add its kernels to a list."""
    if isinstance(value, ModuleType):
        yield value.__name__
        for name in names:
            part = vars(value).get(name)
            if not isinstance(part, ModuleType):
                yield from _described(part, names, functions)
        return
    kernel = getattr(value, "py_func", None)
    if isinstance(kernel, FunctionType):
        functions.append(kernel)
        yield f"{kernel.__module__}.{kernel.__qualname__}"
    elif isinstance(value, np.ndarray):
        yield repr((value.dtype.str, value.shape, value.tobytes()))
    elif isinstance(value, type):
        yield repr(
            (value.__module__, value.__qualname__, getattr(value, "_fields", ()))
        )
    elif isinstance(value, CONSTANTS):
        yield repr(value)
    else:
        yield getattr(value, "__qualname__", type(value).__qualname__)
