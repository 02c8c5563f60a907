"""`python -m benchmarks [NAME ...]`: run benchmarks and write their pages."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from benchmarks.common.data import MissingDataError
from benchmarks.common.environment import environment, has_uncommitted_changes
from benchmarks.common.journal import read_kept, unfinished
from benchmarks.common.registry import Row, Settings, Spec, discover
from sortedf.atomic import atomic_path
from sortedf.errors import MissingExtraError
from sortedf.plotting import save
from sortedf.plotting.canvas import settle

SPECS = discover()
"""Every benchmark by name."""

DEFAULT_DATA = os.environ.get("SORTEDF_DATA", "../shared/data")


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen benchmarks; return 1 if none could run for want of data."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SPECS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, a dry run")
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the benchmarks and the duration of the last pass of each; one that "
        "was killed and resumed took longer in all",
    )
    parser.add_argument(
        "--pages", action="store_true", help="lay out pages of kept rows again"
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(DEFAULT_DATA),
        metavar="FOLDER",
        help="real requests: traces/NAME.csv.gz with arrival_s, prefill_tokens and "
        "decode_tokens, pairs/NAME.jsonl.gz with prompt, model and response_tokens; "
        "the README says where they come from; default: $SORTEDF_DATA, else "
        "../shared/data",
    )
    parser.add_argument(
        "--results",
        type=Path,
        default=Path("benchmarks/results"),
        metavar="FOLDER",
        help="where pages and rows are kept; default: benchmarks/results",
    )
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(SPECS)
    if unknown:
        parser.error(f"unknown {sorted(unknown)}; choose from {', '.join(SPECS)}")
    names = options.names or list(SPECS)
    if options.list:
        _list(names, options.results)
        return 0
    settings = Settings(options.quick, options.data, options.results)
    if options.pages:
        kept = [name for name in names if (options.results / f"{name}.jsonl").is_file()]
        for name in kept:
            facts, rows = read_kept(options.results / f"{name}.jsonl")
            _keep(name, SPECS[name], facts, rows, settings)
        return 0 if kept else 1
    options.results.mkdir(parents=True, exist_ok=True)
    if has_uncommitted_changes():
        print(
            "warning: the working tree has uncommitted changes, so that the commit on "
            "the pages is not the code that was run.",
            file=sys.stderr,
        )
    began = time.perf_counter()
    done = sum(_run(name, SPECS[name], settings) for name in names)
    minutes = (time.perf_counter() - began) / 60
    print(f"== {done} of {len(names)} in {minutes:.1f} minutes", file=sys.stderr)
    return 0 if done else 1


def _list(names: list[str], results: Path) -> None:
    """Print each benchmark with the seconds of the pass that wrote its page."""
    known = 0.0
    for name in names:
        path = results / f"{name}.jsonl"
        seconds = "not run yet"
        if path.is_file():
            facts = read_kept(path)[0]
            known += facts["benchmark_s"]
            more = "+" if facts.get("resumed") else ""
            seconds = f"{facts['benchmark_s']:,.0f}{more} s"
        print(f"{name:18} {seconds:>12}  {SPECS[name].title}")
    print(f"{'together':18} {known:>10,.0f} s  for the last pass of each that was run")


def _run(name: str, spec: Spec, settings: Settings) -> bool:
    print(f"== {name}: {spec.title}", file=sys.stderr, flush=True)
    facts = environment()
    if not settings.quick and unfinished(name, settings.results).is_file():
        facts["resumed"] = True  # its time is that of the rows that were missing
    began = time.perf_counter()
    try:
        rows = spec.run(settings)
    except MissingDataError as error:
        print(f"   skipped: {error}", file=sys.stderr)
        return False
    facts["benchmark_s"] = round(time.perf_counter() - began, 1)
    results = settings.results
    lines = [f"{json.dumps(row)}\n" for row in (facts, *rows)]
    _write(results / f"{name}.jsonl", "".join(lines))
    _keep(name, spec, facts, rows, settings)
    unfinished(name, results).unlink(missing_ok=True)
    print(f"   {facts['benchmark_s']} s", file=sys.stderr)
    return True


def _keep(
    name: str, spec: Spec, facts: Row, rows: list[Row], settings: Settings
) -> None:
    """Draw a benchmark's pictures and write its page."""
    plots = _plot(name, spec, rows, settings.results)
    text = lay_out(name, spec, facts, rows, plots, quick=settings.quick)
    _write(settings.results / f"{name}.md", text)


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


def lay_out(
    name: str, spec: Spec, facts: Row, rows: list[Row], plots: list[str], *, quick: bool
) -> str:
    """Lay out a benchmark's page in Markdown."""
    dry = " --quick" if quick else ""
    lines = [f"# {spec.title}", f"`python -m benchmarks {name}{dry}`"]
    if quick:
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
