"""Entry points that other packages declare for `sortedf`."""

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
    """Import the object of an entry point and return `make(object)`.

    Raises
    ------
    PluginError
        If either raises any exception: a broken plug-in must not stop commands that do
        not need it.
    """
    try:
        return make(plugin.load())
    except (Exception, SystemExit) as error:
        raise PluginError(
            f"{plugin.name!r} of the package {owner(plugin)} cannot be loaded from "
            f"{plugin.value}: {type(error).__name__}: {error}."
        ) from error
