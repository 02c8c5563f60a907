"""`python -m benchmarks [NAME ...]`: run benchmarks and write their pages."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from benchmarks import (
    batch,
    batch_kills,
    bound_check,
    dual_bound,
    engine,
    exact_rivals,
    fuzz,
    group_quality,
    latency,
    online_amin,
    online_load,
    online_tails,
    quality,
    scheduler_cost,
    simulator_speed,
    speed,
    strengthening,
)
from benchmarks.data import MissingDataError
from benchmarks.environment import environment
from benchmarks.registry import SPECS, Row, Settings, Spec
from sortedf.atomic import atomic_path
from sortedf.errors import MissingExtraError
from sortedf.plotting import save
from sortedf.plotting.canvas import settle

MODULES = (
    latency, quality, exact_rivals, group_quality, dual_bound, strengthening,
    bound_check, speed, fuzz, engine, scheduler_cost, online_load, online_tails,
    online_amin, simulator_speed, batch, batch_kills,
)  # fmt: skip
"""Imported for their specs."""

DEFAULT_DATA = os.environ.get("SORTEDF_DATA", "../shared/data")


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen benchmarks; return 1 if none could run for want of data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SPECS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, a dry run")
    parser.add_argument("--data", type=Path, default=Path(DEFAULT_DATA))
    parser.add_argument("--results", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(SPECS)
    if unknown:
        parser.error(f"unknown {sorted(unknown)}; choose from {', '.join(SPECS)}")
    settings = Settings(options.quick, options.data)
    options.results.mkdir(parents=True, exist_ok=True)
    done = 0
    for name in options.names or SPECS:
        done += _run(name, SPECS[name], settings, options.results)
    return 0 if done else 1


def _run(name: str, spec: Spec, settings: Settings, results: Path) -> bool:
    print(f"== {name}: {spec.title}", file=sys.stderr, flush=True)
    facts = environment()
    began = time.perf_counter()
    try:
        rows = spec.run(settings)
    except MissingDataError as error:
        print(f"   skipped: {error}", file=sys.stderr)
        return False
    facts["benchmark_s"] = round(time.perf_counter() - began, 1)
    lines = [f"{json.dumps(row)}\n" for row in (facts, *rows)]
    _write(results / f"{name}.jsonl", "".join(lines))
    plots = _plot(name, spec, rows, results)
    _write(results / f"{name}.md", _page(name, spec, facts, rows, settings, plots))
    print(f"   {facts['benchmark_s']} s", file=sys.stderr)
    return True


def _plot(name: str, spec: Spec, rows: list[Row], results: Path) -> list[str]:
    """Draw the figures beside the page; return their file names."""
    if spec.figures is None:
        return []
    try:
        figures = spec.figures(rows)
    except MissingExtraError as error:
        print(f"   no figures: {error}", file=sys.stderr)
        return []
    for key, figure in figures.items():
        settle(figure)
        save(figure, results / f"{name}_{key}.png")
    return [f"{name}_{key}.png" for key in figures]


def _page(
    name: str,
    spec: Spec,
    facts: Row,
    rows: list[Row],
    settings: Settings,
    plots: list[str],
) -> str:
    quick = " --quick" if settings.quick else ""
    lines = [f"# {spec.title}", f"`python -m benchmarks {name}{quick}`"]
    if settings.quick:
        lines.append("A dry run at tiny sizes: these figures mean nothing.")
    lines.append(spec.page(rows))
    lines += [f"![{plot}]({plot})" for plot in plots]
    listed = ", ".join(f"{key} {value}" for key, value in facts.items())
    lines.append(f"Raw rows: `{name}.jsonl`. Made with {listed}.")
    return "\n\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    with atomic_path(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
