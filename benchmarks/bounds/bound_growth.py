"""How the time of the dual bound grows with the number of requests."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import mix
from benchmarks.common.journal import Journal
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import bound

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

SIZES = (500, 1000, 2000, 5000, 12_000, 30_000, 100_000)

LIMIT_S = 60.0
"""Seconds for the ascent; its last value is the limit that others are compared with."""

NEAR = 0.999
"""Share of its last value at which the bound counts as converged."""

KINDS = {
    "fluid_s": "fluid bound",
    "start_s": "dual bound at the start prices",
    "near_s": f"dual bound within {1 - NEAR:.1%} of its last value",
}


def run(settings: Settings) -> list[Row]:
    """Time each part on the 80/20 mix, smallest first."""
    for name in ("fluid", "dual"):  # compile and load first
        bound(mix(settings.data, 60, 0.2, 1), name)
    journal = Journal("bound_growth", settings)
    sizes = (50, 100) if settings.quick else SIZES
    limit_s = 0.5 if settings.quick else LIMIT_S
    return [
        journal.row(f"n = {n:,}", partial(_row, settings.data, n, limit_s))
        for n in sizes
    ]


def _row(data: Path, n: int, limit_s: float) -> Row:
    instance = mix(data, n, 0.2, 1)
    fluid = bound(instance, "fluid")
    start = bound(instance, "dual", time_limit=0)
    history: list[tuple[float, int]] = []
    began = time.perf_counter()

    def note(value: int, _: int) -> None:
        history.append((time.perf_counter() - began, value))

    last = bound(instance, "dual", time_limit=limit_s, progress=note)
    near = next(seconds for seconds, value in history if value >= NEAR * last.value)
    return {
        "n": n,
        "fluid": fluid.value,
        "fluid_s": fluid.runtime_s,
        "start": start.value,
        "start_s": start.runtime_s,
        "near_s": near,
        "last": last.value,
        "last_s": last.runtime_s,
    }


def exponent(rows: list[Row], kind: str) -> float:
    """Slope of log time over log n, by least squares."""
    sizes = np.log([row["n"] for row in rows])
    slope: float = np.polyfit(sizes, np.log([row[kind] for row in rows]), 1)[0]
    return slope


def page(rows: list[Row]) -> str:
    """Lay out times, tightness and the exponents of the fit."""
    table = [
        [
            f"{row['n']:,}",
            *(f"{row[kind]:.3f}" for kind in KINDS),
            f"{row['last_s']:.1f}",
            f"{1 - row['fluid'] / row['last']:.3%}",
            f"{1 - row['start'] / row['last']:.3%}",
        ]
        for row in rows
    ]
    columns = ["n", "fluid s", "start s", f"within {1 - NEAR:.1%} s", "whole s"]
    columns += ["fluid below last", "start below last"]
    fits = "; ".join(
        f"{label}: n^{exponent(rows, kind):.2f}" for kind, label in KINDS.items()
    )
    text = (
        "80/20 mix, M = 16,492, backlog, one seed. The ascent is stopped after "
        f"{LIMIT_S:g} s; at sizes where requests times steps exceed `lp.dual.HUGE` "
        "there is none, and the start prices are all.\n\n"
        f"Fitted growth over all sizes: {fits}."
    )
    return "\n\n".join([text, markdown_table(columns, table)])


def figures(rows: list[Row]) -> dict[str, Figure]:
    """Plot seconds over requests, both logarithmic."""
    from sortedf.plotting.canvas import new_figure, tidy

    figure = new_figure("Time of the bounds, 80/20 mix, M = 16,492")
    axes = figure.subplots()
    sizes = [row["n"] for row in rows]
    for kind, label in KINDS.items():
        fit = f"{label}, n^{exponent(rows, kind):.2f}"
        axes.plot(sizes, [row[kind] for row in rows], marker="o", label=fit)
    axes.set(xlabel="requests", ylabel="seconds", xscale="log", yscale="log")
    axes.legend()
    tidy(axes)
    return {"time": figure}


SPEC = Spec("Time of the dual bound by size", run, page, figures, needs=("data",))
