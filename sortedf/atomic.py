"""Atomic writing of files: a file is written completely or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from sortedf.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path in the same folder, renamed to `path` on success.

    The temporary file has the suffix of `path`. On any exception it is removed, and an
    existing file at `path` stays unchanged. A path that is not a regular file (a pipe,
    a device such as /dev/stdout) is written to directly.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    shown = os.fsdecode(path)
    if not shown or "\0" in shown:
        raise OutputError(f"{shown!r} cannot be written: it is no file name.")
    try:
        if _is_standard_output(shown):
            with TemporaryDirectory() as folder:
                passed_on = Path(folder, Path(shown).name)
                yield passed_on
                _print_bytes(passed_on)
            return
        if _is_special(shown):
            yield Path(shown)  # unresolved: the target of /dev/stdout may have no path
            return
        # A link keeps pointing where it did: its target is replaced, not the link.
        target = Path(os.path.realpath(shown))
        if target.is_dir():
            raise IsADirectoryError(0, "it is a folder")
        temporary = _create_beside(target)
        try:
            yield temporary
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink()
            raise
    except FileNotFoundError as error:
        reason = f"the folder {target.parent} does not exist"
        if target.parent.is_dir():
            reason = str(error.strerror)
        raise OutputError(f"{shown} cannot be written: {reason}.") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"{shown} cannot be written: {reason}.") from error


def refuse_unwritable(
    *paths: str | os.PathLike[str] | None,
    inputs: Iterable[str | os.PathLike[str] | None] = (),
) -> None:
    """Raise OutputError before a long computation if outputs cannot be written.

    Parameters
    ----------
    *paths : path or None
        Paths of the outputs; None entries are skipped.
    inputs : iterable of path or None
        Files that are read: no output may be one of them, or the same file as another
        output. Paths that do not exist are ignored.
    """
    outputs = [os.fsdecode(path) for path in paths if path is not None]
    for path in outputs:
        with suppress(_ProbeError), atomic_path(path):
            raise _ProbeError  # nothing is written
    read = [os.fsdecode(path) for path in inputs if path is not None]
    for k, path in enumerate(outputs):
        if _is_special(path) or _is_standard_output(path):
            continue
        for other in read:
            if os.path.exists(other) and _same(path, other):
                raise OutputError(f"{path} cannot be written: it is an input.")
        if any(_same(path, other) for other in outputs[:k]):
            raise OutputError(f"{path} cannot be written: it is another output too.")


def _same(path: str, other: str) -> bool:
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _is_standard_output(path: str) -> bool:
    """Whether the path is where this process prints, a file or not."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(1))
    except OSError:  # one of them is not there
        return False


def _print_bytes(path: Path) -> None:
    """Print a file after what was printed before; opening it would truncate it."""
    if not path.exists():  # nothing was written
        return
    sys.stdout.flush()
    content = memoryview(path.read_bytes())
    while content:
        content = content[os.write(1, content) :]


def _is_special(path: str) -> bool:
    """Whether the path exists and is neither a file nor a folder, such as a pipe."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


class _ProbeError(Exception):
    pass


def _create_beside(target: Path) -> Path:
    """Create an empty file in the folder of `target`, with the mode it will have."""
    temporary = target.with_name(f".tmp-{secrets.token_hex(8)}{target.suffix}")
    # tempfile would restrict reading to the owner; here the umask decides.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    if target.exists():
        shutil.copymode(target, temporary)
    return temporary
