"""Choices by name with options, such as `uniboost:gamma=0.5`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Named:
    """Name of a table's entry, with options for it.

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
    """Parse `name` or `name:option=value:option=value`.

    Values are converted to an integer, a number, true, false or none if possible.

    Raises
    ------
    ValueError
        If there is no name, or an option has no value or occurs twice.

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
        raise ValueError(f"{text!r} has no name.")
    return Named(name, options)


def parse_many(text: str) -> list[Named]:
    """Parse names separated by commas; duplicates are dropped."""
    parsed = [parse_named(part) for part in text.split(",")]
    return list({str(one): one for one in parsed}.values())


def check_options(
    kind: str, name: str, make: Callable[..., Any], options: Mapping[str, Any]
) -> None:
    """Raise ValueError for options that a callable does not have, or of wrong type.

    Parameters
    ----------
    kind, name : str
        Kind and name of the entry, for the message.
    make : callable
        Takes exactly the options, by keyword.
    options : mapping

    Raises
    ------
    ValueError
        If an option is unknown or of a wrong type, or a required one is missing.
    """
    known = inspect.signature(make).parameters
    for option, value in options.items():
        if option not in known:
            allowed = ", ".join(known) or "none"
            raise ValueError(
                f"{kind} {name!r} has no option {option!r}; its options: {allowed}."
            )
        annotation = known[option].annotation
        wanted = getattr(annotation, "__name__", str(annotation)).split(" | ")
        if not any(_is_a(value, word) for word in wanted):
            raise ValueError(
                f"{kind} {name!r}: {option} = {value!r} but must be "
                f"{' or '.join(TYPE_NAMES.get(word, word) for word in wanted)}."
            )
    for option, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and option not in options:
            raise ValueError(f"{kind} {name!r} needs the option {option!r}.")


TYPE_NAMES = {
    "int": "an integer", "float": "a number", "bool": "true or false",
    "str": "a string", "None": "none",
}  # fmt: skip
"""Names of the types of options in messages."""

TYPES: dict[str, type] = {"int": Integral, "float": Real, "bool": bool, "str": str}
"""Types of options, including numpy's numbers."""


def _is_a(value: Any, wanted: str) -> bool:
    """Whether a value is of the named type; true for a type not in `TYPES`."""
    if wanted == "None":
        return value is None
    if wanted in ("int", "float") and isinstance(value, bool):
        return False
    kind = TYPES.get(wanted)
    return kind is None or isinstance(value, kind)


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
