"""Table of the recognised trace formats. To add one, add a row to `FORMATS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sortedf.errors import TraceError
from sortedf.shown import shown

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Format:
    """Columns (of CSV and Parquet) or keys (of JSON) of a format.

    Attributes
    ----------
    name : str
    prefill, decode : str
        Columns with the lengths in tokens. A file that has both is of this format;
        names are compared without case, and other columns are ignored.
    arrival : str
        Column with the arrival times; without it every request arrives at 0.
    second : float
        Units of `arrival` per second.
    clock : bool
        Whether `arrival` may hold dates with times of day instead of numbers.
    zero_note : str
        Meaning of a length of 0 in the format, for the error message.
    """

    name: str
    prefill: str
    decode: str
    arrival: str
    second: float = 1.0
    clock: bool = False
    zero_note: str = ""


FORMATS = (
    Format("sortedf", "prefill_tokens", "decode_tokens", "arrival_s"),
    Format("Azure", "ContextTokens", "GeneratedTokens", "TIMESTAMP", clock=True),
    Format(
        "BurstGPT",
        "Request tokens",
        "Response tokens",
        "Timestamp",
        zero_note="BurstGPT logs a failed request with 0 response tokens; take such "
        "rows out of the file",
    ),
    Format("Vidur", "num_prefill_tokens", "num_decode_tokens", "arrived_at"),
    Format("Mooncake", "input_length", "output_length", "timestamp", second=1000.0),
    Format("OpenAI usage", "prompt_tokens", "completion_tokens", "created", clock=True),
)

CHAT_FORMATS = {"ShareGPT": "conversations", "OpenAI batch": "body"}
"""Formats that hold texts, in JSON only, each with the key that identifies it."""


@dataclass(frozen=True, slots=True)
class Match:
    """A format, and the positions of its columns among those of a file."""

    format: Format
    prefill: int
    decode: int
    arrival: int | None


def match_columns(names: Sequence[str], where: str) -> Match:
    """Find the format of a file by the names of its columns.

    If several formats fit, the first in `FORMATS` is used.

    Raises
    ------
    TraceError
        If no format fits, or one of its columns occurs twice; the message begins with
        `where`, the file and the place of the names.
    """
    plain = [name.strip().casefold() for name in names]
    for known in FORMATS:
        wanted = [known.prefill, known.decode, known.arrival]
        keys = [name.casefold() for name in wanted]
        if keys[0] in plain and keys[1] in plain:
            for name, key in zip(wanted, keys, strict=True):
                if plain.count(key) > 1:
                    raise TraceError(f"{where} has {name} more than once.")
            arrival = plain.index(keys[2]) if keys[2] in plain else None
            return Match(known, plain.index(keys[0]), plain.index(keys[1]), arrival)
    found = ", ".join(shown(name) for name in names[:12])
    more = ", ..." if len(names) > 12 else ""
    raise TraceError(
        f"{where} has {found or 'nothing'}{more}, which is no known format; known are "
        f"{describe_formats()}."
    )


def describe_formats() -> str:
    """List every format with its columns, in one line."""
    tables = [f"{f.name} ({f.prefill}, {f.decode}[, {f.arrival}])" for f in FORMATS]
    chats = [f"in JSON {name} ({key})" for name, key in CHAT_FORMATS.items()]
    return "; ".join(tables + chats)
