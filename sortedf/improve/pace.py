"""Prediction of the time of the next beam search from the previous ones."""

from __future__ import annotations

FIRST_SHARE = 0.5
"""Share of the first beam's time that is assumed not to depend on the width.

Correct for 100,000 requests, where there are few rounds; for few requests it is less.
"""


class Pace:
    """Seconds of a beam search: a constant and a term for each row.

    Rows are the partial schedules times their extensions.
    """

    def __init__(self) -> None:
        self._fixed_s = self._row_s = 0.0
        self._last: tuple[int, float] | None = None

    def learn(self, rows: int, took_s: float) -> None:
        """Record the seconds of a beam of so many rows."""
        if self._last is None:
            self._fixed_s = FIRST_SHARE * took_s
            self._row_s = (took_s - self._fixed_s) / rows
        elif rows > self._last[0] and took_s > self._last[1]:
            more_s = (took_s - self._last[1]) / (rows - self._last[0])
            self._row_s = min(more_s, took_s / rows)
            self._fixed_s = took_s - self._row_s * rows
        else:
            slower = took_s / max(self.seconds(rows), 1e-9)
            self._fixed_s *= slower
            self._row_s *= slower
        self._last = rows, took_s

    def seconds(self, rows: int) -> float:
        """Predict the seconds of a beam of so many rows; 0 before the first."""
        return self._fixed_s + rows * self._row_s
