"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sortedf.errors import OutputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path in the same folder that becomes `path` on success.

    The temporary file has the suffix of `path`. On any exception it is removed, and
    what was at `path` before stays as it was. What is no regular file (a pipe, a
    device such as /dev/stdout) is written to directly.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    shown = os.fsdecode(path)
    if not shown or "\0" in shown:
        raise OutputError(f"{shown!r} cannot be written: it is no file name.")
    try:
        if _is_special(shown):
            yield Path(shown)  # what it is a link to need have no name of its own
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
    """Raise OutputError now, and not after long work, where outputs cannot be written.

    Parameters
    ----------
    *paths : path or None
        Where outputs are going to be; None is none.
    inputs : iterable of path or None
        What is read and has to stay as it is: no output may be one of these, or the
        same file as another output. What does not exist is no input.
    """
    outputs = [os.fsdecode(path) for path in paths if path is not None]
    for path in outputs:
        with suppress(_ProbeError), atomic_path(path):
            raise _ProbeError  # so that nothing is put there
    read = [os.fsdecode(path) for path in inputs if path is not None]
    for k, path in enumerate(outputs):
        if _is_special(path):
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


def _is_special(path: str) -> bool:
    """Whether there is something that is neither a file nor a folder: a pipe, say."""
    return os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))


class _ProbeError(Exception):
    pass


def _create_beside(target: Path) -> Path:
    """Create an empty file in the folder of `target`, with the mode it will have."""
    temporary = target.with_name(f".tmp-{secrets.token_hex(8)}{target.suffix}")
    # Not by tempfile, whose files nobody else may read: the umask decides here.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    if target.exists():
        shutil.copymode(target, temporary)
    return temporary
