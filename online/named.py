"""A choice by name with options, as people write it: `uniboost:gamma=0.5`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Named:
    """Something of a table, with options for it.

    Attributes
    ----------
    name : str
    options : mapping of str to int, float, bool or str
    """

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        parts = [f"{name}={_text(value)}" for name, value in self.options.items()]
        return ":".join([self.name, *parts])


def parse_named(text: str) -> Named:
    """Read `name` or `name:option=value:option=value`.

    A value that reads as an integer, a number, true, false or none becomes that.

    Raises
    ------
    ValueError
        If there is no name, or an option has no value or stands there twice.

    Examples
    --------
    >>> str(parse_named("uniboost:gamma=0.50:mem_guard=false"))
    'uniboost:gamma=0.5:mem_guard=false'
    """
    name, *parts = text.strip().split(":")
    options: dict[str, Any] = {}
    for part in parts:
        option, equals, value = part.partition("=")
        if not (name and option and equals and value) or option in options:
            raise ValueError(
                f"{text!r} must be a name, or a name with options such as "
                "'uniboost:gamma=0.5', each option once."
            )
        options[option.replace("-", "_")] = _value(value)
    if not name:
        raise ValueError(f"{text!r} names nothing.")
    return Named(name, options)


def parse_many(text: str) -> list[Named]:
    """Read several names with commas between, each once."""
    parsed = [parse_named(part) for part in text.split(",")]
    return list({str(one): one for one in parsed}.values())


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _text(value: Any) -> str:
    return (
        str(value).lower() if value is None or isinstance(value, bool) else f"{value}"
    )
