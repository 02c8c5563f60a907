"""Tables of everything that can be chosen by name.

A table is a plain dictionary. `register` adds to it and gives the object back
unchanged; a name that is taken is refused, an unknown one is answered with the list
of known ones. A new method is one new file that registers itself.

Other packages add to the tables when they are imported. Those that name themselves in
the entry point group `sortedf.plugins` are imported when somebody asks for a name that
is not there yet, so that it works whether or not its package was imported by hand.
"""

from __future__ import annotations

from functools import cache
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


@cache
def load_plugins() -> None:
    """Import every package that registers itself, once."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    for plugin in entry_points(group="sortedf.plugins"):
        plugin.load()


def lookup(
    table: dict[str, T], kind: str, name: str, *, also: tuple[str, ...] = ()
) -> T:
    """Return the entry called `name`, or raise a ValueError that lists all names.

    With them it lists `also`: names that mean something to whoever asks, but are not in
    the table.
    """
    if name not in table:
        load_plugins()
    if name not in table:
        known = ", ".join(sorted({*table, *also}))
        raise ValueError(f"unknown {kind} {name!r}; choose one of: {known}.")
    return table[name]
