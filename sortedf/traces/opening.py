"""Opening of trace files, plain or gzip, and decoding of their lines."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sortedf.bounded_file import GZIP_MAGIC, TooLargeFileError, UnpackedFile
from sortedf.errors import TraceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


PACKED = {
    b"\x28\xb5\x2f\xfd": ("Zstandard", "zstd -d"),
    b"\xfd7zXZ\0": ("xz", "xz -d"),
    b"BZh": ("bzip2", "bzip2 -d"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"7z\xbc\xaf": ("7-Zip", "7z x"),
}
"""Kinds of packed files that are not read, and what unpacks them, by first bytes."""


@contextmanager
def opened(path: str) -> Iterator[io.BufferedReader[Any]]:
    """Open `path`, "-" for standard input, for reading bytes, unpacked if it is gzip.

    Raises
    ------
    TraceError
        If the file cannot be opened or read.
    """
    if not path or "\0" in path:
        raise TraceError(f"{path!r} cannot be read: it is no file name.")
    try:
        with _raw(path) as raw:
            head = raw.peek(8)
            for magic, (kind, command) in PACKED.items():
                if head.startswith(magic):
                    raise TraceError(
                        f"{path} is packed by {kind}, which is not read; unpack it "
                        f"first ({command}), or pack it by gzip."
                    )
            if head[:2] != GZIP_MAGIC:
                yield raw
            else:
                # BufferedReader splits lines in C, GzipFile in Python.
                with io.BufferedReader(UnpackedFile(raw)) as unpacked:
                    yield unpacked
    except TooLargeFileError as error:
        raise TraceError(f"{path} cannot be read: {error}.") from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError(f"{path}: broken or truncated gzip: {error}.") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise TraceError(f"{path} cannot be read: {reason}.") from error


@contextmanager
def _raw(path: str) -> Iterator[io.BufferedReader[Any]]:
    """Open a file, or standard input for "-", which stays open."""
    if path != "-":
        with open(path, "rb") as raw:
            yield raw
    elif sys.stdin is None:
        raise TraceError("standard input is closed.")
    else:
        yield sys.stdin.buffer  # type: ignore[misc]


def text_lines(lines: Iterable[bytes], path: str, number: int = 1) -> Iterator[str]:
    """Decode the lines of a file, of which the first has the number `number`.

    Raises
    ------
    TraceError
        At the first line that is no UTF-8.
    """
    for count, line in enumerate(lines, start=number):
        try:
            # Only the first line of a file can have a byte order mark.
            yield line.decode("utf-8-sig" if count == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise TraceError(
                f"{path}: line {count}: 0x{error.object[error.start]:02x} is no UTF-8; "
                "a trace is CSV, JSON or JSONL in UTF-8, or Parquet."
            ) from None
