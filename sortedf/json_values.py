"""JSON from files: one value, or one object per line; errors name file and line."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from sortedf.bounded_file import TooLargeFileError, read_whole, refuse_too_many_values
from sortedf.shown import shown_json, shown_repr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from os import PathLike

    from sortedf.errors import SortedfError

    Path = str | PathLike[str]


class RepeatedKeyError(ValueError):
    """A key occurs twice in one object, so that its value is ambiguous."""


def read_json(path: Path, error_class: type[SortedfError]) -> Any:
    """Read one JSON value, or raise `error_class` with file name and reason."""
    return parse_json(read_text(path, error_class), path, error_class)


def read_lines(
    path: Path, error_class: type[SortedfError]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line that is not blank; see `json_lines`."""
    return json_lines(read_text(path, error_class).split("\n"), path, error_class)


def read_text(path: Path, error_class: type[SortedfError]) -> str:
    """Read a file in UTF-8, unpacked if it is gzip, without its byte order mark.

    Raises
    ------
    error_class
        If it cannot be read, is too large, or is no UTF-8; with file and line.
    """
    return decoded(read_whole(path, error_class), path, error_class)


def decoded(content: bytes, path: Path, error_class: type[SortedfError]) -> str:
    """Decode a file's content; raise `error_class` where it is no UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise error_class(
            f"{path}: line {line}: 0x{content[error.start]:02x} is no UTF-8."
        ) from None


def json_lines(
    lines: Iterable[str],
    path: Path,
    error_class: type[SortedfError],
    first: int = 1,
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line that is not blank.

    Parameters
    ----------
    lines : iterable of str
    path : path
    error_class : type
    first : int
        The number of the first line.

    Raises
    ------
    error_class
        If a line is no JSON or no object; with file and line.
    """
    for number, line in enumerate(lines, start=first):
        if text := line.rstrip():
            value = parse_json(text, path, error_class, number)
            if type(value) is not dict:
                require_object(value, f"{path}: line {number}", error_class)
            yield number, value


def parse_json(
    text: str, path: Path, error_class: type[SortedfError], first: int = 1
) -> Any:
    """Parse one JSON value.

    Parameters
    ----------
    text : str
    path : path
    error_class : type
    first : int
        The number in the file of the text's first line.

    Raises
    ------
    error_class
        If it is no JSON, has too many values for memory, or an object with the same
        key twice; with file and line.
    """
    try:
        refuse_too_many_values(text)
        begin = len(text) - len(text.lstrip())
        value, end = _raw_decode(text, begin)  # half the time of json.loads
        after = len(text) - len(text[end:].lstrip())
        if after == len(text):
            return value
        raise json.JSONDecodeError("Extra data", text, after)
    except TooLargeFileError as error:
        raise error_class(f"{path} cannot be read: {error}.") from None
    except json.JSONDecodeError as error:
        where = f"{path}: line {first + error.lineno - 1}"
        reason = f"{error.msg[:1].lower()}{error.msg[1:]} at column {error.colno}"
    except (RecursionError, ValueError) as error:  # their line is not known
        where = f"{path}" if "\n" in text.strip() else f"{path}: line {first}"
        reason = _reason(error)
    raise error_class(f"{where} is no JSON: {reason}.")


def require_object(
    value: object, where: str, error_class: type[SortedfError]
) -> dict[str, Any]:
    """Return `value` if it is a JSON object, else raise `error_class`."""
    if isinstance(value, dict):
        return value
    raise error_class(f"{where} is {shown_json(value)} but must be a JSON object.")


def _reason(error: RecursionError | ValueError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, RepeatedKeyError):
        return str(error)
    return "a number has too many digits"  # thousands of them, which int refuses


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise RepeatedKeyError(f"an object has the key {shown_repr(twice)} twice")
    return found


_raw_decode = json.JSONDecoder(object_pairs_hook=_unique_keys).raw_decode
