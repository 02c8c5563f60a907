"""Plots of online runs, with matplotlib (the extra `plot`).

Importing this package loads no matplotlib; drawing does.
"""

from online.plots.against_load import plot_load
from online.plots.distributions import plot_cdfs, plot_slo
from online.plots.tail import plot_gamma
from online.plots.timeline import plot_timeline

__all__ = ["plot_cdfs", "plot_gamma", "plot_load", "plot_slo", "plot_timeline"]
