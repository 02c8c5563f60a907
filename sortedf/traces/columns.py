"""Conversion of a raw column to numbers; errors name the first invalid value.

The common case is one pass in C over the whole column. Only if that fails are the
values examined one by one to find the invalid one.
"""

from __future__ import annotations

import math
import re
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from sortedf.arrays import MAX_TOKENS
from sortedf.shown import shown, shown_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from sortedf.traces.location import Location

    Column = Sequence[Any] | NDArray[Any]
    Numbers = NDArray[np.int64] | NDArray[np.float64]
    Parse = Callable[[Any, Location, str], Numbers]

TOKENS_RULE = f"an integer from 1 to {MAX_TOKENS}"
WHOLE_RULE = "an integer"
SECONDS_RULE = "a number, 0 or more"
CLOCK_RULE = "a date with a time of day such as 2023-11-16 18:17:03.9799600"

# Years are limited because nanoseconds in 64 bits overflow silently after 2262.
_CLOCK = re.compile(
    r"\s*((?:19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?)"
    r" ?(Z|UTC|[+-]\d\d(?::?\d\d)?)?\s*"
)


def numbers_in_text(values: Sequence[str], location: Location, rule: str) -> Numbers:
    """Convert the texts of a CSV column to numbers."""
    # Python's int() accepts 1_000 and digits of other scripts; traces must not.
    joined = "".join(values)
    if "_" not in joined and joined.isascii():
        try:
            return np.fromiter(map(int, values), np.int64, len(values))
        except (ValueError, OverflowError):
            pass
        try:
            return np.fromiter(map(float, values), np.float64, len(values))
        except ValueError:
            pass
    return np.array([_text_number(v, i, location, rule) for i, v in enumerate(values)])


def numbers_in_objects(values: Column, location: Location, rule: str) -> Numbers:
    """Convert values of JSON or Parquet to numbers; strings and null are refused."""
    if isinstance(values, np.ndarray):
        if values.dtype.kind not in "iuf":  # timestamps instead of numbers
            location.refuse(0, _shown(values[0]), rule)
        return values
    kinds = set(map(type, values))
    for i, value in enumerate(values if kinds - {int, float} else ()):
        if type(value) not in (int, float):
            location.refuse(i, shown_json(value), rule)
    try:
        return np.array(values, dtype=np.float64)
    except OverflowError:  # an integer beyond the largest float
        for i, value in enumerate(values):
            if isinstance(value, int) and abs(value) > 2**1023:
                location.refuse(i, shown_json(value), rule)
        raise


def whole_tokens(
    numbers: Numbers, values: Column, location: Location
) -> NDArray[np.int64]:
    """Check lengths in tokens: integers from 1 to `MAX_TOKENS`."""
    good = (numbers >= 1) & (numbers <= MAX_TOKENS) & (np.floor(numbers) == numbers)
    _refuse_first(~good, values, location, TOKENS_RULE)
    return numbers.astype(np.int64, copy=False)


def whole_numbers(
    numbers: Numbers, values: Column, location: Location
) -> NDArray[np.int64]:
    """Check integers of up to 53 bits, which floating point distinguishes."""
    good = (np.abs(numbers) < 2**53) & (np.floor(numbers) == numbers)
    _refuse_first(~good, values, location, WHOLE_RULE)
    return numbers.astype(np.int64)


def seconds(
    numbers: Numbers, values: Column, location: Location
) -> NDArray[np.float64]:
    """Check times in the file's unit: finite and at least 0."""
    _refuse_first(
        ~((numbers >= 0) & np.isfinite(numbers)), values, location, SECONDS_RULE
    )
    return numbers.astype(np.float64, copy=False)


def is_clock(value: object) -> bool:
    """Whether `value` is a date with a time of day."""
    if isinstance(value, str):
        return _CLOCK.fullmatch(value) is not None
    return isinstance(value, np.datetime64)


def clock_ns(values: Column, location: Location) -> NDArray[np.int64]:
    """Nanoseconds since 1970 of dates with times of day, taken as UTC by default."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "M":
        return values.astype("datetime64[ns]").astype(np.int64)
    times = _clock_ns_of_one_zone(values)
    if times is not None:
        return times
    matches = [_CLOCK.fullmatch(v) if type(v) is str else None for v in values]
    if None in matches:
        i = matches.index(None)
        location.refuse(i, _shown(values[i]), CLOCK_RULE)
    stamps = [match[1] for match in matches]  # type: ignore[index]
    zones = [match[2] for match in matches]  # type: ignore[index]
    offset_ns = {zone: _offset_ns(zone) for zone in set(zones)}
    offset = np.array([offset_ns[zone] for zone in zones], dtype=np.int64)
    try:
        return np.array(stamps, dtype="datetime64[ns]").astype(np.int64) - offset
    except ValueError:  # a 30th of February
        for i, stamp in enumerate(stamps):
            if not _is_date(stamp):
                location.refuse(i, shown(values[i]), CLOCK_RULE)
        raise


def _clock_ns_of_one_zone(values: Column) -> NDArray[np.int64] | None:
    """Do as `clock_ns` in a third of the time; None if any value needs its checks."""
    first = _CLOCK.fullmatch(values[0]) if isinstance(values[0], str) else None
    if first is None or set(map(type, values)) != {str}:
        return None
    zone = first[2] or ""
    if not all(value.endswith(zone) for value in values):
        return None
    stamps = [value.removesuffix(zone) for value in values]
    # numpy also parses shorter texts such as "7" or "NaT", and it truncates longer ones
    # to nanoseconds.
    lengths = set(map(len, stamps))
    if min(lengths) < 19 or max(lengths) > 29:
        return None
    if min(stamps) < "19" or max(stamps) >= "21":  # the years that `_CLOCK` allows
        return None
    try:
        with warnings.catch_warnings(action="error"):  # it warns about another zone
            times = np.array(stamps, dtype="datetime64[ns]").astype(np.int64)
    except (ValueError, Warning):
        return None
    offset_times: NDArray[np.int64] = times - _offset_ns(first[2])
    return offset_times


def _text_number(value: str, i: int, location: Location, rule: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if math.isnan(number) or "_" in value or not value.isascii():
        location.refuse(i, shown(value), rule)
    return number


def _refuse_first(
    bad: NDArray[np.bool_], values: Column, location: Location, rule: str
) -> None:
    if bad.any():
        i = int(np.argmax(bad))
        location.refuse(i, _shown(values[i]), rule)


def _shown(value: object) -> str:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, np.datetime64):
        return str(value)
    return shown_json(value.item() if isinstance(value, np.generic) else value)


def _offset_ns(zone: str | None) -> int:
    if zone is None or zone in ("Z", "UTC"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    size = (int(digits[:2]) * 3600 + int(digits[2:]) * 60) * 10**9
    return -size if zone[0] == "-" else size


def _is_date(stamp: str) -> bool:
    try:
        np.datetime64(stamp)
    except ValueError:
        return False
    return True
