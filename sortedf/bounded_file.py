"""Reading files that strangers wrote: what one may grow to in memory is bounded.

A few bytes can stand for very many: packed ones that unpack to a thousand times as
many, or JSON whose every other byte is a list of its own. The limits are far above what
any real file of the package's formats has, and are stated where they refuse one.
"""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import io
    from os import PathLike

    from sortedf.errors import SortedfError

GZIP_MAGIC = b"\x1f\x8b"

MOST_BYTES = 1 << 30
"""Most bytes of a file that is held whole, unpacked."""

FREE_BYTES = 1 << 24
"""What packed data may unpack to in any case."""

MOST_TIMES = 100
"""How many times its size packed data may unpack to beyond that."""

MOST_VALUES = 10_000_000
"""Most values of a JSON text in which they are short; each takes some 100 bytes."""

SPARSE = 16
"""Bytes per value from which on the texts, and not the values, fill memory."""


class TooLargeFileError(ValueError):
    """A file is beyond a limit; the message says which, without the file's name."""


class UnpackedFile(gzip.GzipFile):
    """A gzip file that refuses to unpack to far more than its size."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file)
        self._left = most_unpacked(_size(file))

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes, or all; TooLargeFileError beyond the limit."""
        most = self._left + 1
        content = super().read(most if size is None or size < 0 else min(size, most))
        self._left -= len(content)
        if self._left < 0:
            raise TooLargeFileError(
                f"its gzip unpacks to more than {MOST_TIMES} times its size (and more "
                f"than {FREE_BYTES >> 20} MiB); unpack it yourself if that is right"
            )
        return content


def most_unpacked(packed: int) -> int:
    """Return how many bytes `packed` bytes may unpack to."""
    return max(FREE_BYTES, MOST_TIMES * packed)


def read_whole(path: str | PathLike[str], error_class: type[SortedfError]) -> bytes:
    """Read all bytes of a file, unpacked if it is gzip.

    Raises
    ------
    error_class
        If it cannot be read, or is too large; one line with the file's name.
    """
    name = os.fspath(path)
    if not name or "\0" in name:
        raise error_class(f"{name!r} cannot be read: it is no file name.")
    try:
        with open(path, "rb") as raw:
            return _content(raw)
    except TooLargeFileError as error:
        raise error_class(f"{path} cannot be read: {error}.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise error_class(f"{path}: broken or truncated gzip: {error}.") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise error_class(f"{path} cannot be read: {reason}.") from None


def _content(raw: io.BufferedReader[Any]) -> bytes:
    packed = raw.peek(2)[:2] == GZIP_MAGIC
    file: Any = UnpackedFile(raw) if packed else raw
    content: bytes = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise TooLargeFileError(f"it has more than {MOST_BYTES >> 30} GiB")
    if packed and file.read(1):
        raise TooLargeFileError(f"it unpacks to more than {MOST_BYTES >> 30} GiB")
    return content


def refuse_too_many_values(text: str | bytes) -> None:
    """Refuse a JSON text that would fill memory with values.

    Raises
    ------
    TooLargeFileError
    """
    if len(text) <= MOST_VALUES:
        return
    marks: Any = (",", "[", "{") if isinstance(text, str) else (b",", b"[", b"{")
    count = sum(text.count(mark) for mark in marks)
    if count > max(MOST_VALUES, len(text) // SPARSE):
        raise TooLargeFileError(f"it has more than {MOST_VALUES:,} JSON values")


def _size(file: IO[bytes]) -> int:
    """Size of what is read from; for a pipe the most that is ever held."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else MOST_BYTES // MOST_TIMES
