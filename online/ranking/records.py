"""JSON objects of a file with their locations."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from online.ranking.ranking_error import RankingError
from sortedf.bounded_file import read_whole, refuse_too_many_values

if TYPE_CHECKING:
    import os


@dataclass(frozen=True, slots=True)
class Record:
    """One object and its location.

    Attributes
    ----------
    where : str
        File and line, or file and number in a list.
    content : dict
    """

    where: str
    content: dict[str, Any]

    def get(self, key: str, kind: type, what: str) -> Any:
        """Return a field of a type.

        Raises
        ------
        RankingError
            If it is missing or of another type; `what` describes the type.
        """
        if key not in self.content:
            raise RankingError(f"{self.where}: the field {key!r} is missing.")
        value = self.content[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise RankingError(
                f"{self.where}: {key} = {shortly(value)} but must be {what}."
            )
        return value

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; with a default, null counts as missing."""
        if default is not None and self.content.get(key) is None:
            return default
        return str(self.get(key, str, "a text"))


def read_records(path: str | os.PathLike[str]) -> list[Record]:
    """Read JSON lines, one list of objects, or one object; plain or gzip.

    Raises
    ------
    RankingError
        If it cannot be read or is no JSON in UTF-8; with file and line.
    """
    shown = str(path)
    text = read_text(shown)
    if text.lstrip()[:1] == "[":
        items = _parsed(text, shown)
        return [
            Record(f"{shown}: item {number}", _object(item, f"{shown}: item {number}"))
            for number, item in enumerate(items, 1)
        ]
    if text.lstrip()[:1] == "{" and _is_one_object(text):
        return [Record(shown, _object(_parsed(text, shown), shown))]
    records = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{shown}: line {number}"
            records.append(Record(where, _object(_parsed(line, where), where)))
    return records


def read_text(path: str) -> str:
    """Read a file in UTF-8, unpacked if it is gzip.

    Raises
    ------
    RankingError
        If it cannot be read or is no UTF-8.
    """
    return _decoded(read_whole(path, RankingError), path)


def shortly(value: object) -> str:
    """`value` as JSON, cut where it is long."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:40]}..."


def _decoded(content: bytes, shown: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise RankingError(
            f"{shown}: line {line}: 0x{content[error.start]:02x} is no UTF-8; rows are "
            "JSON or JSON lines in UTF-8."
        ) from None


def _is_one_object(text: str) -> bool:
    """Whether the text is one object that spans several lines."""
    first = text.lstrip().partition("\n")[0]
    try:
        refuse_too_many_values(text)
        json.loads(first)
    except (ValueError, RecursionError):
        try:
            return isinstance(_parsed(text, ""), dict)
        except RankingError:
            return False
    return False


def _parsed(text: str, where: str) -> Any:
    try:
        refuse_too_many_values(text)
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RankingError(f"{where} is no JSON: {error}.") from None


def _object(value: object, where: str) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise RankingError(f"{where} is {shortly(value)} but must be a JSON object.")
