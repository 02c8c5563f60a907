"""Values from files and users for messages: in one line, shortened."""

from __future__ import annotations

import json

MAX_SHOWN = 40
"""Characters after which a value is shortened."""


def shown(text: str) -> str:
    """`text` for a message: one line, shortened, quoted if not printable."""
    text = text.strip()
    plain = text.isprintable() and text
    return _cut(text if plain else repr(text))


def shown_json(value: object) -> str:
    """`value` as JSON, so that the string "5" and the number 5 differ."""
    try:
        text = json.dumps(value, default=str)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        text = f"a very large {type(value).__name__}"
    return _cut(text)


def shown_repr(value: object) -> str:
    """`value` as Python's repr, shortened."""
    try:
        return _cut(repr(value))
    except (ValueError, RecursionError):
        return f"a very large {type(value).__name__}"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."
