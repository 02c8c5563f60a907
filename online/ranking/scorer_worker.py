"""The scoring process, started from this file.

Reads pickles from standard input: the import path and the function that creates the
scorer, then batches of prompts. Writes pickles to the original standard output: the
error of creating the scorer, or None; then one answer per prompt, a rating or a reason.
Ends with its input.
"""

from __future__ import annotations

import math
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeAlias

Prompt: TypeAlias = str | Sequence[int]
"""A text, or its token ids in the engine."""

Rating: TypeAlias = tuple[float, float | None]
"""A score, lower first, and the expected answer length, if known."""

Rate: TypeAlias = Callable[[list[Prompt]], Sequence[Rating]]
"""Rates prompts, one rating each."""

NICE = 10
"""Niceness of the scorer relative to the engine."""


def main() -> None:
    """Serve until the input ends."""
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # Output of libraries must not mix with the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lower_priority()
    try:
        serve(questions, answers)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return


def lower_priority() -> None:
    """Run at low priority, on any core."""
    os.nice(NICE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Create the scorer and score batches of prompts."""
    path, pickled = pickle.load(questions)
    sys.path[:] = path
    try:
        rate: Rate = pickle.loads(pickled)()
    except Exception as error:
        _write(answers, _reason(error))
        return
    _write(answers, None)
    while True:
        _write(answers, rate_each(rate, pickle.load(questions)))


def rate_each(rate: Rate, prompts: list[Prompt]) -> list[Rating | str]:
    """Score prompts together or, if that fails, one by one."""
    try:
        ratings = rate(prompts)
        if len(ratings) != len(prompts):
            raise ValueError(f"{len(ratings)} ratings of {len(prompts)} prompts")
        return [_checked(*rating) for rating in ratings]
    except Exception as error:
        if len(prompts) == 1:
            return [_reason(error)]
        return [answer for prompt in prompts for answer in rate_each(rate, [prompt])]


def _checked(score: float, length: float | None) -> Rating:
    for value in (score, length):
        if value is not None and not math.isfinite(value):
            raise ValueError(f"its score or length is {value}")
    return float(score), None if length is None else float(length)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(".")


def _write(answers: IO[bytes], content: Any) -> None:
    pickle.dump(content, answers)
    answers.flush()


if __name__ == "__main__":
    main()
