"""The process in which scores are computed, started from this file.

Reads pickles from standard input: what to import from and how to make the scorer, then
prompts by batches. Writes pickles to what was standard output: what went wrong when the
scorer was made, or None; then one answer per prompt, a rating or a reason. Ends with
its input.
"""

from __future__ import annotations

import math
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from typing import IO, Any, TypeAlias

Prompt: TypeAlias = str | Sequence[int]
"""A text, or the token ids that an engine has of it."""

Rating: TypeAlias = tuple[float, float | None]
"""A score, lower first, and the answer length that goes with it, if that is known."""

Rate: TypeAlias = Callable[[list[Prompt]], Sequence[Rating]]
"""Rates prompts, one rating each."""

NICE = 10
"""How much the engine goes before the scorer."""


def main() -> None:
    """Answer until there are no more questions."""
    questions = sys.stdin.buffer
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What a library prints must not get between the answers.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    stand_back()
    try:
        serve(questions, answers)
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        return


def stand_back() -> None:
    """Run at low priority, on any core."""
    os.nice(NICE)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))


def serve(questions: IO[bytes], answers: IO[bytes]) -> None:
    """Make the scorer and rate batches of prompts."""
    path, made = pickle.load(questions)
    sys.path[:] = path
    try:
        rate: Rate = pickle.loads(made)()
    except Exception as error:
        _write(answers, _reason(error))
        return
    _write(answers, None)
    while True:
        _write(answers, rate_each(rate, pickle.load(questions)))


def rate_each(rate: Rate, prompts: list[Prompt]) -> list[Rating | str]:
    """Rate prompts together or, if one of them fails, each by itself."""
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
