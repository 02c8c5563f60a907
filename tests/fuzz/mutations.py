"""Hostile versions of good files: bytes, lines, JSON values, packing."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

WORDS = [
    b"", b"0", b"-1", b"1e999", b"-0.0", b"NaN", b"Infinity", b"null", b"true", b'""',
    b"[]", b"{}", b"9" * 400, b"9" * 5000, b"2147483648", b"9223372036854775808",
    b'"\\ud800"', b'"\\u0000"', b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\r\n",
    b"\n\n", b'"', b"'", b",", b";", b"\\", b"[" * 3000, b'{"a":' * 3000,
    b"[" * 200_000, b'[{"a":' * 100_000, b"x" * 300_000, b",1" * 50_000,
    "٣".encode(), "ü\u2028\u202e".encode(), b"../../etc/passwd", b"$(touch pwned)",
    b"<script>", b"%s%n", b"2024-02-30 00:00:00", b"1_000", b"0x10", b"1.5",
]  # fmt: skip

VALUES = [
    None, True, False, 0, -1, 1, 2**31, 2**53, 2**63, 2**64, 10**300, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), float("-inf"), "", "5", "x" * 100_000, "\ud800", "\0",
    [], {}, [[]], [1] * 1000, {"a": {"a": {}}}, [None], ["5"], {"kind": "x"},
]  # fmt: skip


def mutated(content: bytes, draw: random.Random) -> bytes:
    """Change a good file in one to four ways."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        content = draw.choice(WAYS)(content, draw)
    return content


def _flip(content: bytes, draw: random.Random) -> bytes:
    changed = bytearray(content or b"x")
    for _ in range(draw.choice((1, 3, 30))):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed)


def _cut(content: bytes, draw: random.Random) -> bytes:
    return content[: draw.randint(0, len(content))]


def _drop(content: bytes, draw: random.Random) -> bytes:
    a, b = sorted(draw.randint(0, len(content)) for _ in range(2))
    return content[:a] + content[b:]


def _insert(content: bytes, draw: random.Random) -> bytes:
    at = draw.randint(0, len(content))
    return content[:at] + draw.choice(WORDS) + content[at:]


def _replace_word(content: bytes, draw: random.Random) -> bytes:
    """Put a hostile word where a number or a text was."""
    ends = [i for i, letter in enumerate(content) if letter in b',:[]{}\n "']
    if len(ends) < 2:
        return draw.choice(WORDS)
    at = draw.randrange(len(ends) - 1)
    return content[: ends[at] + 1] + draw.choice(WORDS) + content[ends[at + 1] :]


def _lines(content: bytes, draw: random.Random) -> bytes:
    """Repeat, drop or swap lines."""
    lines = content.split(b"\n")
    way, a, b = draw.randrange(3), *(draw.randrange(len(lines)) for _ in range(2))
    if way == 0:
        lines[a:a] = [lines[b]] * draw.choice((1, 2, 5000))
    elif way == 1:
        del lines[a]
    else:
        lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def _value(content: bytes, draw: random.Random) -> bytes:
    """Change a value of a JSON file, or of one of its lines."""
    lines = content.split(b"\n")
    at = draw.randrange(len(lines))
    for part, put in ((content, None), (lines[at], at)):
        try:
            value = json.loads(part)
        except (ValueError, RecursionError):
            continue
        separators = draw.choice(((", ", ": "), (",", ":"), (" , ", " : ")))
        new = json.dumps(_changed(value, draw), separators=separators).encode()
        if put is None:
            return new
        lines[put] = new
        return b"\n".join(lines)
    return _flip(content, draw)


def _changed(value: object, draw: random.Random) -> object:
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(list(value))
        way = draw.random()
        if way < 0.1:
            return {k: v for k, v in value.items() if k != key}
        if way < 0.2:
            return {**value, draw.choice(("x", "", "\0", key + " ")): value[key]}
        return {**value, key: _changed(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        at = draw.randrange(len(value))
        if draw.random() < 0.2:
            return value[:at] + value[at + 1 :]
        return [*value[:at], _changed(value[at], draw), *value[at + 1 :]]
    if isinstance(value, int) and draw.random() < 0.3:
        return value + draw.choice((-1, 1, 1000, -value, value))
    return draw.choice(VALUES)


def _pack(content: bytes, draw: random.Random) -> bytes:
    return gzip.compress(content, 1)


def _bomb(content: bytes, draw: random.Random) -> bytes:
    """Let it unpack to much more than its size, or nearly so."""
    size = draw.choice((1 << 20, 1 << 24, 1 << 26))
    fill = draw.choice(
        (b"0", b" ", b"1,1\n", b"[],", b"\n", b"\0", content[-40:] or b"x")
    )
    return gzip.compress(content + fill * (size // len(fill)), 1)


def _other(content: bytes, draw: random.Random) -> bytes:
    return draw.choice(
        (b"", b"\n", b"PAR1", b"\x1f\x8b", b"[", b"{}", b"null", b"\0" * 99)
    )


WAYS = [_flip, _cut, _drop, _insert, _replace_word, _lines, _value, _value, _value,
        _replace_word, _pack, _bomb, _other]  # fmt: skip
