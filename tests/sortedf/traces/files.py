"""Small traces of every kind, and a way to put them into files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

OWN = "arrival_s,prefill_tokens,decode_tokens\n"
OWN_LINE = '{"arrival_s": 0, "prefill_tokens": 1, "decode_tokens": 2}\n'


def put(folder: Path, content: str | bytes, name: str = "trace.dat") -> Path:
    """Write `content`, text as UTF-8, into a file whose name says nothing."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def count_words(text: str) -> int:
    """Stand in for a tokenizer."""
    return len(text.split())
