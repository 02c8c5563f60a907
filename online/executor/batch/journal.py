"""The journal beside the output: finished requests, safe against a kill at any time.

JSON lines: a header with input and model, then one line for each finished request, in
the order in which they finished. A line counts if it is complete with its newline; a
partial line left by a kill, a full disk or a power failure after the last complete one
is removed. Any other line must be exactly as a run writes it, with a valid output of
the request that it names; otherwise the journal is damaged and not used. It is locked
while a run writes to it and removed when the output is complete.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import threading
from contextlib import suppress
from dataclasses import dataclass
from stat import S_ISREG
from typing import TYPE_CHECKING, Any

from online.executor.batch.batch_errors import JournalError, UnfinishedError
from sortedf.json_values import parse_json
from sortedf.shown import shown, shown_repr

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from online.executor.batch.answer_lines import Answer

FORMAT = "sortedf run-batch 1"
BEGINS = json.dumps({"format": FORMAT})[:-1].encode()
"""First bytes of every journal, which identify a truncated header."""

SUFFIX = ".journal"

OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Flags of opening the journal: links are not followed, and it does not block."""


@dataclass(frozen=True, slots=True)
class Header:
    """Header of a journal.

    Attributes
    ----------
    sha256 : str
        Hash of the input file.
    model : str
    settings : mapping
        All other settings; may differ when a run is resumed.
    """

    sha256: str
    model: str
    settings: Mapping[str, Any]

    def line(self) -> bytes:
        """Return the journal's first line."""
        content = {
            "format": FORMAT,
            "sha256": self.sha256,
            "model": self.model,
            "settings": dict(self.settings),
        }
        return json.dumps(content).encode() + b"\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """Position of an output line in the journal, and whether it is an error."""

    custom_id: str
    offset: int
    length: int
    failed: bool


class Journal:
    """Finished requests by `custom_id`, in memory and on the disk.

    The file is opened only once while it is locked: closing any other handle of it
    would release the lock.

    Parameters
    ----------
    output : Path
        The output file; the journal's name is `output` with `.journal` appended.
    header : Header

    Raises
    ------
    JournalError
        If it belongs to another run: of another input or model, or one in progress.

    Attributes
    ----------
    entries : dict of str to Entry
    settings : mapping
        Settings of the run that created it.
    """

    def __init__(self, output: Path, header: Header) -> None:
        self.path = output.with_name(output.name + SUFFIX)
        self.entries: dict[str, Entry] = {}
        self.settings: Mapping[str, Any] = header.settings
        self._writing = threading.Lock()
        self._number = _open_locked(self.path)
        try:
            self._end = self._read(header)
            os.ftruncate(self._number, self._end)
            if self._end == 0:
                self._end = self._write(0, header.line())
                sync_folder(self.path)
        except BaseException:
            self.close()
            raise

    def _read(self, header: Header) -> int:
        """Read the complete lines; return their end."""
        lines = _lines(self._number, self.path)
        first = next(lines, b"")
        if not first.endswith(b"\n"):
            if not (first.startswith(BEGINS) or BEGINS.startswith(first)):
                raise self._foreign()
            return 0
        self._compare(first, header)
        end = len(first)
        for number, line in enumerate(lines, 2):
            if _is_torn(line) and next(lines, None) is None:
                break
            entry = _entry(line, end)
            if entry is None or entry.custom_id in self.entries:
                raise JournalError(
                    f"{self.path}: line {number} is damaged, or written by another "
                    "program: move the journal away to start from the beginning."
                )
            self.entries[entry.custom_id] = entry
            end += len(line)
        return end

    def _compare(self, first: bytes, header: Header) -> None:
        try:
            found = parse_json(first.decode(), "", JournalError)
            if found["format"] != FORMAT:
                raise ValueError
            sha256, model = found["sha256"], found["model"]
            self.settings = dict(found["settings"].items())
        except _NOT_OURS:
            raise self._foreign() from None
        for what, ours, theirs in (
            ("input file", header.sha256, sha256),
            ("model", header.model, model),
        ):
            if ours != theirs:
                named = "" if what == "input file" else f", {shown(str(theirs))}"
                raise JournalError(
                    f"{self.path} is the journal of an unfinished run with another "
                    f"{what}{named}: finish that run, remove the journal to discard "
                    "it, or choose another output."
                )

    def refuse_others(self, custom_ids: Iterable[str]) -> None:
        """Raise if the journal has requests that are not among these.

        Raises
        ------
        JournalError
        """
        for custom_id in self.entries.keys() - set(custom_ids):
            raise JournalError(
                f"{self.path} is damaged: it has a request {shown_repr(custom_id)}, "
                "which the input has not; move the journal away to start again from "
                "nothing."
            )

    def _foreign(self) -> JournalError:
        return JournalError(
            f"{self.path} is no journal of run-batch: move it away or choose another "
            "output."
        )

    def append(self, answers: Iterable[tuple[str, Answer]]) -> None:
        """Add finished requests; when this returns they are on disk.

        Requests that are already in the journal are skipped.
        """
        with self._writing:
            lines: list[bytes] = []
            added: dict[str, Entry] = {}
            end = self._end
            for custom_id, answer in answers:
                if custom_id in self.entries or custom_id in added:
                    continue
                before = _before_output(custom_id, answer.failed)
                output = answer.line.encode()
                lines.append(before + output + _AFTER_OUTPUT)
                added[custom_id] = Entry(
                    custom_id, end + len(before), len(output), answer.failed
                )
                end += len(lines[-1])
            self._end = self._write(self._end, b"".join(lines))
            self.entries.update(added)

    def _write(self, offset: int, content: bytes) -> int:
        """Write and sync to disk; return the new end."""
        end = offset
        try:
            while end < offset + len(content):
                end += os.pwrite(self._number, content[end - offset :], end)
            os.fsync(self._number)
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._number, offset)
            raise UnfinishedError(
                f"{self.path} cannot be written: {error.strerror}; free disk space and "
                "run the same command again to resume."
            ) from error
        return end

    def output_lines(self, custom_ids: Iterable[str]) -> Iterator[bytes]:
        """Yield the output lines of requests, each with its newline."""
        for custom_id in custom_ids:
            entry = self.entries[custom_id]
            yield _read_at(self._number, entry.offset, entry.length) + b"\n"

    @property
    def num_failed(self) -> int:
        """Number of finished requests that failed."""
        return sum(entry.failed for entry in self.entries.values())

    def close(self, *, remove: bool = False) -> None:
        """Release the lock; remove the file if it is no longer needed."""
        if self._number < 0:
            return
        if remove:
            self.path.unlink(missing_ok=True)
        os.close(self._number)
        self._number = -1


_AFTER_OUTPUT = b"}\n"

_NOT_OURS = (ValueError, KeyError, TypeError, AttributeError)
"""Exceptions of parsing a line that is not of a journal."""

PART = 1 << 20
"""Bytes read at a time."""

MOST_IN_LINE = 1 << 28
"""Largest length of a line in bytes, above that of any answer."""


def _is_torn(line: bytes) -> bool:
    """Whether a last line can be a partly written one; lost blocks are read as 0."""
    return not line.endswith(b"\n") or b"\0" in line


def _entry(line: bytes, offset: int) -> Entry | None:
    """Parse the line that begins at `offset`; None if a run did not write it."""
    try:
        content = parse_json(line.decode(), "", JournalError)
        custom_id, failed = content["custom_id"], content["failed"]
        before = _before_output(custom_id, failed)
        text = line[len(before) : -len(_AFTER_OUTPUT)]
        output = parse_json(text.decode(), "", JournalError)
        has_error = output.get("error") is not None
        is_ours = before + text + _AFTER_OUTPUT == line and failed is has_error
        if (
            not is_ours
            or type(custom_id) is not str
            or output["custom_id"] != custom_id
        ):
            return None
    except _NOT_OURS:
        return None
    return Entry(custom_id, offset + len(before), len(text), failed)


def _lines(number: int, path: Path) -> Iterator[bytes]:
    """Yield the lines of a file with their newlines, without a second handle of it."""
    rest, offset = b"", 0
    while part := os.pread(number, PART, offset):
        offset += len(part)
        *whole, rest = (rest + part).split(b"\n")
        if len(rest) > MOST_IN_LINE:
            raise JournalError(
                f"{path} is damaged: it has a line of more than {MOST_IN_LINE >> 20} "
                "MiB; move the journal away to start again from nothing."
            )
        yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


def _before_output(custom_id: str, failed: bool) -> bytes:
    """Return the begin of an entry's line; the output text follows unchanged."""
    content = json.dumps({"custom_id": custom_id, "failed": failed})
    return content[:-1].encode() + b', "output": '


def _read_at(number: int, offset: int, length: int) -> bytes:
    parts: list[bytes] = []
    while length and (part := os.pread(number, length, offset)):
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)


def _open_locked(path: Path) -> int:
    """Open and lock the journal, creating it if it does not exist."""
    while True:
        try:
            number = os.open(path, OPEN_FLAGS, 0o666)
        except OSError as error:
            reason = error.strerror
            if error.errno == errno.ELOOP:
                reason = "it is a link, which is not followed; remove it"
            raise JournalError(f"{path} cannot be written: {reason}.") from None
        if not S_ISREG(os.fstat(number).st_mode):
            os.close(number)
            raise JournalError(f"{path} cannot be written: it is no regular file.")
        try:
            # Not flock: an engine that outlives a killed run would keep such a lock.
            fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(number)
            raise JournalError(
                f"{path} is in use: another run writes to the same output; wait for "
                "it or choose another output."
            ) from None
        # Another run may have finished and removed it between the two calls.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(number), path.stat()):
                return number
        os.close(number)


def sync_folder(path: Path) -> None:
    """Sync a folder, so that a new file name survives a power failure."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
