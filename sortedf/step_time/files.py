"""Step times given as seconds, a preset, or a file."""

from __future__ import annotations

import json
import logging
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sortedf.atomic import atomic_path
from sortedf.errors import SortedfError
from sortedf.json_values import read_json
from sortedf.step_time.model import StepTime
from sortedf.step_time.presets import PRESETS

if TYPE_CHECKING:
    from os import PathLike

logger = logging.getLogger("sortedf")

NAMES = tuple(field.name for field in fields(StepTime))


class StepTimeError(SortedfError, ValueError):
    """A step-time file cannot be read; the message names it and what is allowed."""


def step_time_of(text: str) -> StepTime:
    """Parse a step time.

    Parameters
    ----------
    text : str
        Seconds of every step, a name in `PRESETS`, or the path of a JSON file with
        `constant_s`, `prefill_token_s`, `running_s` and `kv_token_s`.
    """
    if text in PRESETS:
        logger.warning(
            "step time %s is computed from data sheets, not measured; "
            "`sortedf calibrate` fits one to an engine's own log.",
            text,
        )
        return PRESETS[text]
    try:
        seconds = float(text)
    except ValueError:
        if Path(text).exists():
            return read_step_time(text)
        raise StepTimeError(
            f"step time {text!r} is no number of seconds, no file and no preset; "
            f"presets: {', '.join(PRESETS)}."
        ) from None
    return StepTime(seconds)


def read_step_time(path: str | PathLike[str]) -> StepTime:
    """Read a step-time file; other entries than the model's are ignored."""
    content = read_json(path, StepTimeError)
    if not isinstance(content, dict) or "constant_s" not in content:
        raise StepTimeError(
            f'{path} must be a JSON object with "constant_s" and, where they are not '
            f"0, {', '.join(NAMES[1:])}."
        )
    values = {name: content[name] for name in NAMES if name in content}
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise StepTimeError(
                f"{path}: {name} is {json.dumps(value)} but must be a number."
            )
    try:
        return StepTime(**values)
    except ValueError as error:
        raise StepTimeError(f"{path}: {error}") from None


def write_step_time(
    step_time: StepTime, path: str | PathLike[str], **extra: Any
) -> None:
    """Write a step-time file atomically; `extra` entries are ignored on reading."""
    content = {**asdict(step_time), **extra}
    with atomic_path(path) as unfinished:
        unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
