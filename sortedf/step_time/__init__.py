"""Duration of a step in seconds: the model, its files and its presets."""

from sortedf.step_time.files import (
    StepTimeError,
    read_step_time,
    step_time_of,
    write_step_time,
)
from sortedf.step_time.model import UNIT_STEPS, StepTime
from sortedf.step_time.presets import PRESETS

__all__ = [
    "PRESETS",
    "UNIT_STEPS",
    "StepTime",
    "StepTimeError",
    "read_step_time",
    "step_time_of",
    "write_step_time",
]
