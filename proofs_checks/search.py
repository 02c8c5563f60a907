"""The deep searches, run once; what they find is kept in `found/` and checked again.

    python -m proofs_checks.search ratios|climb|anomalies|waiting

prints JSON. Seeds and limits are in here; minutes each.
"""

from __future__ import annotations

import argparse
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from proofs_checks import tiny
from sortedf import Instance

if TYPE_CHECKING:
    from collections.abc import Callable

FOUND = Path(__file__).parent / "found"

GRIDS = ((2, 6, 6), (3, 5, 5), (4, 3, 3), (4, 4, 3), (5, 2, 2), (5, 3, 2))
"""Sizes, longest prompts and longest answers of the exhaustive scans."""

KINDS = ("memory", "fewer", "shorter")
"""Kinds of anomalies: a larger budget, one request fewer, a shorter answer."""

TRIES = 2_000_000
"""Random instances of each size, from 5 to 9 requests, where the grids have none."""

Row = dict[str, Any]


def load(name: str) -> Any:
    """Read what a search has found."""
    return json.loads((FOUND / f"{name}.json").read_text(encoding="utf-8"))


def as_row(instance: Instance) -> Row:
    """Write an instance as JSON."""
    return {
        "prefill": instance.prefill.tolist(),
        "decode": instance.decode.tolist(),
        "kv_budget": instance.kv_budget,
    }


def as_instance(row: Row) -> Instance:
    """Read an instance from JSON."""
    return Instance(row["prefill"], row["decode"], row["kv_budget"])


def ratios() -> Row:
    """Worst ratio of each list rule to the optimum, over all instances of a grid."""
    rows = []
    for grid in GRIDS:
        seen, worst = tiny.scan_ratios(*grid)
        for rule, (high, low, instance) in worst.items():
            row = {"grid": list(grid), "rule": rule, "tel": high, "optimum": low}
            rows.append(row | as_row(instance))
        print(grid, seen, file=sys.stderr, flush=True)
        rows.append({"grid": list(grid), "rule": "", "instances": seen})
    return {"rows": rows}


def ratio_of(rule: str) -> Callable[[Instance], Fraction]:
    """Ratio of a rule to the optimum."""

    def ratio(instance: Instance) -> Fraction:
        least = tiny.optimum(instance)
        assert least is not None
        return Fraction(tiny.listed(instance, rule).tel, least.tel)

    return ratio


def svf_share(instance: Instance) -> Fraction:
    """SVF's ratio over its guarantee, `1 + 2 / (1 - peak / M)`."""
    alpha = Fraction(int(instance.peak.max()), instance.kv_budget)
    if alpha == 1:
        return Fraction(0)
    return ratio_of("svf")(instance) / (1 + 2 / (1 - alpha))


def climb() -> Row:
    """Hill climbing from random instances towards a large ratio, with a fixed seed."""
    goals = {
        "sorted-f": ratio_of("sorted-f"),
        "svf": ratio_of("svf"),
        "svf-guarantee": svf_share,
    }
    rows = []
    for name, goal in goals.items():
        for n, longest, tries, steps in ((4, 10, 60, 300), (5, 8, 40, 300)):
            rng = np.random.default_rng([n, longest])
            best: tuple[Fraction, Instance] | None = None
            for _ in range(tries):
                found = _climb_once(rng, goal, n, longest, steps)
                if best is None or found[0] > best[0]:
                    best = found
            assert best is not None
            ratio, instance = best
            print(name, n, float(ratio), file=sys.stderr, flush=True)
            value = {"numerator": ratio.numerator, "denominator": ratio.denominator}
            rows.append({"goal": name} | value | as_row(instance))
    return {"rows": rows}


def _climb_once(
    rng: np.random.Generator,
    goal: Callable[[Instance], Fraction],
    n: int,
    longest: int,
    steps: int,
) -> tuple[Fraction, Instance]:
    prefill, decode = rng.integers(1, longest + 1, (2, n))
    peaks = prefill + decode
    budget = int(rng.integers(peaks.max(), peaks.sum()))
    best = Instance(prefill, decode, budget)
    value = goal(best)
    for _ in range(steps):
        changed = np.stack([best.prefill, best.decode])
        for _ in range(int(rng.integers(1, 3))):
            changed[rng.integers(2), rng.integers(n)] = rng.integers(1, longest + 1)
        budget = best.kv_budget + int(rng.integers(-2, 3))
        budget = max(budget, int(changed.sum(axis=0).max()))
        tried = Instance(changed[0], changed[1], budget)
        new = goal(tried)
        if new >= value:
            best, value = tried, new
    return value, best


def anomalies() -> Row:
    """Smallest anomaly of each kind of each list rule, in growing grids."""
    grids = ((3, 3, 3), (4, 3, 3), (4, 3, 5), (4, 5, 3), (5, 2, 3))
    rows: list[Row] = []
    for rule in tiny.RULES:
        found: dict[str, Row] = {}
        for grid in grids:
            for kind, anomaly in tiny.scan_anomalies(rule, *grid).items():
                if anomaly is None or kind in found:
                    continue
                found[kind] = _anomaly_row(rule, kind, anomaly)
            if len(found) == 3:
                break
        for n in range(5, 10):
            if len(found) == 3:
                break
            for kind, anomaly in tiny.random_anomalies(rule, n, TRIES).items():
                if anomaly is not None and kind not in found:
                    found[kind] = _anomaly_row(rule, kind, anomaly)
        print(rule, sorted(found), file=sys.stderr, flush=True)
        rows += found.values()
    return {"grids": [list(grid) for grid in grids], "rows": rows}


def changed(instance: Instance, kind: str, request: int) -> Instance:
    """Relax the instance: a larger budget, one request fewer or a shorter answer."""
    if kind == "memory":
        return instance.replace(kv_budget=instance.kv_budget + 1)
    if kind == "fewer":
        keep = np.arange(instance.num_requests) != request
        return instance.subset(np.flatnonzero(keep))
    decode = instance.decode.copy()
    decode[request] -= 1
    return instance.replace(decode=decode)


def _anomaly_row(rule: str, kind: str, anomaly: tiny.Anomaly) -> Row:
    instance, request, before, after = anomaly
    row = {"rule": rule, "kind": kind, "request": request}
    return row | {"before": before, "after": after} | as_row(instance)


def waiting() -> Row:
    """Smallest instance that no sequence of earliest starts solves."""
    looked_at: list[Row] = []
    for grid in ((2, 8, 8), (3, 6, 6), (3, 5, 7)):
        seen, instance = tiny.scan_waiting(*grid)
        if instance is not None:
            return {"without": looked_at, "grid": list(grid)} | as_row(instance)
        looked_at.append({"grid": list(grid), "instances": seen})
    return {"without": looked_at}


def main(arguments: list[str] | None = None) -> None:
    """Run one search and print what it finds."""
    searches = {f.__name__: f for f in (ratios, climb, anomalies, waiting)}
    parser = argparse.ArgumentParser(
        prog="python -m proofs_checks.search",
        description="A deep search again, for minutes; prints JSON.",
    )
    parser.add_argument("search", choices=searches)
    print(json.dumps(searches[parser.parse_args(arguments).search]()))


if __name__ == "__main__":
    main()
