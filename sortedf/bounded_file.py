"""Reading of untrusted files within limits on memory.

A small file can need very much memory: gzip data that unpacks to a thousand times its
size, or JSON in which every other byte is a list. The limits are far above the sizes of
real files of the package's formats, and errors state them.
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
"""Largest size of a file read whole, after unpacking, in bytes."""

FREE_BYTES = 1 << 24
"""Unpacked size in bytes that is always allowed."""

MOST_TIMES = 100
"""Largest ratio of unpacked to packed size above `FREE_BYTES`."""

MOST_VALUES = 10_000_000
"""Most values of a JSON text of short values; each takes about 100 bytes."""

SPARSE = 16
"""Bytes of text per value above which the number of values is not limited."""


class TooLargeFileError(ValueError):
    """A file exceeds a limit; the message states it, without the file's name."""


class UnpackedFile(gzip.GzipFile):
    """A gzip file with a limit on its unpacked size."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file)
        self._left = most_unpacked(_size(file))

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes, or all; TooLargeFileError above the limit."""
        most = self._left + 1
        content = super().read(most if size is None or size < 0 else min(size, most))
        self._left -= len(content)
        if self._left < 0:
            raise TooLargeFileError(
                f"its gzip unpacks to more than {MOST_TIMES} times its size (and more "
                f"than {FREE_BYTES >> 20} MiB); unpack it first if that is correct"
            )
        return content


def most_unpacked(packed: int) -> int:
    """Largest allowed unpacked size of `packed` bytes."""
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
        raise error_class(
            f"{path} cannot be read: broken or truncated gzip: {error}."
        ) from None
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
    """Raise if a JSON text has too many values for memory.

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
    """Size of a file; for a pipe the largest packed size that can be read."""
    status = os.fstat(file.fileno())
    return status.st_size if stat.S_ISREG(status.st_mode) else MOST_BYTES // MOST_TIMES
