"""JSON objects of a file with their locations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from online.ranking.ranking_error import RankingError
from sortedf.json_values import json_lines, parse_json, read_text, require_object
from sortedf.shown import shown_json

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
                f"{self.where}: {key} = {shown_json(value)} but must be {what}."
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
    text = read_text(shown, RankingError)
    if text.lstrip()[:1] == "[":
        items = parse_json(text, shown, RankingError)
        return [_record(f"{shown}: item {n}", item) for n, item in enumerate(items, 1)]
    if text.lstrip()[:1] == "{" and _is_one_object(text):
        return [_record(shown, parse_json(text, shown, RankingError))]
    lines = json_lines(text.split("\n"), shown, RankingError)
    return [Record(f"{shown}: line {number}", row) for number, row in lines]


def _is_one_object(text: str) -> bool:
    """Whether the text is one object that spans several lines."""
    first = text.lstrip().partition("\n")[0]
    try:
        parse_json(first, "", RankingError)
    except RankingError:
        try:
            return isinstance(parse_json(text, "", RankingError), dict)
        except RankingError:
            return False
    return False


def _record(where: str, value: object) -> Record:
    return Record(where, require_object(value, where, RankingError))
