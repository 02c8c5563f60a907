"""Validation of array arguments where they enter the package."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

T = TypeVar("T")
Number = TypeVar("Number", np.int64, np.float64)

MAX_TOKENS = 2**31 - 1
"""Largest length or budget, in tokens: a volume of two such numbers fits 64 bits."""

MAX_STEP = 2**53
"""Largest arrival or start, in steps: exact as a float, and far from overflow."""


def frozen_ints(
    name: str, values: ArrayLike, *, minimum: int, maximum: int
) -> NDArray[np.int64]:
    """Copy `values` into a read-only, one-dimensional int64 array.

    Floats are accepted where they are whole numbers, and so are arrays of Python
    objects that are all integers, as pandas makes them; booleans and strings are not.

    Raises
    ------
    TypeError
        If the values are not numbers.
    ValueError
        If the array is not one-dimensional, some of it is masked, or an entry is not an
        integer from `minimum` to `maximum`; the message names the first such entry.
    """
    if np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries; leave them out, or fill them.")
    try:
        raw = np.asarray(values)
    except ValueError:  # numpy refuses rows of unequal length
        raise ValueError(
            f"{name} must be a one-dimensional array of integers."
        ) from None
    if raw.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional but has shape {raw.shape}.")
    if raw.size == 0:
        return locked(np.empty(0, dtype=np.int64))
    if raw.dtype.kind == "O":  # pandas, integers beyond 64 bits, None, or a mixture
        return locked(_checked_objects(name, raw, minimum, maximum))
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold integers but has dtype {raw.dtype}.")
    if raw.dtype.kind == "f" and raw.dtype.itemsize < 8:
        raw = raw.astype(np.float64)  # float32 cannot represent the limits exactly
    bad = (raw < minimum) | (raw > maximum)
    if raw.dtype.kind == "f":
        bad |= ~np.isfinite(raw)
        bad |= np.floor(raw) != raw
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(_entry_message(name, i, raw[i], minimum, maximum))
    return locked(raw.astype(np.int64))


def checked_int(name: str, value: object, *, minimum: int, maximum: int) -> int:
    """Return `value` as int, or raise as `frozen_ints` does."""
    if isinstance(value, np.integer | np.floating):
        value = value.item()  # Python numbers compare exactly with the limits
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating):
        raise TypeError(f"{name} must be an integer but is {value!r}.")
    if not minimum <= value <= maximum or value != int(value):
        raise ValueError(
            f"{name} = {value} but must be an integer from {minimum} to {maximum}."
        )
    return int(value)


def checked_number(name: str, value: object, rule: str) -> float:
    """Return `value` unchanged; raise a TypeError stating `rule` if it is no number."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {rule} but is {value!r}.")
    number: float = value  # type: ignore[assignment]
    return number


def exact_sum(values: NDArray[np.int64]) -> int:
    """Sum of int64 values as a Python integer, without overflow.

    The high and low halves are summed separately: with fewer than 2**31 entries neither
    sum exceeds 64 bits.
    """
    high = int(np.sum(values >> 32, dtype=np.int64))
    low = int(np.sum(values & 0xFFFFFFFF, dtype=np.int64))
    return (high << 32) + low


def locked(array: NDArray[Number]) -> NDArray[Number]:
    """Make an array read-only, and return it."""
    array.flags.writeable = False
    return array


def unchecked(cls: type[T], /, **fields: Any) -> T:
    """Return an object of a frozen dataclass from values that it has checked before.

    The arrays are read-only and shared, not copied.
    """
    new = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(new, name, value)
    return new


def _checked_objects(
    name: str, raw: NDArray[np.object_], low: int, high: int
) -> NDArray[np.int64]:
    for i, value in enumerate(raw):
        number = isinstance(value, int | float | np.integer)
        if isinstance(value, bool) or not number:
            raise TypeError(f"{name}[{i}] = {value!r} but must be an integer.")
        if not low <= value <= high or value != int(value):
            raise ValueError(_entry_message(name, i, value, low, high))
    return raw.astype(np.int64)


def _entry_message(name: str, i: int, value: object, low: int, high: int) -> str:
    return f"{name}[{i}] = {value} but must be an integer from {low} to {high}."
