"""Units of the arrival times of a file, as it says or as its numbers tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sortedf.traces.format import Format

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}
"""Units per second, by name."""

EPOCHS = {"s": 1e8, "ms": 1e11, "us": 1e14, "ns": 1e17}
"""Least stamp since 1970 that is taken to be in a unit: the year 1973 and later."""

MOST_PER_SECOND = 500.0
"""Mean rate of requests above which times are not taken as milliseconds.

Recorded services have up to a few dozen a second; in a thousandth of its time a trace
of one request in two seconds has 500.
"""


def check_unit(unit: str | None) -> None:
    """Raise ValueError if a unit of time is unknown."""
    if unit is not None and unit not in UNITS:
        raise ValueError(
            f"--time-unit {unit!r} is unknown; choose one of: {', '.join(UNITS)}."
        )


def unit_of(
    times: NDArray[np.float64], name: str, format: Format, given: str | None
) -> tuple[str, str]:
    """Find the unit of the numbers of an arrival column.

    A given unit counts first, then one at the end of the column's name
    (`arrival_time_ms`), then the size of stamps since 1970, then the format's.

    Parameters
    ----------
    times : float array, shape (n,)
    name : str
        The column's name.
    format : Format
        If its unit is milliseconds and `Format.seconds_too` is set, fractions and high
        rates are taken as a sign of seconds.
    given : str, optional
        A name in `UNITS`.

    Returns
    -------
    unit : str
        A name in `UNITS`.
    guess : str
        Why, if it is a guess, else "".
    """
    if given is not None:
        return given, ""
    ending = name.casefold().replace("unixnano", "_ns").rpartition("_")[2]
    if ending in UNITS:
        return ending, ""
    least = float(times.min())
    since_1970 = [unit for unit, begin in EPOCHS.items() if least >= begin]
    if since_1970 and _may_be_stamp(times, since_1970[-1]):
        return since_1970[-1], ""
    own = next(unit for unit, per_s in UNITS.items() if per_s == format.second)
    if own == "ms" and format.seconds_too:
        return _milliseconds_or_seconds(times)
    return own, ""


def _may_be_stamp(times: NDArray[np.float64], unit: str) -> bool:
    """Whether the span is below ten years, so that stamps can be of one trace."""
    return float(np.ptp(times)) / UNITS[unit] < 3.2e8


def _milliseconds_or_seconds(times: NDArray[np.float64]) -> tuple[str, str]:
    if (times != np.floor(times)).any():
        return "s", "some have fractions"
    span = float(np.ptp(times))
    if span and 1e3 * len(times) / span > MOST_PER_SECOND:
        return "s", f"in ms there would be {1e3 * len(times) / span:,.0f} a second"
    if not span:
        return "ms", ""
    return "ms", "as in Mooncake's traces"
