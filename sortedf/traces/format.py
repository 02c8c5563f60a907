"""Table of the recognised trace formats, and recognition by column names."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from sortedf.errors import TraceError
from sortedf.registry import Table
from sortedf.shown import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Count: TypeAlias = Callable[[str], int]
"""Number of tokens of a text."""

CountTexts: TypeAlias = Callable[[dict[str, Any], str, Count], tuple[object, object]]
"""Prompt and answer length of a JSON object, not yet checked.

Arguments: the object, its place in the file (for messages), the token counter.
"""


Prompt: TypeAlias = Callable[[dict[str, Any]], str | list[int]]
"""The prompt of a JSON object, as a text or as token ids."""


@dataclass(frozen=True, slots=True)
class Format:
    """Columns (of CSV and Parquet) or keys (of JSON) of a format.

    Attributes
    ----------
    name, about : str
        Name and short description.
    prefill, decode : str
        Columns with the lengths in tokens. A file that has both is of this format;
        names are compared without case, and other columns are ignored.
    arrival : str
        Column with the arrival times; without it every request arrives at 0.
    second : float
        Units of `arrival` per second.
    clock : bool
        Whether `arrival` may hold dates with times of day instead of numbers.
    seconds_too : bool
        Whether other programs write the same columns with times in seconds.
    zero_note : str
        Meaning of a length of 0 in the format, for the error message.
    also : str
        Another column that a file of this format has, where others have the same
        columns of lengths.
    prefix_ids : str
        Column with the ids of the prompt's blocks; see `PrefixIds`.
    tokens_per_id : int
        Tokens of such a block; 0 if the column's name ends with it: `hash_ids_16`.
    previous : str
        Column with the turn before each request; see `Sessions`. Used if the file has
        the other column, too.
    turn : str
        Column with each request's own name, where all arrivals are recorded.
    think : str
        Column with the seconds from the end of the turn before; then turns are named
        by their number, from 1, and 0 means none.
    """

    name: str
    about: str
    prefill: str
    decode: str
    arrival: str = ""
    second: float = 1.0
    clock: bool = False
    seconds_too: bool = False
    zero_note: str = ""
    also: str = ""
    prefix_ids: str = ""
    tokens_per_id: int = 0
    previous: str = ""
    turn: str = ""
    think: str = ""

    @property
    def columns(self) -> str:
        """Columns or keys that identify it, for messages."""
        also = f", {self.also}" if self.also else ""
        ids = self.prefix_ids and self.prefix_ids + ("" if self.tokens_per_id else "_B")
        turns = ", ".join(name for name in (self.previous, self.think) if name)
        optional = "".join(f"[, {name}]" for name in (self.arrival, ids, turns) if name)
        return f"{self.prefill}, {self.decode}{also}{optional}"

    def find_turns(self, names: Sequence[str]) -> tuple[int, int] | None:
        """Return the positions of the columns of turns: previous, and the other."""
        plain = [name.strip().casefold() for name in names]
        wanted = [self.previous.casefold(), (self.turn or self.think).casefold()]
        if not self.previous or not set(wanted) <= set(plain):
            return None
        return plain.index(wanted[0]), plain.index(wanted[1])

    def find_ids(self, names: Sequence[str]) -> tuple[int, int] | None:
        """Return position and tokens per id of the column of ids, if there is one."""
        if not self.prefix_ids:
            return None
        size = "" if self.tokens_per_id else r"_([1-9][0-9]{0,8})"
        pattern = re.compile(re.escape(self.prefix_ids) + size, re.IGNORECASE)
        for position, name in enumerate(names):
            if found := pattern.fullmatch(name.strip()):
                return position, self.tokens_per_id or int(found[1])
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFormat(Format):
    """A format of JSON objects that hold texts, whose tokens are counted.

    `prefill` and `decode` are the names of the two counts in messages.

    Attributes
    ----------
    key : str
        Key that identifies objects of the format.
    count : CountTexts
        Raises a TraceError if the object is not of the format.
    prompt : Prompt, optional
        Returns the prompt of an object whose lengths were counted, by which prefixes
        that prompts share are found; none are if left out.
    """

    key: str
    count: CountTexts
    prompt: Prompt | None = None

    @property
    def columns(self) -> str:
        """Columns or keys that identify it, for messages."""
        return self.key


FORMATS: Table[Format] = Table("trace format", "sortedf.traces.formats")
"""Every format that is recognised."""

ROLES = ("arrival", "prefill", "decode")
"""What a column can be."""

COMMON_TIMES = (
    "arrival_s",
    "arrival_time",
    "arrival_timestamp",
    "arrived_at",
    "arrival",
    "timestamp",
    "arrival_time_s",
    "arrival_time_ms",
    "arrival_time_us",
    "arrival_time_ns",
    "arrival_ms",
    "timestamp_s",
    "timestamp_ms",
    "timestamp_us",
    "timestamp_ns",
    "request_timestamp",
    "request_time",
    "request_created_at",
    "request_start_time",
    "created_at",
    "created",
    "starttime",
    "start_time",
    "start_time_s",
    "start_time_ms",
    "start_time_ns",
    "starttimeunixnano",
    "start_timestamp",
    "time",
    "ts",
    "datetime",
    "date_time",
)
"""Names of arrival times in many files, those that say most first."""

OWN = "sortedf"
"""The format of `write_trace`; it is used if several fit."""


def register_format(format: Format) -> Format:
    """Register a format."""
    return FORMATS.register(format.name)(format)


@dataclass(frozen=True, slots=True)
class Match:
    """A format, and the positions of its columns among those of a file.

    `ids` has the position of the ids of prompts' blocks, and their tokens; `turns`
    those of the columns of sessions, `previous` first.
    """

    format: Format
    prefill: int
    decode: int
    arrival: int | None
    ids: tuple[int, int] | None
    turns: tuple[int, int] | None


def match_columns(
    names: Sequence[str], where: str, columns: Mapping[str, str]
) -> Match:
    """Find the format of a table by the names of its columns.

    If several formats fit, `OWN` is used, or else the first in `FORMATS`.

    Parameters
    ----------
    names : sequence of str
    where : str
        The file and the place of the names, for messages.
    columns : mapping of str to str
        Names of columns by `ROLES`, which count before those of a format.

    Raises
    ------
    TraceError
        If no format fits, a given column is missing, or one occurs twice.
    """
    for formats in _stages():
        found = _match_columns(names, where, formats, columns)
        if found is not None:
            return found
    raise _unknown(names, where)


def match_object(
    keys: Sequence[str], where: str, columns: Mapping[str, str]
) -> Match | TextFormat:
    """Find the format of JSON objects by the keys of the first; see `match_columns`."""
    if columns:
        return match_columns(keys, where, columns)
    for formats in _stages():
        for known in formats:
            if isinstance(known, TextFormat) and known.key in keys:
                return known
        found = _match_columns(keys, where, formats, columns)
        if found is not None:
            return found
    raise _unknown(keys, where)


def _stages() -> Iterator[list[Format]]:
    """Yield the built-in formats, then all: plug-ins are imported only if needed."""
    for formats in (FORMATS.loaded(), FORMATS):
        yield _own_first(formats.values())


def _own_first(formats: Iterable[Format]) -> list[Format]:
    # Formats that require more columns come first.
    return sorted(formats, key=lambda known: (known.name != OWN, not known.also))


def _match_columns(
    names: Sequence[str],
    where: str,
    formats: list[Format],
    columns: Mapping[str, str],
) -> Match | None:
    plain = [name.strip().casefold() for name in names]
    for name in columns.values():
        if name.strip().casefold() not in plain:
            found = ", ".join(shown(name) for name in names[:12])
            raise TraceError(f"{where} has no {shown(name)} but {found}.")
    for known in _renamed(formats, columns):
        keys = [known.prefill.casefold(), known.decode.casefold()]
        needed = {*keys, *([known.also.casefold()] if known.also else [])}
        if isinstance(known, TextFormat) or not needed <= set(plain):
            continue
        times = [known.arrival.casefold()]
        if known.arrival not in columns.values():
            times += COMMON_TIMES
        keys += [key for key in times if key in plain][:1]
        for key in keys:
            if plain.count(key) > 1:
                name = names[plain.index(key)].strip()
                raise TraceError(f"{where} has {name} more than once.")
        arrival = plain.index(keys[2]) if len(keys) > 2 else None
        if arrival is not None and keys[2] != known.arrival.casefold():
            # A time under another name than the format's has no unit of the format.
            known = replace(known, second=1.0, clock=True, seconds_too=False)
        first, second = plain.index(keys[0]), plain.index(keys[1])
        ids, turns = known.find_ids(names), known.find_turns(names)
        return Match(known, first, second, arrival, ids, turns)
    return None


def _renamed(formats: list[Format], columns: Mapping[str, str]) -> list[Format]:
    """Put given names of columns in place of those of the formats."""
    if not columns:
        return formats
    names: dict[str, Any] = {role: name.strip() for role, name in columns.items()}
    if {"prefill", "decode"} <= set(names):
        return [Format("columns as given", "", **names, clock=True)]
    own_unit: dict[str, Any] = {"second": 1.0, "clock": True, "seconds_too": False}
    looser = own_unit if "arrival" in names else {}
    return [
        replace(known, **names, **looser)
        for known in formats
        if not isinstance(known, TextFormat)
    ]


def _unknown(names: Sequence[str], where: str) -> TraceError:
    found = ", ".join(shown(name) for name in names[:12])
    more = ", ..." if len(names) > 12 else ""
    return TraceError(
        f"{where} has {found or 'nothing'}{more}, which is no known format. Rename the "
        "columns, or name them by --columns prefill=...,decode=...,arrival=...; known "
        f"are {describe_formats()}."
    )


def describe_formats() -> str:
    """List every format with its columns, in one line."""
    known = _own_first(FORMATS.values())
    tables = [f for f in known if not isinstance(f, TextFormat)]
    texts = [f for f in known if isinstance(f, TextFormat)]
    return "; ".join(
        [f"{f.name} ({f.columns})" for f in tables]
        + [f"in JSON {f.name} ({f.columns})" for f in texts]
    )
