"""A choice by name with options, as people write it: `uniboost:gamma=0.5`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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


def check_options(
    kind: str, name: str, make: Callable[..., Any], options: Mapping[str, Any]
) -> None:
    """Refuse options that what is made by name does not have, or of another type.

    Parameters
    ----------
    kind, name : str
        What it is and what it is called, for the message.
    make : callable
        What takes the options, by keyword, and nothing else.
    options : mapping

    Raises
    ------
    ValueError
        If an option is unknown or of a wrong type, or a needed one is missing.
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
                f"{' or '.join(WORDS.get(word, word) for word in wanted)}."
            )
    for option, parameter in known.items():
        if parameter.default is inspect.Parameter.empty and option not in options:
            raise ValueError(f"{kind} {name!r} needs the option {option!r}.")


WORDS = {
    "int": "a whole number", "float": "a number", "bool": "true or false",
    "str": "a word", "None": "none",
}  # fmt: skip
"""How the types of options are called in messages."""

TYPES: dict[str, type] = {"int": Integral, "float": Real, "bool": bool, "str": str}
"""What an option may be, numpy's numbers among them."""


def _is_a(value: Any, wanted: str) -> bool:
    """Whether a value is of a type, by its name; any if that is none of `WORDS`."""
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
