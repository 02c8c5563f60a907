"""Reading of a batch file: one request per line, all checked first."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from online.executor.batch.batch_errors import BatchFileError
from sortedf.bounded_file import read_whole
from sortedf.json_values import decoded, json_lines
from sortedf.shown import shown_json, shown_repr

if TYPE_CHECKING:
    from os import PathLike

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
SUPPORTED = (CHAT, COMPLETIONS)
"""URLs of the supported APIs."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """One line of a batch file.

    Attributes
    ----------
    custom_id : str
        Identifier given by the user, unique in the file.
    url : str
        URL of its API; a request with a URL not in `SUPPORTED` gets an error.
    body : dict
        Its parameters, checked by the engine's API.
    """

    custom_id: str
    url: str
    body: dict[str, Any] = field(hash=False)

    @property
    def num_answers(self) -> int:
        """Answers asked for, each a request of the engine; 1 where `n` is no number."""
        n = self.body.get("n")
        return n if type(n) is int and n > 0 else 1


@dataclass(frozen=True, slots=True)
class BatchFile:
    """All requests of a file, in its order.

    Attributes
    ----------
    sha256 : str
        Hash of the file's bytes, stored in the journal.
    """

    path: Path
    sha256: str
    requests: tuple[BatchRequest, ...]


def read_batch(path: str | PathLike[str]) -> BatchFile:
    """Read and check a batch file.

    Raises
    ------
    BatchFileError
        If it cannot be read, is empty, or a line is no request; with file and line.
    """
    content = read_whole(path, BatchFileError)
    requests: list[BatchRequest] = []
    seen: dict[str, int] = {}
    lines = decoded(content, path, BatchFileError).split("\n")
    for number, row in json_lines(lines, path, BatchFileError):
        where = f"{path}: line {number}"
        request = _request(row, where)
        first = seen.setdefault(request.custom_id, number)
        if first != number:
            raise BatchFileError(
                f"{where}: custom_id {shown_repr(request.custom_id)} is that of line "
                f"{first} but must be unique."
            )
        requests.append(request)
    if not requests:
        raise BatchFileError(f"{path} is empty; one JSON object per line is needed.")
    digest = hashlib.sha256(content).hexdigest()
    return BatchFile(Path(path), digest, tuple(requests))


def _request(content: dict[str, Any], where: str) -> BatchRequest:
    for name, kind, what in (
        ("custom_id", str, "a string"),
        ("method", str, "a string"),
        ("url", str, "a string"),
        ("body", dict, "an object"),
    ):
        if name not in content:
            raise BatchFileError(f"{where}: the field {name!r} is missing.")
        if not isinstance(content[name], kind):
            value = shown_json(content[name])
            raise BatchFileError(f"{where}: {name} = {value} but must be {what}.")
    if content["method"] != "POST":
        raise BatchFileError(
            f"{where}: method = {shown_repr(content['method'])} but must be 'POST'."
        )
    for name in ("custom_id", "url"):
        if not _is_text(content[name]):
            value = shown_json(content[name])
            raise BatchFileError(
                f"{where}: {name} = {value} is no text: it has half "
                "of a pair of surrogates."
            )
    return BatchRequest(content["custom_id"], content["url"], content["body"])


def _is_text(value: str) -> bool:
    """Whether a string can be written to a file."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
