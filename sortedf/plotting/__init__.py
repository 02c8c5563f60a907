"""Plots of schedules, with matplotlib (the extra `plot`).

Importing this package loads no matplotlib; drawing does.
"""

from sortedf.plotting.completions import plot_completions
from sortedf.plotting.files import plot_format, save
from sortedf.plotting.gantt import plot_schedule

__all__ = ["plot_completions", "plot_format", "plot_schedule", "save"]
