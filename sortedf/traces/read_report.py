"""Report of what was read from a file of requests, for people to check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TIME = re.compile(
    r"(^|[^a-z])(time|date|clock|created|arriv\w*|start(ed)?|submit(ted)?|ts)"
    r"([^a-z]|$)|timestamp|datetime|_at$|time_?(ns|us|ms|s)?$"
)
_NO_ARRIVAL = re.compile(
    r"first|end|finish|complet|duration|latency|elapsed|ttft|tpot|itl|tbt|process|"
    r"runtime|updated|taken|(?<!en)queue|zone|response_time|lifetime|time_to|per_"
)


@dataclass(frozen=True, slots=True)
class ReadReport:
    """What was read from a file.

    Attributes
    ----------
    format : str
    columns : mapping of str to str
        Name in the file of `prefill`, `decode` and, if there are times, `arrival`.
    time_unit : str
        Unit of the times: s, ms, us, ns or date; "" without times.
    guess : str
        Why the unit was chosen, if another one is possible.
    unused_times : tuple of str
        Columns that look like arrival times, if none was used.
    """

    format: str
    columns: Mapping[str, str]
    time_unit: str
    guess: str
    unused_times: tuple[str, ...]

    def warnings(self) -> list[str]:
        """Return what a person should check, one sentence each."""
        found = []
        if self.guess:
            found.append(
                f"times in {self.columns['arrival']} are taken as {self.time_unit} "
                f"({self.guess}); --time-unit says otherwise."
            )
        if self.unused_times:
            names = ", ".join(self.unused_times)
            found.append(
                f"{names} looks like times but is not used, so that all requests "
                f"arrive at 0; --columns arrival={self.unused_times[0]} uses it."
            )
        return found


def columns_like_times(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names that look like those of arrival times."""
    plain = {name: re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name) for name in names}
    return tuple(
        name
        for name, text in plain.items()
        if _TIME.search(text.casefold()) and not _NO_ARRIVAL.search(text.casefold())
    )
