"""The page of the benchmark of tails: claims, ablations, and dominance of policies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.common.online_runs import mean_latency, middle, p99
from benchmarks.common.registry import Row, markdown_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

NOISE = "lognormal:sigma=0.5"
"""Errors of learned ranks: Kendall's tau with the true lengths is about 0.7 here."""

THEIRS = (
    "fcfs", "uniboost-base:gamma=inf:headroom=64", "fcfs:admission=look-ahead",
    "las:hysteresis=0.05", "mlfq",
    "uniboost", "uniboost:headroom=64", "uniboost:gamma=0.1",
    "uniboost-base", "uniboost-base:headroom=64", "distboost",
    "srpt", "srpt:headroom=64", "srpt:limit=0.8", "pars",
    "mc-sf", "svf", "sorted-f-online",
)  # fmt: skip
"""The papers' policies; each that can overflow also in a variant with headroom."""

OURS = ("svf-aged", "svf-boost", "svf-blind")

KNOWS_NOTHING = ("fcfs", "las", "mlfq", "uniboost", "distboost")
"""Prefixes of the names of prediction-free rivals."""

ALIASES = {"uniboost-base:gamma=inf:headroom=64": "fcfs, headroom=64"}
"""UniBoost without a boost is first come, first served."""

FIGURES: dict[str, Callable[[Row], float]] = {
    "mean TTLT": mean_latency,
    "P99 TTLT": p99("ttlt"),
    "P99 TTFT": p99("ttft"),
    "P99 TBT": p99("tbt"),
    "tokens/s": lambda row: float(row["throughput"]),
    "fairness": lambda row: float(row["fairness"]),
    "evicted": lambda row: float(row["evictions"]),
    "preempted": lambda row: float(row["preemptions"]),
    "tokens again": lambda row: float(row["recomputed_tokens"]),
}

OURS_EXPLAINED = """\
`svf-boost` orders by arrival less a boost, as UniBoost does. But the boost is that of
the work which the whole request means for the cache (its memory-time volume over `M`),
and the time by which a small request may pass others grows with the backlog: with a
short queue it is first come, first served, with a long one smallest volume first.
It evicts no request. `svf-blind` does the same with the volume that is expected of a
prompt, and starts requests that will probably fit until they complete, both by the
answers that have finished. If prompts make most of the volume, as in code, it knows as
much as policies that know the lengths. If answers make most of it, it has little to
order by, and only its check of the memory remains."""

CLEARLY = 0.01
"""Share by which a figure must be better; under light load all are about the same."""

Case = tuple[str, float]
"""A workload and a load."""

Table = dict[Case, dict[str, list[Row]]]
"""Rows of every policy in every case, one per seed."""


def shown(policy: str) -> str:
    """Name of a policy on the page."""
    return ALIASES.get(policy, policy)


def by_case(rows: Iterable[Row], part: str = "policies") -> Table:
    """Group the rows of a part of the benchmark by case and policy."""
    found: Table = {}
    for row in rows:
        if row["part"] == part:
            case = found.setdefault((row["workload"], row["load"]), {})
            case.setdefault(row["policy"], []).append(row)
    return found


def point(rows: list[Row]) -> tuple[float, float]:
    """Mean and P99 of TTLT, medians over the seeds."""
    return middle(rows, mean_latency), middle(rows, p99("ttlt"))


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether one point is at least as good in both, and clearly better in one."""
    ratios = [a / b for a, b in zip(one, other, strict=True)]
    return max(ratios) <= 1 and min(ratios) < 1 - CLEARLY


def page(rows: list[Row]) -> str:
    """Lay out the dominance of policies, the claims, the ablations, and all figures."""
    table = by_case(rows)
    parts = [
        "An A100 with Llama-3-8B by the roofline preset, vLLM's rules (blocks of 16, "
        "256 requests, 2,048 tokens a step with prefills in chunks). Azure traces are "
        "replayed with their own bursts, sped up to the load; the others have Poisson "
        "arrivals, since their sources have none. At load 1.0 work arrives as fast as "
        "an engine that wastes nothing can serve it. `srpt`, `mc-sf`, `svf`, "
        "`sorted-f-online`, `svf-aged`, `svf-boost` and look-ahead of `fcfs` know the "
        f"true lengths; `pars` ranks by lengths with errors (`{NOISE}`); the others, "
        "`svf-blind` among them, know nothing. `srpt:limit=0.8` stands for TRAIL; "
        "`fcfs, headroom=64` keeps free the memory into which running requests grow "
        "within 64 steps, as do the others with that option. In seconds.",
        _workloads(rows),
        "## Ours against theirs, in mean and P99 of TTLT",
        "Which of the papers' policies dominate ours (as good in both, and better by "
        f"more than {CLEARLY:.0%} in one), and how many of theirs ours dominate. The "
        "last column: `svf-blind` against policies that know nothing either.",
        _pareto(table),
        _pareto_words(table),
        OURS_EXPLAINED,
        "## UniBoost's claims",
        "UniBoost over its rivals: below 1 is better for UniBoost. The paper says 0.50 "
        "to 0.65 for P99 TTLT and 0.53 to 0.66 for P99 TTFT, both against `srpt` with "
        "perfect lengths, 1.01 to 1.12 for throughput, and 2.9 to 8.7 times tighter "
        "limits on TTFT at 99 % than ranked scheduling.",
        _claims(table),
        _claims_words(table),
        "## Ablations",
        "P99 of TTLT over that of `uniboost` (adaptive gamma, MemGuard, no headroom): "
        "above 1 is worse.",
        _ablations(table),
        _ablation_words(table),
        "## P99 TTLT over a fixed gamma, load 1.0, the first window",
        _gammas(rows, table),
    ]
    for case, policies in table.items():
        row = next(iter(policies.values()))[0]
        title = f"## {case[0]}, load {case[1]:g}: {row['requests']:,} requests"
        parts += [title, _figures(policies)]
    return "\n\n".join(parts)


def _workloads(rows: list[Row]) -> str:
    lines = []
    for workload in dict.fromkeys(row["workload"] for row in rows):
        mine = [row for row in rows if row["workload"] == workload]
        windows = len({row["seed"] for row in mine})
        lines.append([workload, f"{mine[0]['requests']:,}", f"{windows}"])
    table = markdown_table(["trace", "requests", "windows"], lines)
    return f"{table}\n\nFigures are medians over the windows of a trace."


def adaptive(table: Table, case: Case, policy: str) -> list[Row]:
    """Rows of a policy with its own gamma, for the window that has the fixed ones."""
    return [row for row in table[case][policy] if row["seed"] == 1]


def _pareto(table: Table) -> str:
    lines = []
    for (workload, load), policies in table.items():
        points = {policy: point(rows) for policy, rows in policies.items()}
        cells = [_judged(points, ours, THEIRS) for ours in OURS]
        blind = [name for name in THEIRS if knows_nothing(name)]
        cells.append(_judged(points, "svf-blind", blind))
        lines.append([f"{workload}, {load:g}", *cells])
    columns = ["workload, load", *(f"`{ours}`" for ours in OURS), "among the blind"]
    return markdown_table(columns, lines)


def _judged(
    points: dict[str, tuple[float, float]], ours: str, theirs: Iterable[str]
) -> str:
    rivals = [name for name in theirs if name in points]
    above = [shown(name) for name in rivals if dominates(points[name], points[ours])]
    below = sum(dominates(points[ours], points[name]) for name in rivals)
    verdict = f"dominated by {', '.join(above)}" if above else "undominated"
    return f"{verdict}; dominates {below} of {len(rivals)}"


def knows_nothing(policy: str) -> bool:
    """Whether a rival uses neither lengths nor ranks."""
    return policy.startswith(KNOWS_NOTHING) and "look-ahead" not in policy


def _pareto_words(table: Table) -> str:
    lines = []
    for ours in OURS:
        free = {
            case
            for case, policies in table.items()
            if not any(
                dominates(point(policies[name]), point(policies[ours]))
                for name in THEIRS
                if name in policies
            )
        }
        everywhere = [
            workload
            for workload in dict.fromkeys(workload for workload, _ in table)
            if {case for case in table if case[0] == workload} <= free
        ]
        lines.append(
            f"- `{ours}`: undominated in {len(free)} of {len(table)} cases, and at "
            f"every load on {len(everywhere)} traces"
            + (f" ({', '.join(everywhere)})." if everywhere else ".")
        )
    return "\n".join(lines)


def _ratio(
    policies: dict[str, list[Row]], one: str, other: str, figure: Callable[[Row], float]
) -> float:
    """Median over the seeds of the ratio of two policies' figures."""
    base = {row["seed"]: figure(row) for row in policies[other]}
    return middle(policies[one], lambda row: figure(row) / base[row["seed"]])


def _limit(row: Row) -> float:
    return float(row["ttft_limit_99"])


def _tokens(row: Row) -> float:
    return float(row["throughput"])


CLAIMS: dict[str, Callable[[dict[str, list[Row]]], float]] = {
    "P99 TTLT / srpt": lambda p: _ratio(p, "uniboost", "srpt", p99("ttlt")),
    "P99 TTFT / srpt": lambda p: _ratio(p, "uniboost", "srpt", p99("ttft")),
    "P99 TTLT / pars": lambda p: _ratio(p, "uniboost", "pars", p99("ttlt")),
    "P99 TTLT / fcfs": lambda p: _ratio(p, "uniboost", "fcfs", p99("ttlt")),
    "with headroom, / fcfs with headroom": lambda p: _ratio(
        p, "uniboost:headroom=64", "uniboost-base:gamma=inf:headroom=64", p99("ttlt")
    ),
    "tokens/s / srpt": lambda p: _ratio(p, "uniboost", "srpt", _tokens),
    "tokens/s / fcfs": lambda p: _ratio(p, "uniboost", "fcfs", _tokens),
    "TTFT limit: pars / it": lambda p: _ratio(p, "pars", "uniboost", _limit),
    "mean TTLT / fcfs": lambda p: _ratio(p, "uniboost", "fcfs", mean_latency),
}


def _claims(table: Table) -> str:
    lines = [
        [f"{workload}, {load:g}", *(f"{of(policies):.2f}" for of in CLAIMS.values())]
        for (workload, load), policies in table.items()
    ]
    return markdown_table(["workload, load", *CLAIMS], lines)


def _claims_words(table: Table) -> str:
    """List how often each claim holds, and the reasons."""
    num = len(table)

    def times(claim: str, holds: Callable[[float], bool]) -> int:
        return sum(holds(CLAIMS[claim](policies)) for policies in table.values())

    return "\n".join(
        [
            f"- P99 TTLT at least 35 % below `srpt`: in "
            f"{times('P99 TTLT / srpt', lambda x: x <= 0.65)} of {num} cases; below it "
            f"at all in {times('P99 TTLT / srpt', lambda x: x < 1)}.",
            f"- P99 TTFT at least 34 % below `srpt`: in "
            f"{times('P99 TTFT / srpt', lambda x: x <= 0.66)} of {num}.",
            f"- P99 TTLT below `fcfs` with prefills in chunks: in "
            f"{times('P99 TTLT / fcfs', lambda x: x < 1)} of {num}; by more than 5 % "
            f"in {times('P99 TTLT / fcfs', lambda x: x < 0.95)}. With headroom for "
            f"both: in "
            f"{times('with headroom, / fcfs with headroom', lambda x: x < 1)}.",
            f"- 1 % more tokens/s than `srpt`: in "
            f"{times('tokens/s / srpt', lambda x: x >= 1.01)} of {num}; than `fcfs`: "
            f"in {times('tokens/s / fcfs', lambda x: x >= 1.01)}.",
            f"- A limit on TTFT 2.9 times tighter than ranked scheduling's at 99 %: in "
            f"{times('TTFT limit: pars / it', lambda x: x >= 2.9)} of {num}; tighter "
            f"at all in {times('TTFT limit: pars / it', lambda x: x > 1)}.",
            "",
            "Why: under overload an order by length leaves the longest to the end, so "
            "that one request in a hundred waits for nearly all of the run; any order "
            "that takes age into account avoids that, `fcfs` most of all. The boost's "
            "gain over `fcfs` is paid for with evictions, whose KV has to be computed "
            "again. Keeping headroom, or looking ahead, saves preemptions by the "
            "engine itself and often gains more than the boost; see the tables below "
            "for how often KV was lost. On the reasoning traces `srpt` has by far the "
            "shorter P99 of TTFT: few requests are as long as the longest, so that all "
            "others start at once, while a boost that knows no lengths admits the long "
            "ones and has to evict them again. Without MemGuard that becomes "
            "thrashing.",
        ]
    )


ABLATIONS = {
    "fixed gamma 0.1": "uniboost:gamma=0.1",
    "no MemGuard": "uniboost-base",
    "headroom": "uniboost:headroom=64",
    "headroom, no MemGuard": "uniboost-base:headroom=64",
    "prefill apart (distboost)": "distboost",
    "no boost (fcfs)": "fcfs",
    "no boost, headroom": "uniboost-base:gamma=inf:headroom=64",
}


def _ablations(table: Table) -> str:
    lines = [
        [
            f"{workload}, {load:g}",
            *(
                f"{_ratio(policies, name, 'uniboost', p99('ttlt')):.2f}"
                for name in ABLATIONS.values()
            ),
        ]
        for (workload, load), policies in table.items()
    ]
    return markdown_table(["workload, load", *ABLATIONS], lines)


def _ablation_words(table: Table) -> str:
    lines = []
    for title, name in ABLATIONS.items():
        ratios = sorted(
            _ratio(policies, name, "uniboost", p99("ttlt"))
            for policies in table.values()
        )
        worse = sum(ratio > 1.02 for ratio in ratios)
        better = sum(ratio < 0.98 for ratio in ratios)
        lines.append(
            f"- {title}: worse by more than 2 % in {worse} cases, better by more than "
            f"2 % in {better}, of {len(ratios)}; from {ratios[0]:.2f} to "
            f"{ratios[-1]:.2f}."
        )
    return "\n".join(lines)


def _gammas(rows: list[Row], table: Table) -> str:
    found = by_case(rows, "gamma")
    gammas = sorted(
        {float(name.rpartition("=")[2]) for case in found.values() for name in case}
    )
    lines = []
    for (workload, load), policies in found.items():
        for base in dict.fromkeys(name.partition(":")[0] for name in policies):
            cells = [
                f"{middle(policies[f'{base}:gamma={gamma}'], p99('ttlt')):,.1f}"
                for gamma in gammas
            ]
            own = middle(adaptive(table, (workload, load), base), p99("ttlt"))
            lines.append([f"{workload}, `{base}`", *cells, f"{own:,.1f}"])
    columns = ["workload, policy", *(f"{gamma:g}" for gamma in gammas), "adaptive"]
    return markdown_table(columns, lines)


def _figures(policies: dict[str, list[Row]]) -> str:
    lines = [
        [
            shown(policy),
            *(
                f"{middle(rows, figure):,.{_digits(name)}f}"
                for name, figure in FIGURES.items()
            ),
        ]
        for policy, rows in policies.items()
    ]
    return markdown_table(["policy", *FIGURES], lines)


def _digits(name: str) -> int:
    """Decimals of a figure."""
    return {"P99 TBT": 3, "fairness": 2}.get(name, 1 if "TT" in name else 0)
