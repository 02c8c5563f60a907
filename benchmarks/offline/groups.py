"""Group selection: exactness and speed of exact groups, and the loss of the others."""

from __future__ import annotations

import time
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.common.data import MIXES
from benchmarks.common.registry import Row, Settings, Spec, markdown_table
from sortedf import Instance, solve
from sortedf.groups import (
    CoStart,
    Exact,
    Pool,
    exact_dp,
    local_swap,
    quantile_greedy,
)
from sortedf.groups.pool import group_key
from sortedf.options import Options
from tests import naive

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from sortedf.groups import Selector

    Ints = NDArray[np.int64]

RIVALS = ("exact", "local-swap", "quantile-greedy")
"""Selectors that are measured against `exact-dp`."""

MIX_NAMES = ("80/20", "50/50", "95/5")


def run(settings: Settings) -> list[Row]:
    """Run all four parts; each row names its part."""
    return [
        _brute_force(settings.pick(5000, 50)),
        *_families(settings.pick(1000, 5)),
        *_against_dp(settings),
        *_orders(settings),
        *_co_start(settings),
    ]


def _brute_force(count: int) -> Row:
    """Compare exact-dp with all subsets, n <= 8, ids and ties included."""
    rng = np.random.default_rng(0)
    equal = 0
    for _ in range(count):
        n = int(rng.integers(1, 9))
        longest = int(rng.integers(2, 30))
        s, o = rng.integers(1, longest, (2, n))
        budget = int(rng.integers(2 * longest, 4 * longest))
        instance = Instance(s, o, budget)
        pool = Pool.of(instance)
        group = sorted(pool.ids[exact_dp(pool, rng)].tolist())
        equal += group == naive.best_group(instance, list(range(n)))
    return {"part": "brute force", "instances": count, "equal": equal}


def _subset_sums(rng: np.random.Generator, n: int) -> tuple[Ints, Ints]:
    peak = 200 + 6 * rng.integers(0, 30, n)
    return 2 * peak - 390, 390 - peak


FAMILIES: dict[str, Callable[[np.random.Generator, int], tuple[Ints, Ints]]] = {
    "independent": lambda rng, n: (rng.integers(1, 200, n), rng.integers(1, 200, n)),
    "small lengths": lambda rng, n: (rng.integers(1, 5, n), rng.integers(1, 5, n)),
    "few kinds": lambda rng, n: (rng.choice([5, 90], n), rng.choice([3, 20, 150], n)),
    "all equal": lambda rng, n: (np.full(n, 20), np.full(n, 7)),
    "equal answers": lambda rng, n: (rng.integers(1, 300, n), np.full(n, 9)),
    "subset sums": _subset_sums,
    "one dominates": lambda rng, n: (
        np.append(rng.integers(1, 20, n - 1), 1500),
        rng.integers(1, 40, n),
    ),
}
"""Prompts and answers of instances that are hard in different ways."""


def _families(count: int) -> list[Row]:
    """Compare exact with exact-dp on instances with n <= 100, ids included."""
    rows = []
    for family, draw in FAMILIES.items():
        rng = np.random.default_rng(0)
        equal = 0
        for _ in range(count):
            s, o = draw(rng, int(rng.integers(2, 101)))
            largest = int((s + o).max())
            # From just above the largest peak to where everything may fit.
            instance = Instance(s, o, largest + int(rng.integers(0, 1500)))
            pool = Pool.of(instance)
            group = Exact(Options())(pool, rng)
            equal += group.tolist() == exact_dp(pool, rng).tolist()
        rows.append(
            {"part": "families", "family": family, "instances": count, "equal": equal}
        )
    return rows


def _against_dp(settings: Settings) -> list[Row]:
    """Compare group by group on the pools that remain under exact selection."""
    rows: list[Row] = []
    for mix in MIX_NAMES:
        for seed in range(settings.pick(30, 1)):
            instance = MIXES[mix](settings.data, settings.pick(100, 20), seed)
            for row in _group_rows(instance):
                rows.append({"part": "against dp", "mix": mix, "seed": seed, **row})
    return rows


def _group_rows(instance: Instance) -> list[Row]:
    pool = Pool.of(instance)
    rng = np.random.default_rng(0)
    selectors: dict[str, Selector] = {
        "exact": Exact(Options()),
        "local-swap": local_swap,
        "quantile-greedy": quantile_greedy,
    }
    rows = []
    while len(pool.ids):
        group, seconds = _timed(exact_dp, pool, rng)
        best = group_key(pool, group)
        row: Row = {"pool": len(pool.ids), "f_exact": best[0], "exact-dp_s": seconds}
        for name, select in selectors.items():
            other, row[f"{name}_s"] = _timed(select, pool, rng)
            row[name] = group_key(pool, other)[0] / best[0]
            if group_key(pool, other) < best:
                raise RuntimeError(f"{name} beats exact-dp on {instance}")
            if name == "exact" and other.tolist() != group.tolist():
                raise RuntimeError(f"exact differs from exact-dp on {instance}")
        rows.append(row)
        pool = pool.without(group)
    return rows


def _timed(
    select: Selector, pool: Pool, rng: np.random.Generator
) -> tuple[Ints, float]:
    began = time.perf_counter()
    group = select(pool, rng)
    return group, time.perf_counter() - began


def _orders(settings: Settings) -> list[Row]:
    """Time every group of whole exact orders."""
    cases = [(mix, settings.pick(2000, 60), 3) for mix in MIX_NAMES]
    cases.append(("80/20", settings.pick(20_000, 80), 1))
    rows: list[Row] = []
    for mix, n, seeds in cases:
        for seed in range(seeds):
            pool = Pool.of(MIXES[mix](settings.data, n, seed))
            rng = np.random.default_rng(0)
            select = Exact(Options())
            times = []
            while len(pool.ids):
                group, seconds = _timed(select, pool, rng)
                times.append(seconds)
                pool = pool.without(group)
            rows.append(
                {"part": "orders", "mix": mix, "n": n, "seed": seed, "all_s": times}
            )
    return rows


def _co_start(settings: Settings) -> list[Row]:
    """Compare groups that can start together with groups by peaks: F and TEL."""
    rows: list[Row] = []
    n = settings.pick(2000, 60)
    for mix in MIX_NAMES:
        for seed in range(3):
            instance = MIXES[mix](settings.data, n, seed)
            row: Row = {"part": "co-start", "mix": mix, "seed": seed}
            row["f"] = _co_start_ratios(instance)
            for window in (0, 20):
                tel = [
                    solve(instance, name, backfill=window, bound="none").tel
                    for name in ("sorted-f-co-start", "exact")
                ]
                row[f"tel_{window}"] = tel[0] / tel[1]
            rows.append(row)
    return rows


def _co_start_ratios(instance: Instance) -> list[float]:
    """F of each group that can start together over the best F by peaks in its pool."""
    pool = Pool.of(instance)
    rng = np.random.default_rng(0)
    select, by_peaks = CoStart(Options()), Exact(Options())
    ratios = []
    while len(pool.ids):
        group = select(pool, rng)
        best = by_peaks(pool, rng)
        ratios.append(group_key(pool, group)[0] / group_key(pool, best)[0])
        pool = pool.without(group)
    return ratios


def page(rows: list[Row]) -> str:
    """Equality first, then losses, times and the effect of co-start."""

    def part(name: str) -> list[Row]:
        return [row for row in rows if row["part"] == name]

    (brute,) = part("brute force")
    families = part("families")
    return "\n\n".join(
        [
            f"`exact-dp` equals brute force over all subsets, ties included, on "
            f"{brute['equal']:,} of {brute['instances']:,} random instances with "
            "n <= 8. `exact` gives the very group of `exact-dp`, ids included, on "
            f"{sum(row['equal'] for row in families):,} of "
            f"{sum(row['instances'] for row in families):,} instances with n <= 100 "
            "and on every pool of the second table.",
            _family_table(families),
            "F of the group over F of the one of `exact-dp`, on the pools that exact "
            "selection leaves; n = 100, M = 16,492; never below 1.",
            _ratio_table(part("against dp")),
            "Time of one exact group, and of all groups of an order.",
            _order_table(part("orders")),
            "`sorted-f-co-start` against `exact`: F of each group over the best F by "
            "peaks in the same pool (a heuristic group, never above 1), and TEL of the "
            "whole schedule, with the papers' placement and with backfill 20.",
            _co_start_table(part("co-start")),
        ]
    )


def _family_table(rows: list[Row]) -> str:
    table = [
        [row["family"], f"{row['equal']:,} of {row['instances']:,}"] for row in rows
    ]
    return markdown_table(["instances", "equal to exact-dp"], table)


def _ratio_table(rows: list[Row]) -> str:
    table = []
    for mix in MIX_NAMES:
        here = [row for row in rows if row["mix"] == mix]
        for name in RIVALS:
            ratios = [row[name] for row in here]
            best = sum(ratio == 1 for ratio in ratios) / len(ratios)
            table.append(
                [
                    mix,
                    name,
                    f"{len(ratios):,}",
                    f"{best:.0%}",
                    f"{median(ratios):.4f}",
                    f"{max(ratios):.4f}",
                    f"{median(row[f'{name}_s'] for row in here) * 1e3:.2f}",
                    f"{median(row['exact-dp_s'] for row in here) * 1e3:.1f}",
                ]
            )
    columns = ["mix", "selector", "groups", "optimal", "median F ratio"]
    columns += ["worst F ratio", "ms a group", "ms a group, exact-dp"]
    return markdown_table(columns, table)


def _order_table(rows: list[Row]) -> str:
    table = [
        [
            row["mix"],
            f"{row['n']:,}",
            str(row["seed"]),
            f"{len(row['all_s']):,}",
            f"{median(row['all_s']) * 1e3:.1f}",
            f"{max(row['all_s']) * 1e3:.1f}",
            f"{sum(row['all_s']):.2f}",
        ]
        for row in rows
    ]
    columns = ["mix", "n", "seed", "groups", "median ms", "worst ms", "order s"]
    return markdown_table(columns, table)


def _co_start_table(rows: list[Row]) -> str:
    table = []
    for mix in MIX_NAMES:
        here = [row for row in rows if row["mix"] == mix]
        ratios = [ratio for row in here for ratio in row["f"]]
        table.append(
            [
                mix,
                f"{len(ratios):,}",
                f"{sum(ratio < 1 for ratio in ratios) / len(ratios):.0%}",
                f"{median(ratios):.4f}",
                f"{min(ratios):.4f}",
                f"{median(row['tel_0'] for row in here):.4f}",
                f"{median(row['tel_20'] for row in here):.4f}",
            ]
        )
    columns = ["mix", "groups", "better F", "median F ratio", "least F ratio"]
    columns += ["TEL ratio, backfill 0", "TEL ratio, backfill 20"]
    return markdown_table(columns, table)


SPEC = Spec("Group selection against the exact group", run, page, needs=("data",))
