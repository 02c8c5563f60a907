"""Tables of methods, bounds and other things that are chosen by name.

An entry is registered by the file that defines it: a new entry is one new file, in one
of the table's packages or in another package. Modules of the table's packages are
imported when the table is first searched or listed. Other packages declare themselves
in the entry point group `sortedf.plugins`; they are imported, with all their modules,
when an unknown name is looked up or the whole table is listed, so that they work
without an explicit import.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar

from sortedf.errors import PluginError
from sortedf.plugins import declared, load

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Table(Mapping[str, T]):
    """Entries of one kind by name, in alphabetical order.

    Parameters
    ----------
    kind : str
        Word for an entry in messages, such as "method".
    *packages : str
        Packages whose modules register entries; all are imported when the table is
        first searched or listed.

    Examples
    --------
    >>> SHAPES: Table[int] = Table("shape")
    >>> SHAPES.register("square")(4)
    4
    >>> SHAPES.find("circle")
    Traceback (most recent call last):
        ...
    ValueError: unknown shape 'circle'; choose one of: square.
    """

    def __init__(self, kind: str, *packages: str) -> None:
        self.kind = kind
        self._packages = packages
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that adds an object to the table and returns it.

        Raises
        ------
        ValueError
            If the name is taken.
        """

        def add(entry: T) -> T:
            if name in self._entries:
                raise ValueError(f"{self.kind} {name!r} is registered twice.")
            self._entries[name] = entry
            return entry

        return add

    def remove(self, name: str) -> None:
        """Take an entry out, for instance to register another under its name."""
        del self._entries[name]

    def find(self, name: str, *, also: tuple[str, ...] = ()) -> T:
        """Return the entry called `name`.

        Parameters
        ----------
        name : str
        also : tuple of str
            Further names that the caller accepts, for the message.

        Raises
        ------
        ValueError
            If there is none; the message lists all names and `also`.
        """
        if name not in self:
            known = ", ".join(sorted({*self, *also}))
            raise ValueError(f"unknown {self.kind} {name!r}; choose one of: {known}.")
        return self[name]

    def loaded(self) -> dict[str, T]:
        """Entries of the table's packages, without importing those of others."""
        self._load_packages()
        return dict(sorted(self._entries.items()))

    def __getitem__(self, name: str) -> T:
        if name not in self._entries:
            self._load_packages()
        if name not in self._entries:
            load_plugins()
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        self._load_packages()
        load_plugins()
        return iter(sorted(self._entries))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _load_packages(self) -> None:
        for package in self._packages:
            load_modules(package)


@cache
def load_modules(package: str) -> None:
    """Import every module of a package in order of name, without its subpackages."""
    _import_modules(import_module(package))


@cache
def load_plugins() -> None:
    """Import every declared plug-in once; log a warning for each that fails.

    If an entry point names a package, all its modules are imported as well.
    """
    for plugin in declared("sortedf.plugins"):
        try:
            load(plugin, _import_modules)
        except PluginError as error:
            logger.warning("%s", error)


def _import_modules(package: Any) -> None:
    for module in iter_modules(getattr(package, "__path__", ())):
        if not module.ispkg:
            import_module(f"{package.__name__}.{module.name}")
