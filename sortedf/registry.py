"""Tables of everything that can be chosen by name.

A table is a plain dictionary. `register` adds to it and gives the object back
unchanged; a name that is taken is refused, an unknown one is answered with the list
of known ones. A new method is one new file that registers itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def register(table: dict[str, T], kind: str, name: str) -> Callable[[T], T]:
    """Return a decorator that enters an object into `table` under `name`."""

    def add(entry: T) -> T:
        if name in table:
            raise ValueError(f"{kind} {name!r} is registered twice.")
        table[name] = entry
        return entry

    return add


def lookup(table: dict[str, T], kind: str, name: str) -> T:
    """Return the entry called `name`, or raise a ValueError that lists all names."""
    if name not in table:
        known = ", ".join(sorted(table))
        raise ValueError(f"unknown {kind} {name!r}; choose one of: {known}.")
    return table[name]
