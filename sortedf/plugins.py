"""What other packages declare for `sortedf` in their entry points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from sortedf.errors import PluginError

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def declared(group: str) -> list[EntryPoint]:
    """Entry points of a group, of every installed package, sorted by name."""
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    return sorted(entry_points(group=group), key=lambda plugin: plugin.name)


def owner(plugin: EntryPoint) -> str:
    """Name of the package that declares an entry point."""
    return "an unknown package" if plugin.dist is None else plugin.dist.name


def load(plugin: EntryPoint, make: Callable[[Any], T]) -> T:
    """Import what an entry point names, and return what `make` makes of it.

    Raises
    ------
    PluginError
        If either fails, for whatever reason: it is another package's code, and one
        that is broken must not end what does not need it.
    """
    try:
        return make(plugin.load())
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{plugin.name!r} of the package {owner(plugin)} cannot be loaded from "
            f"{plugin.value}: {type(error).__name__}: {error}."
        ) from error
