"""Step times of a real engine, measured while it serves."""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np

from online.calibration import COUNTS, StepSamples, robust_step_time
from sortedf.step_time import UNIT_STEPS, StepTime

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger("sortedf")

WARM_UP = 8
"""Steps that are not counted: the first ones of an engine compile or allocate."""

FIRST = 16
"""Steps after which a model is fitted first; then after twice as many, and so on."""

KEPT = 512
"""Latest steps with prompt tokens, and latest ones without, to which it is fitted."""

RARELY = 8192
"""Steps after which it is fitted again, at most."""

QUIET_EVERY = 8
"""Every so many quiet steps one is counted."""

CLOSE = 0.1
"""Relative difference up to which the policy keeps the model that it has."""


class StepMeter:
    """Measures steps and fits the model of their duration.

    A step lasts from the end of the one before it to its own end, as clients see it,
    whether the engine works on one step at a time or on two. Time without a running
    request is not counted.

    Parameters
    ----------
    clock : callable
        Returns the time in seconds.
    given : StepTime, optional
        Used as it is; otherwise the model is fitted, and until then a step takes 1 s.
    full_kv : int
        Tokens of KV that the engine can hold.
    log : text file, optional
        Gets a line for each step, as `sortedf calibrate` reads it.
    show : callable, optional
        Called with each new model and the number of steps behind it.

    Attributes
    ----------
    step_time : StepTime
        The model to use.
    num_steps : int
        Steps measured so far.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        given: StepTime | None,
        full_kv: int,
        *,
        log: TextIO | None = None,
        show: Callable[[StepTime, int], None] | None = None,
    ) -> None:
        self.step_time = given or UNIT_STEPS
        self.num_steps = 0
        self._asked = 0
        self._fits = given is None
        self._clock = clock
        self._full: tuple[int, int, int] = (0, 0, full_kv)
        self._log = log
        self._show = show
        self._began_s = math.nan  # not while the engine is idle
        self._under_way: deque[tuple[int, int, int] | None] = deque()
        kept = (deque[tuple[float, ...]](maxlen=KEPT) for _ in range(2))
        self._decoding, self._with_prompts = kept
        self._next_fit = WARM_UP + FIRST

    @property
    def is_on(self) -> bool:
        """Whether steps are to be measured."""
        return self._fits or self._log is not None

    def wants(self, *, quiet: bool) -> bool:
        """Whether to count the next step's tokens.

        Of quiet steps, in which each request makes one token, a few are enough.
        """
        self._asked += 1
        return (
            not quiet
            or self._log is not None
            or self.num_steps < WARM_UP + FIRST
            or self._asked % QUIET_EVERY == 0
        )

    def begin(self) -> None:
        """Enter that a step is going to be planned."""
        if math.isnan(self._began_s):
            self._began_s = self._clock()

    def planned(self, counts: tuple[int, int, int] | None) -> None:
        """Enter a step: its prompt tokens, decoding requests and tokens of KV.

        None for a step without tokens.
        """
        self._under_way.append(counts)

    def done(self, *, busy: bool) -> bool:
        """Enter the end of the earliest step under way.

        Parameters
        ----------
        busy : bool
            Whether requests are running.

        Returns
        -------
        bool
            Whether the model has changed.
        """
        if not self._under_way:  # planned before this meter was there
            return False
        end_s = self._clock()
        took_s, self._began_s = end_s - self._began_s, end_s if busy else math.nan
        counts = self._under_way.popleft()
        if counts is None or not took_s > 0:
            return False
        self._write(counts, took_s)
        self.num_steps += 1
        if not self._fits or self.num_steps <= WARM_UP:
            return False
        kept = self._with_prompts if counts[0] else self._decoding
        kept.append((took_s, *counts))
        return self.num_steps >= self._next_fit and self._fit()

    def _fit(self) -> bool:
        """Fit the model; return whether the policy needs the new one."""
        self._next_fit = self.num_steps + min(self.num_steps, RARELY)
        rows = np.array([*self._decoding, *self._with_prompts])
        samples = StepSamples(rows[:, 0], rows[:, 1:])
        new, old = robust_step_time(samples), self.step_time
        counts = [*rows[:, 1:].tolist(), self._full]
        before, after = (
            np.array([time.seconds(*each) for each in counts]) for time in (old, new)
        )
        off = np.abs(after - before)
        if off.sum() <= CLOSE * before.sum() and off[-1] <= CLOSE * before[-1]:
            return False
        self.step_time = new
        if self._show is not None:
            self._show(new, self.num_steps)
        return True

    def _write(self, counts: tuple[int, int, int], took_s: float) -> None:
        if self._log is None:
            return
        line = {"kind": "step", **dict(zip(COUNTS, counts, strict=True))}
        try:
            self._log.write(json.dumps({**line, "duration_s": took_s}) + "\n")
        except OSError as error:  # a full disk must not stop a server
            logger.warning("the step log ends here: %s.", error)
            self._log = None


def open_step_log(path: str | None) -> TextIO | None:
    """Open a new step log, if one is wanted; each line is written at once."""
    if path is None:
        return None
    try:
        return Path(path).open("w", encoding="utf-8", buffering=1)
    except OSError as error:
        raise ValueError(f"step_log: {error}.") from None


def shown_step_time(step_time: StepTime, num_steps: int) -> str:
    """One line about a measured model, for an engine's log."""
    values = ", ".join(
        f"{name} {value:.3g}" for name, value in asdict(step_time).items()
    )
    return f"step time measured in {num_steps} steps: {values}"
